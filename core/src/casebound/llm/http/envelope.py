"""The JSON around a model's text: read strictly, and believed only where it has the shape that it should have. Pure.

Rules:
- What the server did not report is absent: an odd token count is no token count.
- A text is handed on exactly. A lone surrogate, which has no bytes, is handed on as the escape that JSON writes for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from casebound.contracts.model_call import NativeReply
from casebound.llm.http.failure import unreadable

# No call uses as many tokens; the sum of many calls must still be a number that every reader of JSON reads exactly.
MOST_COUNTED = 10**12


def read_envelope(native: NativeReply, expected: str) -> Mapping[str, object]:
    """Return the JSON object that a successful reply holds.

    Args:
        native: the reply.
        expected: what was asked for, for the error (`JSON of a chat completion`).

    Raises:
        ProviderError: `LLM_UNAVAILABLE`: bytes that are no UTF-8, no JSON, no object, or an object with a key twice.
    """
    try:
        value = _json(native.body)
    except UnicodeDecodeError:
        raise unreadable(native, "bytes that are not UTF-8", expected) from None
    except (ValueError, RecursionError) as exc:
        reason = str(exc) if isinstance(exc, _DuplicateKey) else "no JSON"
        raise unreadable(native, reason, expected) from None
    if not isinstance(value, dict):
        raise unreadable(native, "JSON that is no object", expected)
    return value


def lenient_json(native: NativeReply) -> object:
    """Return the JSON of an error's body; None where it is none."""
    try:
        return _json(native.body)
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Mapping[str, object]:
    """Return `value` where it is an object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """Return `value` where it is an array; an empty one otherwise."""
    return value if isinstance(value, list) else ()


def text_of(value: object) -> str | None:
    """Return `value` where it is a text that says something."""
    return storable(value) if isinstance(value, str) and value else None


def storable(text: str) -> str:
    """Return `text` in a form that has bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def count_of(value: object) -> int | None:
    """Return `value` where it is a count that one call can have: a whole number from zero to `MOST_COUNTED`."""
    return value if type(value) is int and 0 <= value <= MOST_COUNTED else None


class _DuplicateKey(ValueError):
    """One key stands twice in an object, so the reply has two meanings."""


def _json(body: bytes) -> object:
    """Parse strictly, after what routers put in front: a byte order mark, blank lines, comment lines (`: WAIT`)."""
    text = body.decode("utf-8-sig")
    put_in_front = _PUT_IN_FRONT.match(text)
    return _decoder.decode(text[put_in_front.end() :] if put_in_front else text)


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _DuplicateKey(f"the key {twice[:40]!a} twice in one object")
    return result


def _no_number(_: str) -> None:
    """NaN and Infinity report nothing; the reply around them, which was paid for, still counts."""
    return


_PUT_IN_FRONT = re.compile(r"(?:[ \t\r\n]+|:[^\r\n]*[\r\n])+")
_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)
