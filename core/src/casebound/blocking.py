"""Work that blocks: in a thread beside the event loop, unless it is over in a moment.

Threads that want the one interpreter at the same time hand it to each other at every call into the system, and a short
look-up makes dozens. So the loop waits a moment for whatever it hands to a thread, and goes on when that takes longer:
what is short is done in a third of the time, and what is long holds up nobody for longer than the moment. Where the
loop has waited in vain for a while, it does so only now and then (ADR 18).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")

MOMENT_S = 0.005  # as long as a thread's turn of the interpreter
_IN_VAIN = 8  # times in a row, after which the loop waits
_NOW_AND_THEN = 16  # for one work in so many


class Blocking:
    """Threads for one kind of work.

    Args:
        threads: at most so many works are under way at once.
        name: of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._late = 0  # works in a row that were not over in a moment, or were not waited for

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises. Who is cancelled leaves it to its thread."""
        ended = self._threads.submit(work)
        if self._late < _IN_VAIN or self._late % _NOW_AND_THEN == 0:
            wait([ended], MOMENT_S)  # the loop too
        if ended.done():
            self._late = 0
            return ended.result()
        self._late += 1
        return await asyncio.wrap_future(ended)

    def close(self) -> None:
        """Begin nothing more; what is under way goes on to its end, unwatched."""
        self._threads.shutdown(wait=False)
