"""JSON: one object with the parts of a report, read strictly.

Keys: `id`, `title` (one line), `body`, `comments` (texts, or objects with a `body`), `expectations` (texts, or
objects with `text`, `provenance`, `reference`). Each may be missing or null, but not both title and body blank
(admission says so). A comment object may also carry what an issue export says about its author and its time; that is
read past, and nothing else is. A key that comes twice, an unknown key, another type, NaN or Infinity is
`REPORT_SYNTAX` with the JSON pointer of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NoReturn, cast, get_args

from casebound.contracts.case import Expectation, Provenance, Report
from casebound.errors import SettingsError

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


class _Object(list[tuple[str, object]]):
    """The members of a JSON object as they were written, duplicates included."""


class _Number(str):
    """A number as it was written; never converted, for a report needs none."""

    __slots__ = ()


class _Constant(str):
    """NaN or Infinity, which JSON does not have."""

    __slots__ = ()


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
        value = json.loads(
            text, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Constant
        )
    except json.JSONDecodeError as exc:
        raise SettingsError(
            "REPORT_SYNTAX", where=f"line {exc.lineno}, column {exc.colno}", found=exc.msg, expected="a JSON object"
        ) from exc
    except RecursionError as exc:
        raise SettingsError("REPORT_SYNTAX", found="JSON that is nested too deep", expected="a report") from exc
    _check_everywhere(value)
    return value


def _check_everywhere(value: object) -> None:
    """Refuse duplicate keys, NaN and Infinity wherever they stand, the first of them in the order of the text."""
    waiting: list[tuple[object, str]] = [(value, "")]
    while waiting:
        item, pointer = waiting.pop()
        if isinstance(item, _Constant):
            _refuse(pointer, str(item), "a value that JSON has")
        children: list[tuple[object, str]] = []
        if isinstance(item, _Object):
            seen: set[str] = set()
            for key, child in item:
                place = f"{pointer}/{_escaped(key)}"
                if key in seen:
                    _refuse(place, "the key a second time", "each key once")
                seen.add(key)
                children.append((child, place))
        elif isinstance(item, list):
            children = [(child, f"{pointer}/{index}") for index, child in enumerate(item)]
        waiting.extend(reversed([child for child in children if isinstance(child[0], list | _Constant)]))


def _object(value: object, pointer: str, keys: tuple[str, ...], past: tuple[str, ...] = ()) -> dict[str, object]:
    if not isinstance(value, _Object):
        _refuse(pointer, _type(value), "an object")
    members = dict(value)
    for key in members:
        if key not in keys and key not in past:
            found = "a key that no report has"
            raise SettingsError("REPORT_SYNTAX", pointer=f"{pointer}/{_escaped(key)}", found=found, allowed=keys)
    return members


def _items(value: object, pointer: str) -> Iterator[tuple[object, str]]:
    if value is None:
        return
    if not isinstance(value, list) or isinstance(value, _Object):
        _refuse(pointer, _type(value), "an array")
    for index, item in enumerate(value):
        yield item, f"{pointer}/{index}"


def _comment(value: object, pointer: str) -> str:
    if isinstance(value, _Object):
        return _text(_object(value, pointer, ("body",), COMMENT_KEYS_READ_PAST).get("body"), f"{pointer}/body")
    return _text(value, pointer)


def _expectation(value: object, pointer: str) -> Expectation:
    if not isinstance(value, _Object):
        return Expectation(text=_text(value, pointer))
    members = _object(value, pointer, EXPECTATION_KEYS)
    provenance = members.get("provenance", "tester_declaration")
    allowed = get_args(Provenance)
    if type(provenance) is not str or provenance not in allowed:
        found = provenance[:100] if type(provenance) is str else _type(provenance)
        raise SettingsError("REPORT_SYNTAX", pointer=f"{pointer}/provenance", found=found, allowed=allowed)
    return Expectation(
        text=_text(members.get("text"), f"{pointer}/text"),
        provenance=cast("Provenance", provenance),
        reference=_text_or_none(members.get("reference"), f"{pointer}/reference"),
    )


def _text_or_none(value: object, pointer: str) -> str | None:
    return None if value is None else _text(value, pointer)


def _text(value: object, pointer: str) -> str:
    if type(value) is not str:
        _refuse(pointer, _type(value), "a string")
    return value


def _type(value: object) -> str:
    if value is None:
        return "null, or nothing"
    if isinstance(value, _Number):
        return "a number"
    if isinstance(value, bool):
        return "true or false"
    return "an object" if isinstance(value, _Object) else "an array" if isinstance(value, list) else "a string"


def _escaped(key: str) -> str:
    return ascii(key.replace("~", "~0").replace("/", "~1"))[1:-1]


def _refuse(pointer: str, found: str, expected: str) -> NoReturn:
    raise SettingsError("REPORT_SYNTAX", pointer=pointer or "/", found=found, expected=expected)
