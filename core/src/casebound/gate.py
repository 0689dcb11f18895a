"""The gate of a run: every model call goes through it, until it is closed; what is behind it goes on to its end.

A gate is closed once, and stays closed: by a person who interrupts the run, by the most calls that it may make, or by a
budget. Nothing of a call that it refuses is on disk, so whoever was refused can go on later as if nobody had asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

INTERRUPTED = "interrupted"
MAX_DISPATCHES = "max_dispatches"


class Stopped(Exception):  # no error: nobody did anything wrong
    """The run makes no further call, for `reason`; the case stays as it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Gate:
    """Counts the model calls of a run and lets no more through than `most`; None: as many as there are.

    Only `close` may be called before an event loop runs; everything else, and every later `close`, belongs into the
    loop's own thread.

    Attributes:
        passed: how many calls have gone through.
        reason: why it is closed, None while it is open.
    """

    def __init__(self, most: int | None = None) -> None:
        self.passed = 0
        self.reason: str | None = None
        self._most = most
        self._waiting: set[asyncio.Future[Any]] = set()

    def close(self, reason: str) -> None:
        """Let nothing more through, and wake everybody who waits in front of it; the first reason stays."""
        if self.reason is None:
            self.reason = reason
            for task in self._waiting:
                task.cancel()

    def check(self) -> None:
        """Raise `Stopped` where it is closed, or where one call more would be too many; that closes it."""
        if self._most is not None and self.passed >= self._most:
            self.close(MAX_DISPATCHES)
        if self.reason is not None:
            raise Stopped(self.reason)

    def enter(self) -> None:
        """Go through: one call will be made, as soon as it is prepared. Raises as `check`."""
        self.check()
        self.passed += 1

    async def unless_closed(self, waiting: Awaitable[T]) -> T:
        """Return what `waiting` returns.

        Raises:
            Stopped: the gate was closed first; `waiting` has been cancelled then, and has ended.
        """
        task = asyncio.ensure_future(waiting)
        if self.reason is not None and not task.done():
            task.cancel()
        self._waiting.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._waiting.discard(task)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if task.cancelled():
            raise Stopped(self.reason or INTERRUPTED)
        return task.result()
