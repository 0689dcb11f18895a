"""Dispatch: claims the cases that may go on, hands them to a runner as jobs, and notes what became of each.

Rules:
- What a run knows of cases is counts, and what is under way: memory does not grow with their number.
- A case that ends with an error ends alone. What concerns all of them (settings that are wrong, a key that is refused,
  a full disk, an index that is gone, a budget of the whole run, an output that is closed) closes the gate: nothing new
  begins, what is in flight ends and is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from casebound.engine import Engine
from casebound.errors import CaseboundError, ProviderError
from casebound.gate import Stopped
from casebound.guard import plugin_guard
from casebound.pipeline import Pipeline
from casebound.store import Package, Workspace
from casebound.store.lock import exclusive
from casebound.workspace.index import Index
from casebound.workspace.leases import Leases
from casebound.workspace.outcome import Ended
from casebound.workspace.resuming import Resumption
from casebound.workspace.row import CaseRow, derive_row
from casebound.workspace.runner import Job, RunJobs
from casebound.workspace.selection import Selection

_MOST_AHEAD = 16
_LOOK_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one run is to do.

    Attributes:
        owner: who leases the cases, and the name of the run: no other has it.
        selection: which cases, and how far.
        most: cases under way at once.
        wait: stay until the times of pending retries have come.
        lease_s: how long a lease lasts that nobody renews, in seconds.
        leased: the one case to be taken further, which `owner` leased for this run and will give back; None: the run
            leases its cases itself.
        command: what works on one such case in another process; the package's id is added at its end.
    """

    owner: str
    selection: Selection
    most: int
    wait: bool
    lease_s: int
    leased: str | None = None
    command: tuple[str, ...] = ()


class Dispatch:
    """One run over a workspace.

    Attributes:
        under_way: the packages that are being worked on here.
        waits_until: when the next pending retry is due, while nothing else is left to do; None: there is work.
        failure: what ended the run before its time, None where nothing failed.
    """

    def __init__(
        self,
        engine: Engine,
        pipeline: Pipeline | Resumption,
        workspace: Workspace,
        index: Index,
        task: Task,
        tell: Callable[[Ended], None] = lambda ended: None,
    ) -> None:
        self.under_way: set[str] = set()
        self.waits_until: datetime | None = None
        self.failure: Exception | None = None
        self._engine = engine
        self._pipeline = pipeline
        self._workspace = workspace
        self._task = task
        self._tell = tell
        self._leases = Leases(
            index, task.owner, lease_s=task.lease_s, derive=self._derive, lent=task.leased is not None
        )
        self._changed = asyncio.Event()

    async def run(self, run_jobs: RunJobs) -> None:
        """Take every selected case further, until nothing is due or the gate is closed; then look at `failure`."""
        try:
            async with self._leases.kept(self._engine.clock, self._engine.gate), aclosing(self._jobs()) as jobs:
                with plugin_guard("the runner"):
                    await run_jobs(jobs, self._task.most)
        except CaseboundError as exc:
            self._end_all(exc, exc.code)

    def refused(self, error: ProviderError) -> None:
        """End the run: the server refuses everybody. On the event loop, before anybody else gets a turn."""
        self._end_all(error, error.code)

    # --- jobs -------------------------------------------------------------------------------------------------------

    async def _jobs(self) -> AsyncGenerator[Job, None]:
        if self._task.leased is not None:
            yield self._job(self._task.leased)
            return
        while claimed := await self._next():
            for package_id in claimed:
                if self._engine.gate.reason is not None:
                    return
                yield self._job(package_id)

    def _job(self, package_id: str) -> Job:
        return Job(package_id, lambda: self._work(package_id), (*self._task.command, package_id))

    async def _next(self) -> list[str]:
        """Return cases that are leased now, as soon as there are any; none: the run is over."""
        task = self._task
        ahead = min(_MOST_AHEAD, 1 + task.most // 8)
        try:
            while self._engine.gate.reason is None:
                self._changed.clear()
                if claimed := await self._leases.claim(ahead, task.selection):
                    return claimed
                if not await self._something_comes():
                    break
        except Stopped:
            return []
        except CaseboundError as exc:
            self._end_all(exc, exc.code)
        return []

    async def _something_comes(self) -> bool:
        """Wait until it is worth looking for cases again; False: nothing will come."""
        held = await self._leases.held()
        due = await self._leases.next_due(self._task.selection)
        if not held and not (self._task.wait and due is not None):
            return False
        seconds = _LOOK_AGAIN_S if held else float(self._task.lease_s)
        if due is not None:
            until_due = (due - self._engine.clock.now()).total_seconds()
            seconds = min(seconds, until_due if until_due > 0 else _LOOK_AGAIN_S)
        self.waits_until = None if held else due
        try:
            await self._engine.gate.unless_closed(self._changes_within(seconds))
        finally:
            self.waits_until = None
        return True

    async def _changes_within(self, seconds: float) -> None:
        waiting = {
            asyncio.ensure_future(self._engine.clock.sleep(seconds)),
            asyncio.ensure_future(self._changed.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    # --- one case ---------------------------------------------------------------------------------------------------

    async def _work(self, package_id: str) -> None:
        self.under_way.add(package_id)
        try:
            ended = await self._advance(package_id)
            self._end_where_due(ended)  # first: the index may fail for the same reason
            await self._leases.release(ended.row, ended.code)
        except CaseboundError as exc:
            self._end_all(exc, exc.code)
        else:
            self._note(ended)
        finally:
            self.under_way.discard(package_id)
            self._changed.set()

    async def _advance(self, package_id: str) -> Ended:
        try:
            return await self._locked(package_id)
        except Exception as exc:  # noqa: BLE001  # whatever is wrong with one case, the others go on
            return Ended(await self._leases.row(package_id), exc)

    async def _locked(self, package_id: str) -> Ended:
        package = self._workspace.package(package_id)
        with exclusive(package):
            error = await self._take_further(package)
            return Ended(self._derive_row(package), error)

    async def _take_further(self, package: Package) -> Exception | None:
        """Return what kept the case from going further: `Stopped`, or an error."""
        try:
            await self._pipeline.advance(package, self._task.selection.stop_after)
        except Exception as exc:  # noqa: BLE001  # whatever is wrong with one case, the others go on
            return exc
        return None

    def _derive(self, package_id: str) -> CaseRow:
        return self._derive_row(self._workspace.package(package_id))

    def _derive_row(self, package: Package) -> CaseRow:
        return derive_row(package, self._engine.bound.host.phases)

    def _end_where_due(self, ended: Ended) -> None:
        """End the run where what ended one case concerns all of them."""
        if ended.of_the_run and ended.code is not None:
            self._engine.gate.close(ended.code)
        elif ended.error is not None and ended.code is not None and ended.of_all:
            self._end_all(ended.error, ended.code)

    def _note(self, ended: Ended) -> None:
        """Tell that a case ended."""
        try:
            self._tell(ended)
        except OSError as exc:
            self._end_all(exc, "OUTPUT_WRITE")

    def _end_all(self, failure: Exception, reason: str) -> None:
        self.failure = self.failure or failure
        self._engine.gate.close(reason)
