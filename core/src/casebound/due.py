"""`casebound resume --due`: every blocked case whose time has come goes on, as if each had been named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from casebound.errors import CaseboundError
from casebound.project import Project
from casebound.result import Result, common_exit_status, contradictions_told, derive_result, told_of_case
from casebound.runs import Run, RunOptions
from casebound.workspace.outcome import Ended, RunSummary


class DueRun:
    """Resumes what is due, many cases at once; those whose time has not come are left, and counted.

    Args:
        tell: called with the result of each case, as soon as it is there.
        stop_after: the last phase to run.

    Attributes:
        run: what takes the cases further.
    """

    def __init__(self, project: Project, tell: Callable[[Result], None], *, stop_after: str | None = None) -> None:
        self.run = Run(project, RunOptions(stop_after=stop_after, resumes=True))
        self.run.tell = self._note
        self._project = project
        self._tell = tell
        self._statuses: set[int] = set()

    def execute(self, began: Callable[[asyncio.Task[None]], None] = lambda task: None) -> RunSummary:
        """Resume, and return what came of it: `left` are the blocked cases that were left, `retry_at` is the next time.

        Raises: as `Run.execute`.
        """
        return self.run.execute(began)

    def exit_status(self, summary: RunSummary) -> int:
        """Return the documented exit status: that of the results, unless the run itself was stopped."""
        return summary.exit_status if summary.stopped else common_exit_status(self._statuses)

    def _note(self, ended: Ended) -> None:
        result = self._result(ended)
        self._statuses.add(result.exit_status)
        self._tell(result)

    def _result(self, ended: Ended) -> Result:
        package, row = self._project.workspace.package(ended.row.package_id), ended.row
        try:
            with contradictions_told(package):
                result = derive_result(package)
        except CaseboundError as exc:
            return Result(None, row.case_id, str(package.root), row.state, exc.code, None, error=str(exc))
        if ended.message is None:
            return result
        return replace(result, code=ended.code, error=told_of_case(ended.message, package))
