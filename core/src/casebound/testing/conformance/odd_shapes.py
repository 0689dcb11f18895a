"""Replies of an odd shape: a sound one, with one of its values replaced by a value of another kind. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

_ODD: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**60,
    "",
    "odd",
    "\ud800",
    "word " * 2000,
    [],
    ["odd"],
    [[]],
    [{}],
    {},
    {"odd": [1]},
    {"message": [], "code": {}, "type": [], "text": {}},
)


def odd_bodies(body: bytes) -> Iterator[bytes]:
    """Yield what becomes of a body of JSON, or of lines of JSON, for every place and every odd value; else nothing."""
    lines = [body] if _is_json(body) else body.splitlines()
    if not all(map(_is_json, lines)):
        return
    for at, line in enumerate(lines):
        for odd in _with_one_replaced(json.loads(line)):
            yield b"\n".join((*lines[:at], json.dumps(odd).encode(), *lines[at + 1 :]))


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _with_one_replaced(value: object) -> Iterator[object]:
    yield from _ODD
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: odd} for odd in _with_one_replaced(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], odd, *value[at + 1 :]] for odd in _with_one_replaced(inner))
