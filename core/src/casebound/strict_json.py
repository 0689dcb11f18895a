"""Strict JSON: exactly one value, read in one way only, or an error that says where.

Where two readers may disagree (a key that stands twice, NaN, a lone surrogate), nothing is read at all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from casebound.pointer import escape_pointer

MOST_DIGITS = 4300  # of one number; more take Python quadratic time
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """Bytes that are not exactly one strict JSON value.

    Attributes:
        reason: one clause, without the content.
        pointer: where, as far as the value could be read.
        where: line and column, where it could not.
    """

    def __init__(self, reason: str, pointer: str = "", where: str | None = None) -> None:
        self.reason = reason
        self.where = where
        # A pointer is written into artifacts, also where a key on its way is no Unicode.
        self.pointer = pointer = pointer.encode("utf-8", "backslashreplace").decode()
        super().__init__(f"{reason} at {where or pointer or 'the top'}")


def parse_json(data: bytes) -> Any:
    """Return the one JSON value that `data` holds.

    Raises:
        JsonError: invalid UTF-8, a byte-order mark, anything before or after the value, a key that stands twice in one
            object, NaN or an infinity (also by overflow), a lone surrogate, nesting or a number beyond all measure.
    """
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as exc:
        raise JsonError(f"invalid UTF-8 at byte {exc.start}") from exc
    reader = _Reader()
    try:
        value = json.loads(
            text,
            object_pairs_hook=reader.build,
            parse_constant=lambda word: reader.refuse(f"{word} is no JSON value"),
            parse_float=reader.finite,
            parse_int=reader.whole,
        )
    except json.JSONDecodeError as exc:
        raise JsonError(exc.msg.lower(), where=f"line {exc.lineno} column {exc.colno}") from exc
    except RecursionError as exc:
        raise JsonError("nesting too deep") from exc
    if reader.broken:
        pointer, first = next(_walk_for(value, _Broken), ("", reader.broken[0]))
        raise JsonError(first.reason, pointer + first.below)
    if _ESCAPED_SURROGATE.search(text):
        for pointer, part in _walk_for(value, str):
            if not is_unicode(part):
                raise JsonError("a lone surrogate", pointer)
    return value


def is_unicode(text: str) -> bool:
    """Tell whether `text` has a UTF-8 form (no lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Broken:
    """Stands in for what strict JSON does not have, until its pointer is known."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        self.reason = reason
        self.below = "" if key is None else "/" + escape_pointer(key)


class _Reader:
    """The hooks of one reading: what strict JSON does not have is stood in for, and counted."""

    def __init__(self) -> None:
        self.broken: list[_Broken] = []

    def refuse(self, reason: str, key: str | None = None) -> _Broken:
        self.broken.append(_Broken(reason, key))
        return self.broken[-1]

    def build(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Broken:
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                return self.refuse("a key stands twice in one object", key)
            seen.add(key)
        return value

    def whole(self, digits: str) -> int | _Broken:
        return self.refuse("a number with too many digits") if len(digits) > MOST_DIGITS else int(digits)

    def finite(self, digits: str) -> float | _Broken:
        return self.refuse("a number beyond all measure") if math.isinf(value := float(digits)) else value


def _walk_for(value: object, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield every part of `kind` with its pointer, in document order; keys too where they are no Unicode."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, kind):
            yield place, part
        elif isinstance(part, dict):
            for key in part:
                if kind is str and not is_unicode(key):
                    yield f"{place}/{escape_pointer(key)}", key
            waiting.extend((f"{place}/{escape_pointer(key)}", item) for key, item in reversed(part.items()))
        elif isinstance(part, list):
            waiting.extend((f"{place}/{index}", item) for index, item in reversed(list(enumerate(part))))
