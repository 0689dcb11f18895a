"""`--log json`: what a run does, on standard error, one canonical JSON object a line.

A line names the event, when it happened, and the case and package that it is about. It holds codes, counts and messages
of ours: nothing of a report, of a reply, or of a request.
"""

from __future__ import annotations

import click

from casebound.canonical import canonical_bytes
from casebound.clock import Clock, format_time
from casebound.contracts.case import Admission
from casebound.errors import CaseboundError
from casebound.gate import INTERRUPTED
from casebound.store import Package, layout
from casebound.workspace.outcome import Ended, RunSummary


class JsonLog:
    """Writes the events of one run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cases: dict[str, str | None] = {}  # of the packages that are under way

    def step(self, package: Package, step: str) -> None:
        """A case begins a step."""
        name = package.root.name
        if name not in self._cases:
            self._cases[name] = _case_id(package)
        self._write("step", case=self._cases[name], package=name, step=step)

    def ended(self, ended: Ended) -> None:
        """A case left the run."""
        row = ended.row
        self._cases.pop(row.package_id, None)
        self._write(
            "refused" if ended.refused else "ended",
            case=row.case_id,
            package=row.package_id,
            state=row.state,
            code=ended.code or row.code,
            retry_at=row.retry_at,
            calls=row.calls,
            **({} if ended.message is None else {"error": ended.message}),
        )

    def stopping(self, reason: str, in_flight: int) -> None:
        """Nothing new begins."""
        self._write("stopping", reason=reason, in_flight=in_flight)

    def ended_at_once(self, in_flight: int) -> None:
        """Nobody waits for the calls in flight any more."""
        self._write("ended_at_once", reason=INTERRUPTED, in_flight=in_flight)

    def failed(self, error: CaseboundError) -> None:
        """The command itself failed."""
        self._write("failed", code=error.code, error=str(error))

    def summary(self, summary: RunSummary) -> None:
        """The run is over."""
        self._write("over", **summary.to_json())

    def _write(self, event: str, **facts: object) -> None:
        line = canonical_bytes({"at": format_time(self._clock.now()), "event": event, **facts})
        click.echo(line, err=True)


def _case_id(package: Package) -> str | None:
    try:
        admission = package.load_if(layout.ADMISSION, Admission)
    except CaseboundError:
        return None  # the step itself will tell
    return None if admission is None else admission.case_id
