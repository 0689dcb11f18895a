"""Dispatch: claims the cases that may go on, hands them to a runner as jobs, and notes what became of each.

Rules:
- What a run knows of cases is counts, and what is under way: memory does not grow with their number.
- A case that ends with an error ends alone. What concerns all of them (a full disk, an index that is gone, a budget of
  the whole run, an output that is closed) closes the gate: nothing new begins, what is in flight ends and is recorded.
- Every call to the index is made in a thread of its own, one after the other: look-ups that are slow hold up no lease.
- A lease ends with its job, and no lease outlives the run, however it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import ParamSpec, TypeVar

from casebound.clock import parse_time
from casebound.engine import Engine
from casebound.errors import CaseboundError
from casebound.gate import Stopped
from casebound.pipeline import Pipeline
from casebound.store import Package, Workspace
from casebound.store.lock import exclusive
from casebound.workspace.index import Index
from casebound.workspace.outcome import BUDGET, Ended
from casebound.workspace.row import CaseRow, derive_row
from casebound.workspace.runner import Job, RunJobs
from casebound.workspace.selection import Selection

P = ParamSpec("P")
T = TypeVar("T")

# Not the case's own: whoever goes on after one of these fails in the same way, and pays for it.
_OF_ALL = ("WORKSPACE_WRITE",)
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
        leased: the one case to be taken further, which somebody else leases to this run's owner and will free; None:
            the run leases its cases itself.
        command: what works on one such case in another process; the package's id is added at its end.
    """

    owner: str
    selection: Selection
    most: int
    wait: bool
    lease_s: int
    leased: str | None = None
    command: tuple[str, ...] = ()


@dataclass(slots=True)
class Dispatch:
    """One run over a workspace.

    Attributes:
        tell: called with each case that ended.
        under_way: the packages that are being worked on here.
        waits_until: when the next pending retry is due, while nothing else is left to do; None: there is work.
    """

    engine: Engine
    pipeline: Pipeline
    workspace: Workspace
    index: Index
    task: Task
    tell: Callable[[Ended], None] = lambda ended: None
    under_way: set[str] = field(default_factory=set)
    waits_until: datetime | None = None
    _failure: BaseException | None = None
    _to_release: list[tuple[CaseRow, str | None]] = field(default_factory=list)
    _releasing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="casebound-index")

    async def run(self, run_jobs: RunJobs) -> None:
        """Take every selected case further, until nothing is due or the gate is closed.

        Raises:
            CaseboundError: what ended the run before its time, when all that was under way has ended.
            OSError: the output is closed.
        """
        try:
            async with self._leases():
                await run_jobs(self._jobs(), self.task.most)
        finally:
            self._pool.shutdown(wait=False)
        if self._failure is not None:
            raise self._failure

    # --- jobs -------------------------------------------------------------------------------------------------------

    async def _jobs(self) -> AsyncIterator[Job]:
        if self.task.leased is not None:
            yield self._job(self.task.leased)
            return
        while claimed := await self._next():
            for package_id in claimed:
                if self.engine.gate.reason is not None:
                    return
                yield self._job(package_id)

    def _job(self, package_id: str) -> Job:
        return Job(package_id, lambda: self._work(package_id), (*self.task.command, package_id))

    async def _next(self) -> list[str]:
        """Return cases that are leased now, as soon as there are any; none: the run is over."""
        task = self.task
        ahead = min(_MOST_AHEAD, 1 + task.most // 8)
        while self.engine.gate.reason is None:
            try:
                claimed = await self._ask(
                    self.index.claim, task.owner, run=task.owner, limit=ahead, selection=task.selection
                )
                # A process that was stopped for long finds its own leases lost, though it still works on the cases.
                if claimed := [one for one in claimed if one not in self.under_way]:
                    return claimed
                if not await self._something_comes():
                    break
            except Stopped:
                break
            except CaseboundError as exc:
                self._end_all(exc, exc.code)
        return []

    async def _something_comes(self) -> bool:
        """Wait until it is worth looking for cases again; False: nothing will come."""
        held = await self._ask(self.index.held, self.task.owner)
        at = await self._ask(self.index.next_due, self.task.owner, self.task.selection)
        due = None if at is None else parse_time(at)
        if not held and not (self.task.wait and due is not None):
            return False
        seconds = _LOOK_AGAIN_S if held else float(self.task.lease_s)
        if due is not None:
            seconds = min(seconds, max((due - self.engine.clock.now()).total_seconds(), 0.0))
        self.waits_until = None if held else due
        self._changed.clear()
        try:
            await self.engine.gate.unless_closed(self._changes_within(seconds))
        finally:
            self.waits_until = None
        return True

    async def _changes_within(self, seconds: float) -> None:
        sleep = asyncio.ensure_future(self.engine.clock.sleep(seconds))
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleep, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            changed.cancel()

    # --- one case ---------------------------------------------------------------------------------------------------

    async def _work(self, package_id: str) -> None:
        self.under_way.add(package_id)
        try:
            ended = await self._advance(package_id)
            await self._release(ended)
        finally:
            self.under_way.discard(package_id)
        self._note(ended)
        self._changed.set()

    async def _advance(self, package_id: str) -> Ended:
        try:
            package = self.workspace.package(package_id)
            with exclusive(package):
                error = await self._take_further(package)
                return Ended(derive_row(package, self._phases), error)
        except Exception as exc:  # noqa: BLE001  # whatever is wrong with one case, the others go on
            return Ended(await self._row_as_known(package_id), exc)

    async def _take_further(self, package: Package) -> Exception | None:
        """Return what kept the case from going further: `Stopped`, or an error."""
        try:
            await self.pipeline.advance(package, self.task.selection.stop_after)
        except Exception as exc:  # noqa: BLE001  # whatever is wrong with one case, the others go on
            return exc
        return None

    async def _row_as_known(self, package_id: str) -> CaseRow:
        """Return the row of a case that nobody can look at now, or that another process holds."""
        with suppress(CaseboundError):
            return derive_row(self.workspace.package(package_id), self._phases)
        with suppress(CaseboundError):
            return await self._ask(self.index.get, package_id) or CaseRow(package_id)
        return CaseRow(package_id)

    @property
    def _phases(self) -> Sequence[str]:
        return tuple(self.engine.bound.host.phases)

    def _note(self, ended: Ended) -> None:
        """Tell that a case ended, and end the run where that concerns all of them."""
        if ended.of_the_run:
            self.engine.gate.close(ended.code or BUDGET)
        elif ended.error is not None and ended.code in _OF_ALL:
            self._end_all(ended.error, ended.code)
        try:
            self.tell(ended)
        except OSError as exc:
            self._end_all(exc, "OUTPUT_WRITE")

    def _end_all(self, failure: Exception, reason: str) -> None:
        self._failure = self._failure or failure
        self.engine.gate.close(reason)

    # --- the index --------------------------------------------------------------------------------------------------

    async def _ask(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*arguments, **named))

    async def _release(self, ended: Ended) -> None:
        """Write a row and free its lease, together with all that have ended while the ones before were written."""
        self._to_release.append((ended.row, ended.code))
        async with self._releasing:
            rows, self._to_release = self._to_release, []
            if not rows:
                return
            try:
                await self._ask(self.index.release_all, self.task.owner, rows, run=self.task.owner)
            except CaseboundError as exc:
                self._end_all(exc, exc.code)

    @asynccontextmanager
    async def _leases(self) -> AsyncIterator[None]:
        """Renew the leases of this run as long as the block lasts, and end those that it leaves."""
        if self.task.leased is not None:
            yield
            return
        renewing = asyncio.ensure_future(self._renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.shield(asyncio.ensure_future(self._let_go()))

    async def _renew(self) -> None:
        while True:
            await self.engine.clock.sleep(self.task.lease_s / 3)
            with suppress(CaseboundError):  # the lock on each package still holds; whoever claims next tells
                await self._ask(self.index.renew, self.task.owner)

    async def _let_go(self) -> None:
        """Free what is still leased, each case as its files are now."""
        try:
            left = await self._ask(self.index.held, self.task.owner)
            rows = []
            for package_id in left:
                with suppress(CaseboundError):
                    rows.append((derive_row(self.workspace.package(package_id), self._phases), None))
            await self._ask(self.index.release_all, self.task.owner, rows)
            await self._ask(self.index.drop, self.task.owner)
        except CaseboundError as exc:
            self._failure = self._failure or exc
