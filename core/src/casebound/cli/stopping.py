"""How a person ends a run: the first Ctrl-C, or SIGTERM, lets it end in order, the second ends it at once.

Rules:
- A signal handler only marks and wakes. What the first signal means happens in the event loop, between two steps.
- Before there is anything to end in order, the first signal ends the command at once.
- A third signal is the system's: it kills.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from casebound.cli.common import print_note
from casebound.gate import INTERRUPTED

if TYPE_CHECKING:
    from casebound.runs import Run

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STATUS = 130


class Stopping:
    """A block in which SIGINT and SIGTERM end a run in order. It is entered in the main thread."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._task: asyncio.Task[None] | None = None
        self._signals = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._caught) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def of(self, run: Run, task: asyncio.Task[None]) -> None:
        """From now on, until the task is done, the signals are for this run."""
        self._run, self._task = run, task

    def _caught(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._task is None or self._task.done():
            raise KeyboardInterrupt
        step = self._end_in_order if self._signals == 1 else self._end_at_once
        self._task.get_loop().call_soon_threadsafe(step)
        if self._signals > 1:
            for one in _SIGNALS:
                signal.signal(one, signal.SIG_DFL)

    def _end_in_order(self) -> None:
        run = self._run
        if run is None:
            return
        run.gate.close(INTERRUPTED)
        flying = run.project.engine.tally.in_flight
        waits = f"waiting for {flying} calls in flight" if flying else "waiting for what is being recorded"
        with suppress(OSError):
            print_note(f"interrupted: nothing new begins, {waits}; again: stop at once")

    def _end_at_once(self) -> None:
        if self._task is not None:
            self._task.cancel()
