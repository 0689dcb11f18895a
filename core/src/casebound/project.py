"""Settings, plugins and workspace opened once, and everything that can then be asked of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from casebound.binding import Bound, bind
from casebound.budget import Purse
from casebound.clock import Clock, SystemClock
from casebound.engine import Engine
from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host, build_host
from casebound.intake.admission import admit, read_report
from casebound.llm.provider import Provider
from casebound.llm.replay import ReplayProvider
from casebound.loop import Loop
from casebound.notes import note_on_given_up, notes_on_finished, notes_on_waiting
from casebound.offers import CORE_PHASES
from casebound.pipeline import Pipeline
from casebound.prices import Prices
from casebound.progress import Progress, derive_progress, latest_revision
from casebound.recording import open_replay
from casebound.result import Result, contradictions_told, derive_result, told_of_case
from casebound.revision import asks_the_same, begin_revision
from casebound.settings import Settings, database_url, load_settings
from casebound.store import Package, Workspace
from casebound.store.lock import exclusive
from casebound.store.package import parse_canonical
from casebound.store.preview import Preview
from casebound.workspace.admitting import admit_case
from casebound.workspace.place import is_used
from casebound.workspace.register import Register
from casebound.workspace.resuming import check_resumable, resume
from casebound.workspace.row import derive_row

if TYPE_CHECKING:
    from casebound.render.chain import Chain
    from casebound.workspace.importing import Import, ImportSummary
    from casebound.workspace.runner import RunJobs

T = TypeVar("T")
Path_ = str | os.PathLike[str]
_HOW_TO_CALL = "resolve(*paths) takes each path as an argument of its own, Project.resolve a list of them"


@dataclass(slots=True)
class Project:
    """Settings, plugins and workspace, opened once.

    Attributes:
        providers: by stage: a provider of the caller's own, which then answers for everybody who may be asked.
        on_step: called with package and step, for progress.
        notes: what the operator should be told beside the results; whoever shows one takes it out.
        replay: answers every stage from recorded replies, and nobody else is asked; None: nothing is replayed.
    """

    settings: Settings
    host: Host
    bound: Bound
    workspace: Workspace
    clock: Clock = field(default_factory=SystemClock)
    providers: dict[str, Provider] = field(default_factory=dict)
    on_step: Callable[[Package, str], None] = lambda package, step: None
    notes: list[str] = field(default_factory=list)
    replay: ReplayProvider | None = None
    _loop: Loop = field(default_factory=Loop)
    _purse: Purse | None = field(init=False)
    _engine: Engine = field(init=False)
    _pipeline: Pipeline = field(init=False)
    _register: Register = field(init=False)

    def __post_init__(self) -> None:
        # What is replayed is not sent: nothing is waited for, and nothing paid.
        self._purse = Purse(self.settings.budget, Prices(self.bound)) if self.replay is None else None
        self._engine = Engine(self.bound, self.clock, self._purse, self.providers, self._tell_step)
        if self.replay is not None:
            self.providers.update(dict.fromkeys(self.bound.stages, self.replay))
            self._engine.allow = self.replay.check
        self._pipeline = Pipeline(self._engine)
        self._register = Register(self.workspace, self.settings, self.clock, tuple(self.host.phases), self.notes.append)

    @classmethod
    def open(
        cls,
        project_config: Path_ | None = None,
        *,
        llm_config: Path_ | None = None,
        workspace: Path_ | None = None,
        clock: Clock | None = None,
        providers: Mapping[str, Provider] | None = None,
        replay_from: Path_ | None = None,
    ) -> Project:
        """Read the settings, load the plugins, and bind the two; nothing is written.

        Args:
            project_config: `casebound.toml`; None: the nearest one upwards.
            llm_config: a TOML file whose `[llm]` table replaces that of the settings.
            workspace: the folder of the packages; None: `.casebound/` beside the settings.
            clock: None: the machine's.
            providers: by stage, in place of those that the settings name.
            replay_from: a recording, or a package: its recorded replies answer every stage, and nobody else is asked.

        Raises:
            SettingsError: with file, key and what is accepted; `REPLAY_SOURCE` for replies that cannot be used;
                `REPLAY_MISMATCH` where the settings name another provider or model than answered then.
            PluginError: a plugin that is needed is broken or clashes.
        """
        settings = load_settings(
            None if project_config is None else Path(project_config),
            llm_config=None if llm_config is None else Path(llm_config),
        )
        host = build_host(settings.project.plugins)
        bound = bind(settings, host)
        folder = settings.path.parent / ".casebound" if workspace is None else Path(workspace)
        replay = None if replay_from is None else open_replay(Path(replay_from), bound)
        return cls(
            settings, host, bound, Workspace(folder), clock or SystemClock(), dict(providers or {}), replay=replay
        )

    # --- calls ------------------------------------------------------------------------------------------------------

    def resolve(
        self, reports: Iterable[Path_], *, package_id: str | None = None, stop_after: str | None = None
    ) -> Iterator[Result]:
        """Take each report as far as it goes and yield its result, in the order given.

        A report that cannot be admitted yields a result with its error and the next one goes on. A report that the
        workspace holds goes on with its case; a finished one is answered again without a call.

        Raises:
            SettingsError: an unknown phase, or one package id for several reports; before anything is written.
        """
        paths = _paths(reports)
        self._check_phase(stop_after)
        if package_id is not None and len(paths) > 1:
            raise SettingsError("USAGE", found=f"--package-id for {len(paths)} reports", expected="one report")
        self._reach_outside(stop_after)
        self.workspace.prepare()
        return (self._resolve_one(path, package_id, stop_after) for path in paths)

    def import_reports(
        self,
        paths: Iterable[Path_],
        *,
        package_id: str | None = None,
        on_report: Callable[[Import], None] = lambda running: None,
    ) -> ImportSummary:
        """Admit every report that files, folders and standard input (`-`) hold; no model is asked, and no database.

        A report that cannot be admitted is counted with its error and the next one goes on; one that the workspace
        holds is known. An interrupted import is finished by repeating it.

        Raises:
            SettingsError: what is no path; one package id for several reports.
            UnavailableError: the workspace cannot be written (`WORKSPACE_WRITE`), or its index not be reached
                (`INDEX_UNAVAILABLE`).
        """
        from casebound.workspace.importing import Import
        from casebound.workspace.index import Index

        named = _paths(paths)
        self.workspace.prepare()
        index = Index.open(self.workspace, self.settings, self.clock)

        def keep(packages: Sequence[Package]) -> None:
            index.upsert(derive_row(package, self.host.phases) for package in packages)

        try:
            running = Import(self.workspace, self.host, self.settings.intake.max_bytes, keep, on_report)
            return running.run(named, package_id=package_id)
        finally:
            index.close()

    def resume(self, case: str, *, stop_after: str | None = None) -> Result:
        """Go on with a blocked case, not before its retry time.

        Where settings, plugins, budget or replies refuse it, nothing is written: the case stays blocked.

        Raises:
            SettingsError: `CASE_UNKNOWN`; `RETRY_LATER` with the time; `RESUME_REFUSED` for a case in review.
        """
        self._check_phase(stop_after)
        package = self.workspace.find(case)
        self.workspace.prepare()
        with self._at_work(package):
            progress = check_resumable(package, self.clock.now())
            if progress.state != "interpreted":
                self._reach_outside(stop_after)
            return self._settle(package, None, resume(self._pipeline, package, stop_after))

    def revise(self, case: str, *, stop_after: str | None = None) -> Result:
        """Interpret a case anew under the settings at hand, beside its earlier interpretations, as far as it goes.

        Report, case and facts stay as they are; a phase before interpretation as `stop_after` freezes and asks nothing.

        Raises:
            SettingsError: `CASE_UNKNOWN`; `REVISE_REFUSED` where no interpretation has begun; `BINDING_CHANGED` where
                the facts hold for another state of the database; `BUDGET_REACHED`.
            ResearchError: the database does not answer; nothing has begun then.
        """
        self._check_phase(stop_after)
        package = self.workspace.find(case)
        self.workspace.prepare()
        with self._at_work(package):
            self._reach_outside(stop_after)
            if self._purse is not None:
                self._purse.check(package)
            waited = derive_progress(package).state == "retry_pending"
            before = latest_revision(package)
            following = begin_revision(self._engine, package)
            if following is None:
                self.notes.append(f"{package.root.name} goes on with {before.folder}, which was cut off")
            elif waited and asks_the_same(package, before, following):
                self.notes.append(note_on_given_up(package, before))
            return self._advance(package, None, stop_after)

    def reindex(self) -> dict[str, int]:
        """Make the index of the workspace again from its packages, and return how many cases are in each state.

        Raises:
            UnavailableError: `INDEX_UNAVAILABLE`; also where a broken file is to be replaced that somebody has open.
            SettingsError: `INDEX_NOT_OURS`: the settings name a file that was never an index.
        """
        from casebound.workspace.reindex import reindex

        self.workspace.prepare()
        with closing(reindex(self.workspace, self.settings, self.clock, tuple(self.host.phases))) as index:
            return index.states()

    def show(self, case: str) -> dict[str, Any]:
        """Return a case with who answered, plan, candidates, assessment and interpretation. Raises `CASE_UNKNOWN`."""
        package = self.workspace.find(case)
        revision = latest_revision(package)
        parts = {
            "plan": revision.plan,
            "candidates": revision.candidates,
            "assessment": revision.assessment,
            "interpretation": revision.interpretation,
        }
        found = {name: package.read(path) for name, path in parts.items()}
        with contradictions_told(package):
            result = derive_result(package)
            return {
                **result.to_json(),
                "answered_by": {stage: dict(who) for stage, who in result.answered_by.items()},
                **{name: None if data is None else parse_canonical(data, parts[name]) for name, data in found.items()},
            }

    def explain(self, case: str) -> Chain:
        """Return the chain mention → search → capture → candidate → assessment of a case. Raises `CASE_UNKNOWN`."""
        from casebound.render.chain import derive_chain

        package = self.workspace.find(case)
        with contradictions_told(package):
            return derive_chain(package)

    # --- many cases -------------------------------------------------------------------------------------------------

    @property
    def has_index(self) -> bool:
        """Whether the workspace has an index of its cases, as one has that `casebound run` works on."""
        return is_used(self.workspace, self.settings)

    @property
    def engine(self) -> Engine:
        """What all cases share."""
        return self._engine

    @property
    def pipeline(self) -> Pipeline:
        """What takes a case forward."""
        return self._pipeline

    def runner(self) -> RunJobs:
        """Return the runner that the settings name.

        Raises:
            SettingsError: nobody offers it (`SETTINGS_NAME`).
            PluginError: it does not import, or two plugins claim its name.
        """
        host, name = self.host, self.settings.workspace.runner
        spec = host.need("runners", name, pointer="workspace.runner", path=str(self.settings.path))
        return cast("RunJobs", host.load_named("runners", name, spec.run))

    def check_run(self, stop_after: str | None) -> None:
        """Refuse what no case could go on with, before anything is written: an unknown phase, a missing key.

        Raises:
            SettingsError: with what is accepted, or what is missing.
        """
        self._check_phase(stop_after)
        self._reach_outside(stop_after)

    def work(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns, on the event loop to which the connections of all providers belong."""
        return self._loop.run(work)

    # --- one report -------------------------------------------------------------------------------------------------

    def _resolve_one(self, path: str, package_id: str | None, stop_after: str | None) -> Result:
        try:
            data = read_report(Path(path), self.settings.intake.max_bytes)
            readers = list(self.host.readers.values())
            admission, _ = admit(
                data, name=path, readers=readers, max_bytes=self.settings.intake.max_bytes, package_id=package_id
            )
            package, _ = admit_case(self.workspace, admission, data, self.host)
            with self._at_work(package):
                self.notes += notes_on_finished(package, self.bound, replays=self.replay is not None)
                self.notes += notes_on_waiting(package, self.clock.now())
                return self._advance(package, path, stop_after)
        except CaseboundError as exc:
            return Result(
                report=path, case_id=None, package=None, state="refused", code=exc.code, resolver=None, error=str(exc)
            )

    def _advance(self, package: Package, report: str | None, stop_after: str | None) -> Result:
        return self._settle(package, report, self._pipeline.advance(package, stop_after))

    def _settle(self, package: Package, report: str | None, work: Coroutine[Any, Any, Progress]) -> Result:
        """Return what came of a case after `work` on it, which may have refused."""
        try:
            progress = self._loop.run(work)
        except CaseboundError as exc:
            with contradictions_told(package):
                return _failed(package, derive_result(package, report=report), exc)
        with contradictions_told(package):
            return derive_result(package, report=report, progress=progress)

    @contextmanager
    def _at_work(self, package: Package) -> Iterator[None]:
        with exclusive(package), self._register.at_work(package), package.flushing():  # before the index is told
            yield

    def _tell_step(self, package: Package, step: str) -> None:
        if not isinstance(package, Preview):
            self.on_step(package, step)

    # --- what the calls share ---------------------------------------------------------------------------------------

    def _check_phase(self, stop_after: str | None) -> None:
        phases = (*CORE_PHASES, *self.host.phases)
        if stop_after is not None and stop_after not in phases:
            raise SettingsError("USAGE", pointer="--stop-after", found=repr(stop_after), allowed=phases)

    def _reach_outside(self, stop_after: str | None) -> None:
        """Resolve every variable and key that may be needed: a missing one is told before anything is written."""
        if stop_after in ("admission", "construction"):
            return
        if self.bound.catalogs or self.bound.enrichments:
            database_url(self.settings)
        if stop_after != "research":
            self._engine.prepare_providers()

    def close(self) -> None:
        """Let go of the database, of the connections of all providers, and of the index."""
        self._loop.run(self._engine.aclose())
        self._loop.close()
        self._register.close()


def _failed(package: Package, result: Result, error: CaseboundError) -> Result:
    return replace(result, code=error.code, error=told_of_case(str(error), package))


def _paths(reports: Iterable[Path_]) -> list[str]:
    """Return paths as text. Raises `SettingsError` (`USAGE`) for what is none."""
    if isinstance(reports, str | bytes | os.PathLike):
        raise SettingsError("USAGE", found="a single path", expected="a list of paths", hint=_HOW_TO_CALL)
    found = list(reports)
    for report in found:
        if not isinstance(report, str | os.PathLike):
            raise SettingsError("USAGE", found=f"a {type(report).__name__}", expected="a path", hint=_HOW_TO_CALL)
    return [os.fsdecode(report) for report in found]
