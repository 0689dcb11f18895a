"""The picture of a run that changes while it works, on standard error, where that is a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from casebound.clock import Clock, format_time
from casebound.words import counted

if TYPE_CHECKING:
    from rich.table import Table

    from casebound.runs import Run

_A_SECOND = 4  # pictures
_WINDOW_S = 60.0


@contextmanager
def live_picture(run: Run) -> Iterator[None]:
    """Show how `run` goes as long as the block lasts; then the picture goes away."""
    from rich.console import Console
    from rich.live import Live

    rate = Rate(run.project.clock)
    console = Console(stderr=True)
    with Live(get_renderable=lambda: _table(run, rate), console=console, refresh_per_second=_A_SECOND, transient=True):
        yield


class Rate:
    """How many calls a minute were sent, over the last minute or as long as is known."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def a_minute(self, sent: int) -> float | None:
        """Return the rate, given that `sent` calls were sent until now; None where nothing is known yet."""
        now = self._clock.monotonic()
        self._seen.append((now, sent))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_S:
            self._seen.popleft()
        before, sent_before = self._seen[0]
        return (sent - sent_before) * 60 / (now - before) if now > before else None


def lines_of(run: Run, rate: Rate) -> list[tuple[str, str]]:
    """Return what there is to tell about a run, each with its name."""
    tally, outcomes, dispatch = run.tally, run.outcomes, run.dispatch
    states = ", ".join(f"{number} {state}" for state, number in sorted(outcomes.states.items()))
    a_minute = rate.a_minute(tally.sent)
    told = [
        ("ended", (states or "none yet") + (f"; {outcomes.refused_total} refused" if outcomes.refused_total else "")),
        ("under way", f"{0 if dispatch is None else len(dispatch.under_way)}, calls in flight {tally.in_flight}"),
        ("calls", f"{tally.sent}" + ("" if a_minute is None else f", {a_minute:.0f} a minute")),
        ("tokens", f"{tally.input_tokens:,} in, {tally.output_tokens:,} out" + _unreported(tally.unreported_calls)),
    ]
    if dispatch is not None and dispatch.waits_until is not None:
        is_due = dispatch.waits_until <= run.project.clock.now()
        told.append(("waiting", "due" if is_due else f"until {format_time(dispatch.waits_until)}"))
    if run.gate.reason is not None:
        told.append(("stopping", run.gate.reason))
    return told


def _table(run: Run, rate: Rate) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, text in lines_of(run, rate):
        table.add_row(name, text)
    return table


def _unreported(calls: int) -> str:
    return f"; {counted(calls, 'call')} did not say" if calls else ""
