"""What a run comes to: how each case left it, and what all of them together say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from casebound.errors import CODES, CaseboundError
from casebound.gate import INTERRUPTED, Stopped
from casebound.prices import money_text
from casebound.result import told_of_case
from casebound.settings import redact_environment
from casebound.store import Package
from casebound.workspace.row import CaseRow

BUSY, BUDGET, BROKEN_CONTRACT = "CASE_BUSY", "BUDGET_REACHED", "CONTRACT_BROKEN"
_MOST_TOLD = 20
_UNAVAILABLE, _INTERRUPTED_STATUS = 3, 130


@dataclass(frozen=True, slots=True)
class Ended:
    """How one case left the run.

    Attributes:
        row: what its files say now.
        error: what it ended with, `Stopped` where the run let it go no further; None: it went as far as it could.
    """

    row: CaseRow
    error: Exception | None = None

    @property
    def code(self) -> str | None:
        """Why the run left it as it was, None where it did not."""
        if self.error is None:
            return None
        if isinstance(self.error, Stopped):
            return self.error.reason
        return self.error.code if isinstance(self.error, CaseboundError) else BROKEN_CONTRACT

    @property
    def message(self) -> str | None:
        """Its error for people, without a secret; None where there is none."""
        if self.error is None or isinstance(self.error, Stopped):
            return None
        if isinstance(self.error, CaseboundError):
            return told_of_case(str(self.error), Package(Path(self.row.package_id)))
        found = redact_environment(f"{type(self.error).__name__}: {self.error}".strip().splitlines()[0])
        return str(CaseboundError(BROKEN_CONTRACT, found=found, hint="report this as a bug, with what --debug shows"))

    @property
    def of_the_run(self) -> bool:
        """Whether what ended it is none of its own: the gate, or a budget of the whole run."""
        if isinstance(self.error, CaseboundError):
            return self.error.code == BUDGET and (self.error.pointer or "").startswith("budget.run")
        return isinstance(self.error, Stopped)

    @property
    def refused(self) -> bool:
        """Whether it was left as it was for a reason of its own."""
        return self.error is not None and self.code != BUSY and not self.of_the_run


@dataclass(slots=True)
class Outcomes:
    """What has ended so far, in numbers, and the first cases that were refused.

    Attributes:
        states: how often a case ended in each state.
    """

    states: Counter[str] = field(default_factory=Counter)
    refused: list[dict[str, str | None]] = field(default_factory=list)
    refused_total: int = 0

    def note(self, ended: Ended) -> None:
        """Count one case."""
        self.states[ended.row.state] += 1
        if ended.refused:
            self.refused_total += 1
            if len(self.refused) < _MOST_TOLD:
                self.refused.append({"package": ended.row.package_id, "code": ended.code, "error": ended.message})


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run came to; `to_json` is the object that `run --format json` prints.

    Attributes:
        cases: by state, how many of the selected cases are there now.
        had: how many of them the run took further, or tried to.
        left: selected cases that are not done: they wait, are refused, or belong to another process.
        dispatches: model calls that were sent.
        input_tokens, output_tokens: of these calls, as reported; None where one did not report.
        stopped: why the run ended before its time; None: it did not.
        retry_at: when the next of the selected cases that wait may go on, None where no time makes a difference.
        refused: the first cases that were left as they were: package, code, error.
        refused_total: how many were.
        error: what ended the run before its time, where that was an error of the whole run.
        is_priced: whether the settings give any price; then `money` is what the calls cost, None where nobody knows.
    """

    cases: Mapping[str, int]
    had: int
    left: int
    dispatches: int
    input_tokens: int | None
    output_tokens: int | None
    stopped: str | None
    retry_at: str | None
    refused: tuple[Mapping[str, str | None], ...]
    refused_total: int
    error: str | None = None
    is_priced: bool = False
    money: Decimal | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the documented keys; `error` only where there is one, `money` only where there are prices."""
        line: dict[str, Any] = {
            "cases": dict(sorted(self.cases.items())),
            "had": self.had,
            "left": self.left,
            "dispatches": self.dispatches,
            "tokens": {"input": self.input_tokens, "output": self.output_tokens},
            "stopped": self.stopped,
            "retry_at": self.retry_at,
            "refused": [dict(one) for one in self.refused],
            "refused_total": self.refused_total,
        }
        if self.is_priced:
            line["money"] = None if self.money is None else money_text(self.money)
        if self.error is not None:
            line["error"] = self.error
        return line

    @property
    def exit_status(self) -> int:
        """The documented exit status of the run."""
        if self.stopped == INTERRUPTED:
            return _INTERRUPTED_STATUS
        row = CODES.get(self.stopped or "")
        if row is not None and row.exit_status == _UNAVAILABLE:
            return _UNAVAILABLE
        return int(bool(self.stopped or self.left or self.refused_total or self.error))
