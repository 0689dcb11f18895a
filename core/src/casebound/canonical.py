"""Canonical JSON, digests and content addresses: the only caller of `hashlib` and of `rfc8785`.

Rules:
- Canonical JSON is RFC 8785, restricted: no floats and no integer beyond 2**53 - 1, because two readers may
  disagree about those. A decimal is written as a string.
- A digest is `sha256:` and 64 lower-case hexadecimal digits, always over bytes, never over parsed values.
- A text with a lone surrogate has no UTF-8 form and is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import rfc8785

from casebound.errors import ContractError

MAX_SAFE_INTEGER = 2**53 - 1

Json: TypeAlias = "None | bool | int | str | Sequence[Json] | Mapping[str, Json]"


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON of `value` (None, bool, int, str, list, tuple, dict with string keys).

    Raises:
        ContractError: a float, a large integer, a lone surrogate or any other type, with the JSON pointer of it.
    """
    quick = _is_quick(value, "")
    try:
        if quick:
            # Sorting by code point equals RFC 8785's order by UTF-16 unit where every key is ASCII; and for the
            # types that are left, the standard encoder escapes exactly what the RFC says.
            return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # checked just above
    except (UnicodeEncodeError, rfc8785.CanonicalizationError) as exc:
        raise ContractError("CONTRACT_JSON", found="a text with a lone surrogate", where="canonical JSON") from exc


def _is_quick(value: object, pointer: str) -> bool:
    """Refuse what canonical JSON may not hold; tell whether the standard encoder gives the same bytes."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        if abs(value) > MAX_SAFE_INTEGER:  # type: ignore[arg-type]  # an int, by the line above
            raise ContractError("CONTRACT_JSON", found=f"the integer {value}", pointer=pointer)
        return True
    quick = True
    if kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]  # a dict, by the line above
            if type(key) is not str:
                raise ContractError("CONTRACT_JSON", found=f"a key of type {type(key).__name__}", pointer=pointer)
            quick &= key.isascii()
            quick &= _is_quick(item, f"{pointer}/{key}")
        return quick
    if kind is list or kind is tuple:
        for index, item in enumerate(value):  # type: ignore[arg-type]  # a sequence, by the line above
            quick &= _is_quick(item, f"{pointer}/{index}")
        return quick
    raise ContractError("CONTRACT_JSON", found=f"a value of type {kind.__name__}", pointer=pointer)


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
