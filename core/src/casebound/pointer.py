"""JSON pointers (RFC 6901): how errors, findings and aliases name a place inside a document."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any


def escape_pointer(token: str) -> str:
    """Return `token` as it stands in a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def json_pointer(parts: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path of keys and indices; empty for the top."""
    return "".join("/" + escape_pointer(str(part)) for part in parts)


def first_difference(found: Any, expected: Any) -> str | None:
    """Return the JSON pointer of the first place where two JSON values differ, None where they are equal."""
    if type(found) is not type(expected):
        return ""
    if isinstance(found, dict):
        pairs = ((key, found.get(key, _ABSENT), expected.get(key, _ABSENT)) for key in sorted({*found, *expected}))
    elif isinstance(found, list):
        pairs = ((str(index), *both) for index, both in enumerate(zip_longest(found, expected, fillvalue=_ABSENT)))
    else:
        return None if found == expected else ""
    for token, one, other in pairs:
        if (deeper := first_difference(one, other)) is not None:
            return f"/{escape_pointer(token)}{deeper}"
    return None


_ABSENT = object()


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Return what `pointer` points at in `document`. Raises `KeyError` where there is nothing."""
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name)] if isinstance(value, list | tuple) else value[name]
        except (IndexError, KeyError, TypeError, ValueError) as exc:
            raise KeyError(pointer) from exc
    return value
