"""Work that blocks: in a thread beside the event loop, unless it is over in a moment.

Threads that want the one interpreter at the same time hand it to each other at every call into the system, and a
look-up in a file makes dozens. So the loop waits a moment for what is computed in this process, and goes on when that
takes longer: what is short is done in a third of the time, and what is long holds up nobody for longer than the moment.
Where the loop has waited in vain for a while, it does so only now and then. What asks a server is not waited for
(ADR 18).
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
        self._most = threads
        self._name = name
        self._threads: ThreadPoolExecutor | None = None
        self._late = 0  # works in a row that were not over in a moment, or were not waited for

    async def run(self, work: Callable[[], T], *, computes: bool) -> T:
        """Return what `work` returns, or raise what it raises. Who is cancelled leaves it to its thread.

        Args:
            work: that blocks.
            computes: it is done by this process, and does not wait for another one.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
        ended = self._threads.submit(work)
        if not computes:
            return await asyncio.wrap_future(ended)
        if self._late < _IN_VAIN or self._late % _NOW_AND_THEN == 0:
            wait([ended], MOMENT_S)  # the loop too
        if ended.done():
            self._late = 0
            return ended.result()
        self._late += 1
        return await asyncio.wrap_future(ended)

    def close(self) -> None:
        """Begin nothing more that waits; what is under way goes on to its end, unwatched. `run` begins anew."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
