"""Looking for a planted secret in everything that a log, a debugger or a crash report would show."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import ModuleType

CANARY = "canary-7f3a91c2e5d84b60"
"""The secret that the suites plant. Hand it to what you test; no text may ever hold it."""

_DEPTH = 6


def texts_of(error: BaseException) -> Iterator[str]:
    """Yield every text that would be shown of an exception, of those behind it and of what they hold.

    An HTTP library's exception holds its request, whose `repr` masks some headers and not others: so the attributes of
    attributes are looked at too, a few steps deep. Tracebacks are formatted, their frames are not walked.
    """
    seen: set[int] = set()
    waiting: list[tuple[object, int]] = [(error, 0)]
    while waiting:
        one, depth = waiting.pop()
        if id(one) in seen or depth > _DEPTH:
            continue
        seen.add(id(one))
        yield repr(one)
        if isinstance(one, BaseException):
            yield from traceback.format_exception(one)
            waiting += [(one.__cause__, depth), (one.__context__, depth), (one.args, depth + 1)]
        waiting += [(part, depth + 1) for part in _parts_of(one)]


def _parts_of(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, type | ModuleType):
        return []
    return list(getattr(value, "__dict__", {}).values())


def assert_no_canary(*texts: str) -> None:
    """Fail if the canary stands in one of `texts`; the failure does not show the text."""
    for text in texts:
        assert CANARY not in text, "the key stands in a text"
