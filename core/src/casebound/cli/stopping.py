"""How a person ends a run: the first Ctrl-C, or SIGTERM, lets it end in order, the second ends it at once.

Rules:
- A signal handler only marks and wakes. What the first signal means happens in the event loop, between two steps.
- Before there is anything to end in order, the first signal ends the command at once.
- Whoever is ended at once gets a moment to leave nothing behind. A thread that takes longer (a look-up, a phase of a
  plugin) cannot be ended, so the process ends with it, as if it had been killed: every case can go on after that too.
- An event loop that is held up (whoever reads the output does not) cannot end anything: then an alarm does.
- A third signal is the system's: it kills.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO

from casebound.cli.common import print_note
from casebound.gate import INTERRUPTED
from casebound.words import counted

if TYPE_CHECKING:
    from casebound.runs import Run

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED = 130
_A_MOMENT_S = 1.0


class Stopping:
    """A block in which SIGINT and SIGTERM end a run in order. It is entered in the main thread.

    Attributes:
        say: called with the reason and the number of calls in flight, when nothing new begins.
        say_last: called with the number of calls in flight, which nobody waits for any more, at the second signal.
        leave: ends the process, where it takes too long to end by itself.
    """

    def __init__(self) -> None:
        self.say: Callable[[str, int], None] = _say
        self.say_last: Callable[[int], None] = _say_last
        self.leave: Callable[[], object] = lambda: leave_at_once(sys.stdout, sys.stderr)
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
        signal.setitimer(signal.ITIMER_REAL, 0)
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
            signal.signal(signal.SIGALRM, lambda *_: os._exit(_INTERRUPTED))
            signal.setitimer(signal.ITIMER_REAL, 2 * _A_MOMENT_S)

    def _end_in_order(self) -> None:
        run = self._run
        if run is None:
            return
        run.gate.close(INTERRUPTED)
        with suppress(OSError):  # nobody listens any more: that is no reason not to end
            self.say(INTERRUPTED, run.tally.begun)

    def _end_at_once(self) -> None:
        if self._task is not None:
            with suppress(OSError):
                self.say_last(0 if self._run is None else self._run.tally.begun)
            self._task.cancel()
            self._task.get_loop().call_later(_A_MOMENT_S, self.leave)


def leave_at_once(*streams: TextIO) -> NoReturn:
    """End the process, whatever its threads do."""
    for stream in streams:
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(_INTERRUPTED)


def _say(reason: str, in_flight: int) -> None:
    calls = "1 call" if in_flight == 1 else f"{in_flight} calls"
    waits = f"waiting for {calls} in flight" if in_flight else "waiting for what is being recorded"
    print_note(f"{reason}: nothing new begins, {waits}; once more stops at once")


def _say_last(in_flight: int) -> None:
    lost = f"; {counted(in_flight, 'call')} in flight counted as unknown" if in_flight else ""
    print_note(f"{INTERRUPTED}: ended at once{lost}; the next `casebound run` goes on")
