"""The purse of a run: how many calls it may make, and how many a case may cost.

A case pays for all its interpretations: a new one does not open a new purse. What a case has spent stands on disk; what
the run has spent is known here only.
"""

from __future__ import annotations

from casebound.errors import SettingsError
from casebound.llm.attempts import AttemptLog
from casebound.progress import begun_revisions
from casebound.settings_model import Budget
from casebound.specs import CORE_STAGES
from casebound.store.package import Package


class Purse:
    """What one run may spend."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent = 0

    def spend(self, package: Package) -> None:
        """Pay for one call of the case in `package`, before it is made. Raises as `check`."""
        self.check(package)
        self._spent += 1

    def check(self, package: Package) -> None:
        """Refuse a further call.

        Raises:
            SettingsError: `BUDGET_REACHED`, with the limit that is reached.
        """
        budget = self._budget
        if budget.run_calls and self._spent >= budget.run_calls:
            raise _reached("budget.run_calls", f"{_counted(self._spent, 'call')} in this run")
        revisions = begun_revisions(package)
        calls = sum(len(AttemptLog(package, one, stage).numbers()) for one in revisions for stage in CORE_STAGES)
        if budget.case_calls and calls >= budget.case_calls:
            found = f"{_counted(calls, 'call')} for this case, in {_counted(len(revisions), 'interpretation')}"
            raise _reached("budget.case_calls", found)


def _reached(pointer: str, found: str) -> SettingsError:
    return SettingsError("BUDGET_REACHED", pointer=pointer, found=found)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
