"""Looking for a planted secret in everything that a log, a debugger or a crash report would show."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

CANARY = "canary-7f3a91c2e5d84b60"
"""The secret that the suites plant. Hand it to what you test; no text may ever hold it."""


def texts_of(error: BaseException) -> Iterator[str]:
    """Yield every text that would be shown of an exception and of those behind it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from traceback.format_exception(one)
        yield repr(one.args)
        for value in vars(one).values():
            yield repr(value)
            # An HTTP library's exception holds its request; `repr` masks some headers and shows others.
            yield repr(getattr(value, "__dict__", ""))
        waiting += [one.__cause__, one.__context__]


def assert_no_canary(*texts: str) -> None:
    """Fail if the canary stands in one of `texts`; the failure does not show the text."""
    for text in texts:
        assert CANARY not in text, "the key stands in a text"
