"""`casebound.run`: takes the cases of a workspace further, as many at once as there is room for."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain

from casebound.contracts.case import Admission
from casebound.descriptors import make_room
from casebound.engine import unheard
from casebound.errors import CaseboundError, SettingsError, UnavailableError
from casebound.gate import Gate
from casebound.llm.tally import Tally
from casebound.project import Path_, Project
from casebound.store import Workspace, layout
from casebound.workspace.account import Account, take_account
from casebound.workspace.dispatch import Dispatch, Task
from casebound.workspace.forecast import Forecast, forecast
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.local import run as run_here
from casebound.workspace.outcome import Ended, Outcomes, RunSummary
from casebound.workspace.reindex import reconcile
from casebound.workspace.resuming import Resumption
from casebound.workspace.selection import Selection

MOST_JOBS = 4096
# Objects, after which the collector looks: at Python's 700 it would look at every case for each few of them.
_COLLECTED_AFTER = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run is asked for; see `run`.

    Attributes:
        leased: the owner of the lease on the one case of `package_id`, who started this run for it.
        resumes: take the blocked cases whose time has come, and no others; here, whatever runner the settings name.
    """

    case_id: str | None = None
    package_id: str | None = None
    stop_after: str | None = None
    max_dispatches: int | None = None
    jobs: int | None = None
    wait: bool = False
    leased: str | None = None
    resumes: bool = False


def run(
    *,
    project_config: Path_ | None = None,
    llm_config: Path_ | None = None,
    workspace: Path_ | None = None,
    case_id: str | None = None,
    package_id: str | None = None,
    stop_after: str | None = None,
    max_dispatches: int | None = None,
    jobs: int | None = None,
    wait: bool = False,
) -> RunSummary:
    """Take every case of the workspace as far as it goes now, and tell what came of it.

    Args:
        project_config: `casebound.toml`; None: the nearest one upwards from the current folder.
        llm_config: a TOML file whose `[llm]` table replaces that of the settings.
        workspace: folder of the packages; None: `.casebound/` beside the settings.
        case_id: only the cases of this id.
        package_id: only this package.
        stop_after: the last phase to run.
        max_dispatches: most model calls; one more is never sent.
        jobs: cases at once; None: `[limits] in_flight`.
        wait: stay until pending retries have come due.

    Raises:
        CaseboundError: nothing could be done; what happened to one case stands in the summary.
        KeyboardInterrupt: the run was interrupted; every case can go on.
    """
    options = RunOptions(
        case_id=case_id,
        package_id=package_id,
        stop_after=stop_after,
        max_dispatches=max_dispatches,
        jobs=jobs,
        wait=wait,
    )
    project = Project.open(project_config, llm_config=llm_config, workspace=workspace)
    try:
        return Run(project, options).execute()
    finally:
        project.close()


class Run:
    """One run over the workspace of a project.

    Attributes:
        gate: closing it lets the run end, with everything that is in flight recorded.
        tally: of the model calls so far.
        outcomes: what has ended so far.
        dispatch: what works on it now, None before that.
        tell: called with each case that ended.
    """

    def __init__(self, project: Project, options: RunOptions, *, gate: Gate | None = None) -> None:
        """Check everything that can be known beforehand; nothing is written.

        Raises:
            SettingsError: no workspace; an unknown phase, runner, package or case; a missing variable or key; a number
                that is none.
        """
        self.project = project
        self.options = options
        self.tally = Tally()
        self.outcomes = Outcomes()
        self.dispatch: Dispatch | None = None
        self.tell: Callable[[Ended], None] = lambda ended: None
        self.jobs = options.jobs or project.settings.limits.in_flight
        _check_numbers(options)
        _check_workspace(project.workspace)
        project.check_run(options.stop_after)
        # A process that a runner started for one case does the work itself.
        self._run_jobs = run_here if options.resumes or options.leased else project.runner()
        self._selection = self._select()
        make_room(self.jobs)
        self.gate = gate or Gate(options.max_dispatches)

    def execute(self, began: Callable[[asyncio.Task[None]], None] = lambda task: None) -> RunSummary:
        """Run, and return what came of it; `began` is called with the task that may be cancelled to end it at once.

        Raises:
            CaseboundError: index or workspace cannot be used at all.
            OSError: `tell` could not tell.
        """
        project, owner = self.project, self.options.leased or new_owner()
        engine = project.engine
        project.workspace.prepare()
        with closing(Index.open(project.workspace, project.settings, project.clock)) as index:
            if self.options.leased is None:
                reconcile(index, project.workspace, tuple(project.host.phases))
            else:
                _check_lease(index, self.options.package_id, owner)
            dispatch = self._dispatch(index, owner)
            engine.gate, engine.tally, engine.on_refusal = self.gate, self.tally, dispatch.refused
            try:
                with _collecting_less():
                    project.work(self._supervised(dispatch, began))
            finally:
                engine.gate, engine.tally, engine.on_refusal = Gate(), Tally(), unheard
            if isinstance(dispatch.failure, OSError):
                raise dispatch.failure
            return self._summary(take_account(index, owner, self._selection), dispatch.failure)

    def forecast(self) -> Forecast:
        """Return what the run would send, and at most spend; nothing is sent, and nothing written."""
        project, options = self.project, self.options
        return project.work(
            forecast(
                project.engine,
                project.pipeline,
                project.workspace,
                self._selection,
                wait=options.wait,
                max_dispatches=options.max_dispatches,
            )
        )

    def _dispatch(self, index: Index, owner: str) -> Dispatch:
        project, options = self.project, self.options
        task = Task(
            owner=owner,
            selection=self._selection,
            most=self.jobs,
            wait=options.wait,
            lease_s=project.settings.workspace.lease_s,
            leased=options.package_id if options.leased else None,
            command=self._command(owner),
        )
        pipeline = Resumption(project.pipeline) if options.resumes else project.pipeline
        return Dispatch(project.engine, pipeline, project.workspace, index, task, self._note)

    async def _supervised(self, dispatch: Dispatch, began: Callable[[asyncio.Task[None]], None]) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine that runs has one
        self.dispatch = dispatch
        began(task)
        await dispatch.run(self._run_jobs)

    def _note(self, ended: Ended) -> None:
        self.outcomes.note(ended)
        self.tell(ended)

    def _summary(self, account: Account, failure: Exception | None) -> RunSummary:
        purse = self.project.engine.purse
        return RunSummary(
            cases=account.cases,
            had=account.had,
            left=account.left,
            dispatches=self.tally.sent,
            input_tokens=self.tally.input_tokens,
            output_tokens=self.tally.output_tokens,
            unreported_calls=self.tally.unreported_calls,
            stopped=self.gate.reason,
            retry_at=account.retry_at,
            refused=tuple(self.outcomes.refused),
            refused_total=self.outcomes.refused_total,
            error=None if failure is None else str(failure),
            is_priced=purse is not None and purse.is_priced,
            money=None if purse is None else purse.paid,
        )

    def _select(self) -> Selection:
        """Return what the options name. Raises `SettingsError` (`CASE_UNKNOWN`) where the workspace holds no such."""
        case_id, package_id, workspace = self.options.case_id, self.options.package_id, self.project.workspace
        stop_after = self.options.stop_after
        if package_id is not None:
            if not workspace.package(package_id).exists(layout.PACKAGE) or not _is_of(workspace, package_id, case_id):
                raise workspace.unknown(package_id if case_id is None else f"{package_id} of case {case_id}")
            return Selection(package_ids=(package_id,), stop_after=stop_after)
        if case_id is None:
            return Selection(stop_after=stop_after, resumes=self.options.resumes)
        if not any(_is_of(workspace, one, case_id) for one in chain([case_id], workspace.package_ids())):
            raise workspace.unknown(case_id)
        return Selection(case_ids=(case_id,), stop_after=stop_after)

    def _command(self, owner: str) -> tuple[str, ...]:
        """Return the command that takes further one case which `owner` leases, up to its package's id."""
        project, options = self.project, self.options
        named = {
            "--project-config": project.settings.path,
            "--llm-config": project.settings.llm_path if project.settings.llm_path != project.settings.path else None,
            "--workspace": project.workspace.root,
            "--stop-after": options.stop_after,
            "--leased": owner,
        }
        given = [part for name, value in named.items() if value is not None for part in (name, str(value))]
        return (sys.executable, "-P", "-m", "casebound", "run", *given, "--format", "json", "--package-id")


def _is_of(workspace: Workspace, package_id: str, case_id: str | None) -> bool:
    """Tell whether a package is of that case; of None every one is, and one that cannot be read is of no other."""
    if case_id is None:
        return True
    with suppress(CaseboundError):
        admission = workspace.package(package_id).load_if(layout.ADMISSION, Admission)
        return admission is not None and admission.case_id == case_id
    return False


@contextmanager
def _collecting_less() -> Iterator[None]:
    """Let the collector pass over what is loaded by now, and look less often at what comes."""
    before = gc.get_threshold()
    if 0 < before[0] < _COLLECTED_AFTER:  # 0: whoever calls us has switched it off
        gc.set_threshold(_COLLECTED_AFTER, *before[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def _check_lease(index: Index, package_id: str | None, owner: str) -> None:
    """Refuse to work on a case that `owner` does not lease. Raises `UnavailableError` (`CASE_BUSY`)."""
    row = None if package_id is None else index.get(package_id)
    if row is None or row.lease_owner != owner:
        raise UnavailableError("CASE_BUSY", where=f"package {package_id}", found="a case that another run leases")


def _check_workspace(workspace: Workspace) -> None:
    if not workspace.root.is_dir():
        expected = "the folder of a workspace; `casebound import` makes one"
        raise SettingsError(
            "USAGE", pointer="--workspace", path=str(workspace.root), found="no such folder", expected=expected
        )


def _check_numbers(options: RunOptions) -> None:
    for name, number, least in (("--jobs", options.jobs, 1), ("--max-dispatches", options.max_dispatches, 0)):
        most = MOST_JOBS if name == "--jobs" else sys.maxsize
        if number is not None and (type(number) is not int or not least <= number <= most):
            expected = f"a number from {least}" + (f" to {MOST_JOBS}" if name == "--jobs" else "")
            raise SettingsError("USAGE", pointer=name, found=repr(number), expected=expected, hint="give such a number")
