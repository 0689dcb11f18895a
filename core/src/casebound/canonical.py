"""Canonical and strict JSON, digests and content addresses: the only caller of `hashlib` and of `rfc8785`.

Rules:
- Canonical JSON is RFC 8785, restricted: no floats and no integer beyond 2**53 - 1, because two readers may
  disagree about those. A decimal is written as a string.
- A digest is `sha256:` and 64 lower-case hexadecimal digits, always over bytes, never over parsed values.
- A text with a lone surrogate has no UTF-8 form and is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, TypeAlias

import rfc8785

from casebound.errors import ContractError

MAX_SAFE_INTEGER = 2**53 - 1
MOST_DIGITS = 4300  # of one number; more take Python quadratic time

Json: TypeAlias = "None | bool | int | str | Sequence[Json] | Mapping[str, Json]"


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON of `value` (None, bool, int, str, list, tuple, dict with string keys).

    Raises:
        ContractError: a float, a large integer, a lone surrogate or any other type, with the JSON pointer of it.
    """
    try:
        if _needs_care(value):
            if error := _refusal(value):
                raise error
            return rfc8785.dumps(value)  # type: ignore[arg-type]  # checked just above
        # For what is left the standard encoder escapes exactly what RFC 8785 says, and its order of keys, by code
        # point, is that of the RFC, by UTF-16 unit.
        return _encode(value).encode()
    except (UnicodeEncodeError, rfc8785.CanonicalizationError) as exc:
        raise ContractError("CONTRACT_JSON", found="a text with a lone surrogate", where="canonical JSON") from exc
    except RecursionError as exc:
        raise ContractError("CONTRACT_JSON", found="nesting without end, or too deep", where="canonical JSON") from exc


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _needs_care(value: object) -> bool:
    """Tell whether some part of `value` is refused, or has a key beyond the basic plane. This runs for every artifact."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]  # a dict, by the line above
            if type(key) is not str or not (key.isascii() or max(key) <= "\uffff"):
                return True
            if type(item) is not str and _needs_care(item):
                return True
        return False
    if kind is list or kind is tuple:
        return any(type(item) is not str and _needs_care(item) for item in value)  # type: ignore[attr-defined]  # a sequence
    if kind is int:
        return abs(value) > MAX_SAFE_INTEGER  # type: ignore[arg-type]  # an int, by the line above
    return not (kind is str or value is None or kind is bool)


def _refusal(value: object, pointer: str = "") -> ContractError | None:
    """Return the error about the first part that canonical JSON may not hold, with its pointer; None: it may hold all."""
    kind = type(value)
    if value is None or kind is str or kind is bool or (kind is int and abs(value) <= MAX_SAFE_INTEGER):  # type: ignore[arg-type]  # an int, by the first half
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                return ContractError("CONTRACT_JSON", found=f"a key of type {type(key).__name__}", pointer=pointer)
            if error := _refusal(item, f"{pointer}/{escape_pointer(key)}"):
                return error
        return None
    if isinstance(value, list | tuple):
        errors = (_refusal(item, f"{pointer}/{index}") for index, item in enumerate(value))
        return next((error for error in errors if error), None)
    what = f"the integer {value}" if kind is int else f"a value of type {kind.__name__}"
    return ContractError("CONTRACT_JSON", found=what, pointer=pointer)


def digest_of(data: bytes) -> str:
    """Return the digest of `data`, `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class RunningDigest:
    """A digest of bytes that arrive in parts, so that a large file is never held in memory."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, data: bytes) -> None:
        """Take the next part."""
        self._hash.update(data)

    def digest(self) -> str:
        """Return the digest of all parts so far."""
        return "sha256:" + self._hash.hexdigest()


def file_name_of(digest: str) -> str:
    """Return the file name under which content with `digest` is kept: `sha256-….json`."""
    return digest.replace(":", "-") + ".json"


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


class _Broken:
    """Stands in for what strict JSON does not have, until its pointer is known."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        self.reason = reason
        self.below = "" if key is None else "/" + escape_pointer(key)


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
    broken: list[_Broken] = []

    def refuse(reason: str, key: str | None = None) -> _Broken:
        broken.append(_Broken(reason, key))
        return broken[-1]

    def build(pairs: list[tuple[str, Any]]) -> Any:  # noqa: ANN401  # an object, or what stands in for it
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        keys = [key for key, _ in pairs]
        return refuse("a key stands twice in one object", next(key for n, key in enumerate(keys) if key in keys[:n]))

    def whole(digits: str) -> int | _Broken:
        return refuse("a number with too many digits") if len(digits) > MOST_DIGITS else int(digits)

    def finite(digits: str) -> float | _Broken:
        return refuse("a number beyond all measure") if math.isinf(value := float(digits)) else value

    try:
        value = json.loads(
            text,
            object_pairs_hook=build,
            parse_constant=lambda word: refuse(f"{word} is no JSON value"),
            parse_float=finite,
            parse_int=whole,
        )
    except json.JSONDecodeError as exc:
        raise JsonError(exc.msg.lower(), where=f"line {exc.lineno} column {exc.colno}") from exc
    except RecursionError as exc:
        raise JsonError("nesting too deep") from exc
    if broken:
        pointer, first = next(_walk_for(value, _Broken, ""), ("", broken[0]))
        raise JsonError(first.reason, pointer + first.below)
    if _ESCAPED_SURROGATE.search(text):
        for pointer, part in _walk_for(value, str, ""):
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


_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _walk_for(value: Any, kind: type, pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield every part of `kind` with its pointer, in document order; keys too where they are no Unicode."""
    waiting = [(pointer, value)]
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
