"""Canonical JSON, digests and content addresses: the only caller of `hashlib`, `orjson` and `rfc8785`.

Rules:
- Canonical JSON is RFC 8785, restricted: no floats and no integer beyond 2**53 - 1, because two readers may
  disagree about those. A decimal is written as a string.
- A digest is `sha256:` and 64 lower-case hexadecimal digits, always over bytes, never over parsed values.
- A text with a lone surrogate has no UTF-8 form and is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

import orjson
import rfc8785

from casebound.errors import ContractError
from casebound.pointer import escape_pointer
from casebound.text import escape_peculiar

MAX_SAFE_INTEGER = 2**53 - 1


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON of `value` (None, bool, int, str, list, tuple, dict with string keys).

    Raises:
        ContractError: a float, a large integer, a lone surrogate or any other type, with the JSON pointer of it.
    """
    try:
        quick = _quickly(value)
        return _with_care(value) if quick is None else quick
    except (UnicodeEncodeError, rfc8785.CanonicalizationError) as exc:
        raise ContractError("CONTRACT_JSON", found="a text with a lone surrogate", where="canonical JSON") from exc
    except RecursionError as exc:
        raise ContractError("CONTRACT_JSON", found="nesting without end, or too deep", where="canonical JSON") from exc


_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER  # escapes are those of RFC 8785 by themselves
_PLAIN = frozenset({str, int, bool, type(None)})
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_standard = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _quickly(value: object) -> bytes | None:
    """Return the canonical JSON of `value` as orjson makes it; None where it does not. This runs for every artifact.

    Its order of keys, by code point, is that of RFC 8785 as far as no key is beyond the basic plane.
    """
    if not _is_plain([value]):
        return None
    try:
        encoded = orjson.dumps(value, option=_CANONICAL)
    except orjson.JSONEncodeError:  # a large integer, a lone surrogate, too deep for it, a key of another type
        return None
    if not encoded.isascii() and _has_key_beyond(value):
        return None
    # orjson's bytes have room to grow, many times as much; what is kept is a copy that has none.
    return bytes(memoryview(encoded))


def _is_plain(parts: Iterable[object]) -> bool:
    """Tell whether there is nothing in `parts` but what JSON has, and no float."""
    for part in parts:
        kind = type(part)
        if kind in _PLAIN:
            continue
        if kind is dict:
            inner: Iterable[object] = part.values()  # type: ignore[attr-defined]  # a dict, by the line above
        elif kind is list or kind is tuple:
            inner = part  # type: ignore[assignment]  # a sequence, by the line above
        else:
            return False
        if not _is_plain(inner):
            return False
    return True


def _has_key_beyond(value: object) -> bool:
    """Tell whether a key in plain `value` is beyond the basic plane."""
    parts: Iterable[object] = ()
    if isinstance(value, dict):
        if _BEYOND.search("".join(value)):
            return True
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    for part in parts:  # noqa: SIM110  # a generator would need twice the depth
        if _has_key_beyond(part):
            return True
    return False


def _with_care(value: object) -> bytes:
    """Return the canonical JSON of what orjson does not make: it is refused, nests deep, or has a key beyond."""
    if error := _refusal(value):
        raise error
    if _has_key_beyond(value):
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # checked just above
    return _standard(value).encode()


def _is_safe_integer(value: object) -> bool:
    return type(value) is int and abs(value) <= MAX_SAFE_INTEGER


def _refusal(value: object, pointer: str = "") -> ContractError | None:
    """Return the error about the first part that canonical JSON may not hold, with its pointer; None: there is none."""
    kind = type(value)
    if value is None or kind is str or kind is bool or _is_safe_integer(value):
        return None
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return ContractError("CONTRACT_JSON", found=f"a key of type {type(key).__name__}", pointer=pointer)
            if error := _refusal(item, f"{pointer}/{escape_pointer(key)}"):
                return error
        return None
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if error := _refusal(item, f"{pointer}/{index}"):
                return error
        return None
    what = f"the integer {value}" if kind is int else f"a value of type {kind.__name__}"
    return ContractError("CONTRACT_JSON", found=what, pointer=pointer)


def digest_of(data: bytes) -> str:
    """Return the digest of `data`, `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


_in_order = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def sent_bytes(value: Mapping[str, object]) -> bytes:
    """Return an object as compact JSON for a server: keys in their order, with the floats that settings may hold.

    Raises:
        ValueError: a number that JSON does not have (NaN, infinity); as UnicodeEncodeError, a lone surrogate.
    """
    try:
        data = orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:  # what the standard one can do, or says better: large integers, surrogates
        return _in_order(value).encode()
    # orjson writes null for what is no number; the standard one refuses it.
    return data if b"null" not in data or _is_plain([value]) else _in_order(value).encode()


def readable_bytes(value: object) -> bytes:
    """Return `value` as JSON that a person reads and fills in: indented, keys in their order; no canonical form.

    Characters that nobody can see, or would take for others, stand as escapes; what is parsed is the same.

    Raises:
        ContractError: as `canonical_bytes`.
    """
    canonical_bytes(value)
    return escape_peculiar(json.dumps(value, ensure_ascii=False, indent=2)).encode() + b"\n"


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
