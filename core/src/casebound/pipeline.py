"""One case's way: each step reads files, decides, and writes files; the next one reads those, never memory.

So a restart means looking which files exist. A step that waits has written an event that says for what. Nothing here
knows a command, a terminal or another case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from casebound.binding import Bound, build_provider
from casebound.canonical import digest_of
from casebound.clock import Clock, format_time
from casebound.contracts.assessment import Assessment
from casebound.contracts.base import Artifact
from casebound.contracts.capture import Capture, EntityCapture, Facts
from casebound.contracts.case import Admission, Build, Case
from casebound.contracts.interpretation import (
    Event,
    Interpretation,
    InterpretationContext,
    InterpretationInput,
    PhaseMark,
    Seal,
    SealedFile,
)
from casebound.contracts.plan import Candidates, Plan, ResolutionInput
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import ResearchError, SettingsError
from casebound.frozen import find_protocol, find_rules, offered
from casebound.guard import guarded
from casebound.intake.admission import read_again
from casebound.intake.build import derive_case, freeze_build
from casebound.interpretation.context import derive_context
from casebound.interpretation.freeze import changed_models, freeze_interpretation
from casebound.interpretation.interpret import derive_hypothesis_context, derive_interpretation
from casebound.interpretation.summary import derive_summary
from casebound.llm.provider import Provider
from casebound.llm.stage import SAFETY_DELAY_S, Conversation, converse
from casebound.offers import CORE_PHASES
from casebound.progress import Progress, derive_progress, latest_revision
from casebound.research.catalog import CatalogSource, open_database
from casebound.research.enrichment import MOST_ENTITIES, derive_facts, pairs_of
from casebound.research.snapshot import changed
from casebound.resolution.assess import NOTHING_SEARCHED, derive_assessment
from casebound.resolution.freeze import changed_settings, freeze_resolution
from casebound.resolution.lookup import derive_candidates, queries
from casebound.resolution.plan import derive_plan
from casebound.store import layout
from casebound.store.captures import kept_captures, load_capture
from casebound.store.events import EventLog
from casebound.store.layout import Revision
from casebound.store.package import Package

A = TypeVar("A", bound=Artifact)
ENTITY_ROWS = 50


@dataclass(slots=True)
class Pipeline:
    """Takes cases forward under one set of bound settings.

    Attributes:
        spend: called with the package before each request; raises `BUDGET_REACHED` where nothing more may be sent.
        providers: by stage, made on first use; a caller may put its own here.
        report: called with the package and the name of each step that begins, for progress.
    """

    bound: Bound
    clock: Clock
    spend: Callable[[Package], None]
    providers: dict[str, Provider] = field(default_factory=dict)
    report: Callable[[Package, str], None] = lambda package, step: None
    _source: CatalogSource | None = None
    _build: Build | None = None

    async def advance(self, package: Package, stop_after: str | None = None) -> Progress:
        """Take the case as far as it goes, or to the end of phase `stop_after`, and return where it then stands.

        Raises:
            CaseboundError: what neither waits nor is the case's own fault (settings, budget, a broken package).
        """
        before = derive_progress(package)
        if before.state in ("blocked", "review") or (before.retry_at and self.clock.now() < before.retry_at):
            return before
        if before.state != "interpreted":
            await self._steps(package, stop_after)
        progress = derive_progress(package)
        if progress.state == "interpreted":
            await self._phases(package, stop_after)
        return progress

    async def _steps(self, package: Package, stop_after: str | None) -> None:
        if stop_after == "admission":
            return
        case = self._construct(package)
        if stop_after == "construction":
            return
        facts = await self._research(package, case)
        if facts is None or stop_after == "research":
            return
        await Analysis(self, package, case, facts).run()

    def _construct(self, package: Package) -> Case:
        self.report(package, "construction")
        admission = package.load(layout.ADMISSION, Admission)
        build = package.load_if(layout.BUILD, Build)
        if build is None:
            # The same for every case under these settings, and by far the largest table in one.
            build = self._build = self._build or freeze_build(self.bound.references, self.bound.headings)
            package.create_artifact(layout.BUILD, build)
        case = package.load_if(layout.CASE, Case)
        if case is None:
            report = read_again(package.require(layout.source(admission.file)), admission, self.bound.host.readers)
            case = derive_case(admission, report, build)
            package.create_artifact(layout.CASE, case)
        return case

    async def _research(self, package: Package, case: Case) -> Facts | None:
        facts = package.load_if(layout.FACTS, Facts)
        if facts is not None:
            return facts
        self.report(package, "research")
        try:
            kept = kept_captures(package, layout.ENTITY_CAPTURES, EntityCapture)
            fetched, captures = await asyncio.to_thread(self._fetch, case, kept)
        except ResearchError as exc:
            self.block(package, "research", exc)
            return None
        except SettingsError as exc:
            raise exc.placed(str(self.bound.settings.path)) from None
        for capture in captures:
            package.create_artifact(layout.entity_capture(digest_of(capture.to_bytes())), capture)
        package.create_artifact(layout.FACTS, fetched)
        return fetched

    def _fetch(self, case: Case, kept: Sequence[EntityCapture]) -> tuple[Facts, Sequence[EntityCapture]]:
        """Return the facts and their captures; what a run that ended early has `kept` is not asked for again."""
        types = {entity.type for entity in case.entities[:MOST_ENTITIES]}
        rules = [rule for rule in self.bound.enrichments if rule.entity_type in types]
        if not rules:
            return derive_facts(case, None, (), {}, None), ()
        source = self.source()
        frozen = [source.freeze_rule(rule) for rule in rules]
        pairs = pairs_of(case, frozen)
        captures = {(capture.rule, capture.entity_id): capture for capture in kept}
        self.refuse_change([f"the rule {rule.name}" for rule, number in captures if (rule, number) not in pairs])
        missing = [pair for pair in pairs if pair not in captures]
        captures |= zip(missing, source.entity_rows_all(missing, ENTITY_ROWS), strict=True)
        first = captures[pairs[0]]
        self.refuse_change([text for capture in captures.values() for text in changed(first.binding, capture.binding)])
        by_pair = {(rule.name, number): captures[rule, number] for rule, number in pairs}
        facts = derive_facts(case, first.binding, frozen, by_pair, first.limits)
        return facts, [captures[pair] for pair in pairs]

    def refuse_change(self, differences: Sequence[str]) -> None:
        """Raise `BINDING_CHANGED` where the settings are not those that an unfinished case froze."""
        if differences:
            found = "; ".join(dict.fromkeys(differences))
            raise SettingsError("BINDING_CHANGED", path=str(self.bound.settings.path), found=found)

    def source(self) -> CatalogSource:
        """Return the operator's database, read only, opened once for all cases. Raises `SettingsError`."""
        if self._source is None:
            self._source = open_database(self.bound.settings)
        return self._source

    def provider(self, stage: str) -> Provider:
        """Return who answers `stage`; its secrets are resolved now. Raises `SettingsError`, `PluginError`."""
        if stage not in self.providers:
            model = self.bound.stages[stage]
            same = next(
                (name for name, other in self.bound.stages.items() if name in self.providers and other == model), None
            )
            self.providers[stage] = (
                self.providers[same] if same else build_provider(model, self.bound.host, self.bound.settings.llm_path)
            )
        return self.providers[stage]

    def block(self, package: Package, stage: str, error: ResearchError) -> None:
        """Record that the case waits for the database, and from when on it may be resumed."""
        now = self.clock.now()
        EventLog(package, latest_revision(package)).append(
            Event(
                kind="blocked",
                code=error.code,
                at=format_time(now),
                retry_at=format_time(now + timedelta(seconds=SAFETY_DELAY_S)),
                detail="; ".join(part for part in (error.found or error.summary, error.where) if part),
                stage=stage,
                attempts=0,
            )
        )

    async def aclose(self) -> None:
        """Let go of the database and of every provider's connections."""
        if self._source is not None:
            self._source.close()
            self._source = None
        for provider in {id(provider): provider for provider in self.providers.values()}.values():
            await provider.aclose()

    async def _phases(self, package: Package, stop_after: str | None) -> None:
        """Run what plugins put after interpretation, each to its end once, as far as `stop_after` allows."""
        if stop_after in CORE_PHASES:
            return
        host = self.bound.host
        for name, phase in host.phases.items():
            if not package.exists(layout.phase_mark(name)):
                self.report(package, name)
                run: Callable[[Path], object] = host.load_named("phases", name, phase.run)
                await asyncio.to_thread(guarded(run, object, f"phase {name}"), package.root)
                mark = PhaseMark(phase=name, offered_by=offered(host, "phases", name))
                package.create_artifact(layout.phase_mark(name), mark)
            if stop_after == name:
                return


class Analysis:
    """The semantic steps of one case: freeze, plan, look up, assess, context, interpret, seal."""

    def __init__(self, pipeline: Pipeline, package: Package, case: Case, facts: Facts) -> None:
        self._pipeline = pipeline
        self._package = package
        self._case = case
        self._facts = facts
        self._revision = latest_revision(package)

    async def run(self) -> None:
        """Go on until the interpretation is sealed, or the case waits."""
        frozen = await self._freeze()
        if frozen is None:
            return
        input_, resolution = frozen
        facts = StageFacts(self._case, self._facts, resolution)
        resolved = facts if resolution is None else await self._resolve(input_, facts)
        if resolved is not None:
            await self._interpret(input_, resolved)

    # --- freezing ---------------------------------------------------------------------------------------------------

    async def _freeze(self) -> tuple[InterpretationInput, ResolutionInput | None] | None:
        """Return the frozen inputs, freezing them first where the case is fresh; None where the database is away."""
        package, revision, bound = self._package, self._revision, self._pipeline.bound
        input_ = package.load_if(revision.input, InterpretationInput)
        resolution = package.load_if(revision.resolution_input, ResolutionInput)
        if resolution is None and input_ is None and bound.settings.entity_resolution is not None:
            try:
                resolution = await asyncio.to_thread(self._freeze_resolution)
            except ResearchError as exc:
                self._pipeline.block(package, "research", exc)
                return None
            except SettingsError as exc:
                raise exc.placed(str(bound.settings.path)) from None
            package.create_artifact(revision.resolution_input, resolution)
        elif resolution is not None and not package.exists(revision.candidates):
            self._pipeline.refuse_change(changed_settings(bound, resolution))
        if input_ is None:
            input_ = freeze_interpretation(bound, self._case, self._facts, resolution)
            package.create_artifact(revision.input, input_)
        else:
            self._pipeline.refuse_change(changed_models(bound, input_))
        return input_, resolution

    def _freeze_resolution(self) -> ResolutionInput:
        return freeze_resolution(self._pipeline.bound, self._pipeline.source(), self._case, self._facts)

    # --- resolution -------------------------------------------------------------------------------------------------

    async def _resolve(self, input_: InterpretationInput, facts: StageFacts) -> StageFacts | None:
        plan = await self._plan(input_, facts)
        if plan is None:
            return None
        facts = replace(facts, plan=plan)
        looked_up = await self._look_up(facts)
        if looked_up is None:
            return None
        facts = replace(facts, captures=looked_up[0], candidates=looked_up[1])
        assessment = await self._assess(input_, facts)
        return None if assessment is None else replace(facts, assessment=assessment)

    async def _plan(self, input_: InterpretationInput, facts: StageFacts) -> Plan | None:
        path = self._revision.plan
        return await self._accepted(path, Plan, input_, "plan", facts, lambda reply: derive_plan(facts, reply))

    async def _look_up(self, facts: StageFacts) -> tuple[tuple[Capture, ...], Candidates] | None:
        package, revision = self._package, self._revision
        assert facts.plan is not None  # noqa: S101  # planned in the step before
        candidates = package.load_if(revision.candidates, Candidates)
        if candidates is not None:
            return load_captures(package, revision, candidates), candidates
        self._pipeline.report(package, "look-up")
        try:
            captures = await asyncio.to_thread(self._query, facts)
        except ResearchError as exc:
            self._pipeline.block(package, "look-up", exc)
            return None
        except SettingsError as exc:
            # The frozen input says that database and table were there: they went away, the plan is kept.
            if exc.code not in ("SETTINGS_DATABASE", "SETTINGS_TABLE"):
                raise
            gone = ResearchError("RESEARCH_UNAVAILABLE", where=exc.where, found=exc.found)
            self._pipeline.block(package, "look-up", gone)
            return None
        for capture in captures:
            package.create_artifact(revision.capture(digest_of(capture.to_bytes())), capture)
        candidates = derive_candidates(facts.plan, captures)
        package.create_artifact(revision.candidates, candidates)
        return tuple(captures), candidates

    def _query(self, facts: StageFacts) -> Sequence[Capture]:
        assert facts.plan is not None  # noqa: S101  # planned in the step before
        assert facts.resolution is not None  # noqa: S101  # nothing is planned without it
        asked = queries(facts.plan, facts.resolution)
        kept = kept_captures(self._package, self._revision.captures, Capture)
        captures = {(capture.catalog, capture.term): capture for capture in kept}
        missing = list(dict.fromkeys(query for query in asked if query not in captures))
        if missing:
            most = facts.resolution.limits.max_candidates
            captures |= zip(missing, self._pipeline.source().look_up_all(missing, most), strict=True)
        found = [captures[query] for query in asked]
        binding = facts.resolution.binding
        self._pipeline.refuse_change([text for capture in found for text in changed(binding, capture.binding)])
        return found

    async def _assess(self, input_: InterpretationInput, facts: StageFacts) -> Assessment | None:
        path = self._revision.assessment
        assert facts.plan is not None  # noqa: S101  # planned before
        if not facts.plan.searches:
            return self._keep(path, derive_assessment(facts, dict(NOTHING_SEARCHED)))
        return await self._accepted(
            path, Assessment, input_, "assessment", facts, lambda reply: derive_assessment(facts, reply)
        )

    # --- interpretation ---------------------------------------------------------------------------------------------

    async def _interpret(self, input_: InterpretationInput, facts: StageFacts) -> None:
        package, revision = self._package, self._revision
        protocol = find_protocol(self._pipeline.bound.host, input_.policy("interpretation").protocol)
        context = package.load_if(revision.context, InterpretationContext)
        if context is None:
            context = self._keep(revision.context, derive_context(facts, input_, protocol))
        interpretation = await self._accepted(
            revision.interpretation,
            Interpretation,
            input_,
            "interpretation",
            facts,
            lambda reply: derive_interpretation(context, protocol, reply),
            context.context,
        )
        if interpretation is None:
            return
        package.create(revision.summary, derive_summary(self._case, context, interpretation))
        package.create_artifact(revision.hypothesis_context, derive_hypothesis_context(self._case, interpretation))
        package.create_artifact(revision.seal, derive_seal(package, revision))

    # --- what the steps share ---------------------------------------------------------------------------------------

    async def _accepted(
        self,
        path: str,
        model: type[A],
        input_: InterpretationInput,
        stage: str,
        facts: StageFacts,
        derive: Callable[[dict[str, object]], A],
        context: Mapping[str, object] | None = None,
    ) -> A | None:
        """Return the accepted artifact at `path`, asking for it first where it does not exist; None: the case waits."""
        kept = self._package.load_if(path, model)
        if kept is not None:
            return kept
        self._pipeline.report(self._package, stage)
        host, policy = self._pipeline.bound.host, input_.policy(stage)
        protocol = find_protocol(host, policy.protocol)
        reply = await converse(
            Conversation(
                package=self._package,
                revision=self._revision,
                policy=policy,
                protocol=protocol,
                rules=find_rules(host, policy),
                context=protocol.context(facts) if context is None else context,
                provider=lambda: self._pipeline.provider(stage),
                clock=self._pipeline.clock,
                spend=lambda: self._pipeline.spend(self._package),
            )
        )
        return None if reply is None else self._keep(path, derive(reply))

    def _keep(self, path: str, artifact: A) -> A:
        self._package.create_artifact(path, artifact)
        return artifact


def load_captures(package: Package, revision: Revision, candidates: Candidates) -> tuple[Capture, ...]:
    """Return the capture of each search, in order. Raises `IntegrityError`."""
    return tuple(load_capture(package, revision.capture(listed.capture), Capture) for listed in candidates.searches)


def derive_seal(package: Package, revision: Revision) -> Seal:
    """Return the seal over every file of this interpretation and before it, by path: all but plugins' phases."""
    sealed = ((path, package.require(path)) for path in package.paths() if layout.is_sealed(path, revision))
    return Seal(files=tuple(SealedFile(path=path, size=len(data), digest=digest_of(data)) for path, data in sealed))
