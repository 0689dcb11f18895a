"""JSON: one object with the parts of a report, read strictly.

Keys: `id`, `title` (one line), `body`, `comments` (texts, or objects with a `body`), `expectations` (texts, or
objects with `text`, `provenance`, `reference`). Each may be missing or null, but not both title and body blank
(admission says so). A comment object may also carry what an issue export says about its author and its time; that is
read past, and nothing else is. A key that comes twice, an unknown key, another type, NaN or Infinity is
`REPORT_SYNTAX` with the JSON pointer of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn, cast, get_args

from casebound.contracts.case import Expectation, Provenance, Report
from casebound.errors import SettingsError
from casebound.pointer import escape_pointer
from casebound.strict_json import JsonError, parse_json

KEYS = ("id", "title", "body", "comments", "expectations")
EXPECTATION_KEYS = ("text", "provenance", "reference")
COMMENT_KEYS_READ_PAST = (
    "author",
    "authorAssociation",
    "author_association",
    "createdAt",
    "created_at",
    "html_url",
    "id",
    "includesCreatedEdit",
    "isMinimized",
    "issue_url",
    "minimizedReason",
    "node_id",
    "reactionGroups",
    "reactions",
    "updatedAt",
    "updated_at",
    "url",
    "user",
    "viewerDidAuthor",
)


def read(text: str) -> Report:
    """Return the report that `text` holds.

    Raises:
        SettingsError: `REPORT_SYNTAX` with line and column, or with the JSON pointer of what does not fit.
    """
    members = _object(_parse(text), "", KEYS)
    title = _text_or_none(members.get("title"), "/title")
    if title is not None and ("\n" in title or "\r" in title):
        _refuse("/title", "a line break", "one line")
    return Report(
        case_id=_text_or_none(members.get("id"), "/id"),
        title=title,
        body=_text_or_none(members.get("body"), "/body") or "",
        comments=tuple(_comment(item, pointer) for item, pointer in _items(members.get("comments"), "/comments")),
        expectations=tuple(
            _expectation(item, pointer) for item, pointer in _items(members.get("expectations"), "/expectations")
        ),
    )


def _parse(text: str) -> object:
    try:
        return parse_json(text.encode())
    except JsonError as exc:
        pointer = None if exc.where else exc.pointer or "/"
        raise SettingsError(
            "REPORT_SYNTAX", pointer=pointer, where=exc.where, found=exc.reason, expected="a JSON object"
        ) from exc


def _object(value: object, pointer: str, keys: tuple[str, ...], past: tuple[str, ...] = ()) -> dict[str, object]:
    if not isinstance(value, dict):
        _refuse(pointer, _type(value), "an object")
    for key in value:
        if key not in keys and key not in past:
            found = "a key that no report has"
            raise SettingsError("REPORT_SYNTAX", pointer=f"{pointer}/{escape_pointer(key)}", found=found, allowed=keys)
    return value


def _items(value: object, pointer: str) -> Iterator[tuple[object, str]]:
    if value is None:
        return
    if not isinstance(value, list):
        _refuse(pointer, _type(value), "an array")
    for index, item in enumerate(value):
        yield item, f"{pointer}/{index}"


def _comment(value: object, pointer: str) -> str:
    if isinstance(value, dict):
        return _text(_object(value, pointer, ("body",), COMMENT_KEYS_READ_PAST).get("body"), f"{pointer}/body")
    return _text(value, pointer)


def _expectation(value: object, pointer: str) -> Expectation:
    if not isinstance(value, dict):
        return Expectation(text=_text(value, pointer))
    members = _object(value, pointer, EXPECTATION_KEYS)
    provenance = members.get("provenance", "tester_declaration")
    allowed = get_args(Provenance)
    if not isinstance(provenance, str) or provenance not in allowed:
        found = provenance[:100] if isinstance(provenance, str) else _type(provenance)
        raise SettingsError("REPORT_SYNTAX", pointer=f"{pointer}/provenance", found=found, allowed=allowed)
    return Expectation(
        text=_text(members.get("text"), f"{pointer}/text"),
        provenance=cast("Provenance", provenance),
        reference=_text_or_none(members.get("reference"), f"{pointer}/reference"),
    )


def _text_or_none(value: object, pointer: str) -> str | None:
    return None if value is None else _text(value, pointer)


def _text(value: object, pointer: str) -> str:
    if not isinstance(value, str):
        _refuse(pointer, _type(value), "a string")
    return value


def _type(value: object) -> str:
    if value is None:
        return "null, or nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else "a string"


def _refuse(pointer: str, found: str, expected: str) -> NoReturn:
    raise SettingsError("REPORT_SYNTAX", pointer=pointer or "/", found=found, expected=expected)
