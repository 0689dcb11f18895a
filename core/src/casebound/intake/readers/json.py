"""JSON: one object with the parts of a report, read strictly.

Keys: `id`, `title` (one line), `body`, `comments` (texts, or objects with a `body`), `expectations` (texts, or
objects with `text`, `provenance`, `reference`). Each may be missing or null, but not both title and body blank
(admission says so). A comment object may also carry what an issue export says about its author and its time; that is
read past, and nothing else is. A key that comes twice, an unknown key, another type, NaN or Infinity is
`REPORT_SYNTAX` with the JSON pointer of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    value = _parse(text)
    if isinstance(value, list):
        hint = "`casebound import FILE` takes many reports in one file; `casebound run` then works on them"
        refuse("", "an array", "an object: one report", hint)
    return read_strictly(_object(value, ""))


def read_strictly(members: dict[str, object]) -> Report:
    """Return the report of an object that has no other key than `KEYS`. Raises as `read`."""
    return report_of(_known_keys(members, "", KEYS))


def report_of(members: Mapping[str, object]) -> Report:
    """Return the report whose parts are the values at `KEYS`; other keys are the caller's. Raises as `read`."""
    return Report(
        case_id=text_or_none(members.get("id"), "/id"),
        title=title_of(members),
        body=text_or_none(members.get("body"), "/body") or "",
        comments=tuple(_comment(item, pointer) for item, pointer in items_of(members.get("comments"), "/comments")),
        expectations=tuple(
            _expectation(item, pointer) for item, pointer in items_of(members.get("expectations"), "/expectations")
        ),
    )


# --- what the readers of other JSON share -----------------------------------------------------------------------------


def parse_object(text: str) -> dict[str, object]:
    """Return the strict JSON object that `text` is. Raises `SettingsError` (`REPORT_SYNTAX`)."""
    return _object(_parse(text), "")


def title_of(members: Mapping[str, object]) -> str | None:
    """Return the title, one line, None for none. Raises `SettingsError` (`REPORT_SYNTAX`)."""
    title = text_or_none(members.get("title"), "/title")
    if title is not None and ("\n" in title or "\r" in title):
        refuse("/title", "a line break", "one line")
    return title


def items_of(value: object, pointer: str) -> Iterator[tuple[object, str]]:
    """Yield the items of an array with their pointers; null has none. Raises `SettingsError` (`REPORT_SYNTAX`)."""
    if value is None:
        return
    if not isinstance(value, list):
        refuse(pointer, type_of(value), "an array")
    for index, item in enumerate(value):
        yield item, f"{pointer}/{index}"


def text_or_none(value: object, pointer: str) -> str | None:
    """Return a string, or None for null. Raises `SettingsError` (`REPORT_SYNTAX`)."""
    return None if value is None else _text(value, pointer)


def type_of(value: object) -> str:
    """Return the type of a JSON value in words."""
    if value is None:
        return "null, or nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "an object" if isinstance(value, dict) else "an array" if isinstance(value, list) else "a string"


def refuse(pointer: str, found: str, expected: str, hint: str | None = None) -> NoReturn:
    """Raise `SettingsError` (`REPORT_SYNTAX`) about the value at `pointer`."""
    raise SettingsError("REPORT_SYNTAX", pointer=pointer or "/", found=found, expected=expected, hint=hint)


# --- parts ------------------------------------------------------------------------------------------------------------


def _parse(text: str) -> object:
    try:
        return parse_json(text.encode())
    except JsonError as exc:
        pointer = None if exc.where else exc.pointer or "/"
        raise SettingsError(
            "REPORT_SYNTAX", pointer=pointer, where=exc.where, found=exc.reason, expected="a JSON object"
        ) from exc


def _object(value: object, pointer: str) -> dict[str, object]:
    if not isinstance(value, dict):
        refuse(pointer, type_of(value), "an object")
    return value


def _known_keys(
    value: dict[str, object], pointer: str, keys: tuple[str, ...], past: tuple[str, ...] = ()
) -> dict[str, object]:
    for key in value:
        if key not in keys and key not in past:
            is_body = "body" in keys and "body" not in value and isinstance(value[key], str)
            raise SettingsError(
                "REPORT_SYNTAX",
                pointer=f"{pointer}/{escape_pointer(key)}",
                found="a key that no report has" + (", and no body" if is_body else ""),
                allowed=keys,
                hint="if this is the text, call it body; else take the key away" if is_body else None,
            )
    return value


def _comment(value: object, pointer: str) -> str:
    if isinstance(value, dict):
        members = _known_keys(value, pointer, ("body",), COMMENT_KEYS_READ_PAST)
        return _text(members.get("body"), f"{pointer}/body")
    return _text(value, pointer)


def _expectation(value: object, pointer: str) -> Expectation:
    if not isinstance(value, dict):
        return Expectation(text=_text(value, pointer))
    members = _known_keys(value, pointer, EXPECTATION_KEYS)
    provenance = members.get("provenance", "tester_declaration")
    allowed = get_args(Provenance)
    if not isinstance(provenance, str) or provenance not in allowed:
        found = provenance[:100] if isinstance(provenance, str) else type_of(provenance)
        raise SettingsError("REPORT_SYNTAX", pointer=f"{pointer}/provenance", found=found, allowed=allowed)
    return Expectation(
        text=_text(members.get("text"), f"{pointer}/text"),
        provenance=cast("Provenance", provenance),
        reference=text_or_none(members.get("reference"), f"{pointer}/reference"),
    )


def _text(value: object, pointer: str) -> str:
    if not isinstance(value, str):
        refuse(pointer, type_of(value), "a string")
    return value
