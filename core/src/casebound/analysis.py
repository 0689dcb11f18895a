"""The semantic steps of one case: freeze, plan, look up, assess, context, interpret, seal.

Each step reads files, decides, and writes files; the next one reads those, through the package. A step that waits has
written an event that says for what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from casebound.canonical import digest_of
from casebound.contracts.assessment import Assessment
from casebound.contracts.base import Artifact
from casebound.contracts.capture import Capture, Facts
from casebound.contracts.case import Case
from casebound.contracts.interpretation import (
    Interpretation,
    InterpretationContext,
    InterpretationInput,
    Seal,
    SealedFile,
)
from casebound.contracts.plan import Candidates, Plan, ResolutionInput
from casebound.contracts.stage_facts import StageFacts
from casebound.engine import Engine
from casebound.errors import ResearchError, SettingsError
from casebound.frozen import find_protocol, find_rules
from casebound.interpretation.context import derive_context
from casebound.interpretation.freeze import changed_models, freeze_interpretation
from casebound.interpretation.interpret import derive_hypothesis_context, derive_interpretation
from casebound.interpretation.summary import derive_summary
from casebound.llm.stage import Conversation, converse
from casebound.progress import latest_revision
from casebound.research.snapshot import changed
from casebound.resolution.assess import NOTHING_SEARCHED, derive_assessment
from casebound.resolution.freeze import changed_settings
from casebound.resolution.lookup import derive_candidates, queries
from casebound.resolution.plan import derive_plan
from casebound.revision import fresh_resolution, write_inputs
from casebound.store import layout
from casebound.store.captures import kept_captures, load_captures
from casebound.store.layout import Revision
from casebound.store.package import Package

A = TypeVar("A", bound=Artifact)


@dataclass(frozen=True, slots=True)
class _Step(Generic[A]):
    """A stage whose accepted reply becomes an artifact.

    Attributes:
        path: of the artifact; where it exists, nothing is asked.
        derive: makes the artifact of the accepted reply.
    """

    stage: str
    path: str
    model: type[A]
    derive: Callable[[dict[str, object]], A]


class Analysis:
    """Takes one case through the steps that its newest interpretation still lacks."""

    def __init__(self, engine: Engine, package: Package, case: Case, facts: Facts) -> None:
        self._engine = engine
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
        package, revision, bound = self._package, self._revision, self._engine.bound
        input_ = package.load_if(revision.input, InterpretationInput)
        resolution = package.load_if(revision.resolution_input, ResolutionInput)
        if resolution is None and input_ is None:
            try:
                resolution = await self._engine.look_up(lambda: fresh_resolution(self._engine, self._case, self._facts))
            except ResearchError as exc:
                self._engine.block(package, "research", exc)
                return None
        elif resolution is not None and not package.exists(revision.candidates):
            self._engine.refuse_change(changed_settings(bound, resolution))
        if input_ is None:
            input_ = freeze_interpretation(self._engine.policies(), self._case, self._facts, resolution)
            write_inputs(package, revision, resolution, input_)
        else:
            self._engine.refuse_change(changed_models(bound, input_))
            self._need_plugins(input_)
        return input_, resolution

    def _need_plugins(self, input_: InterpretationInput) -> None:
        """Refuse, before anything is paid for, a frozen version or rule that is gone and still needed.

        Raises:
            PluginError: `PLUGIN_MISSING`, naming the distribution.
        """
        revision, host = self._revision, self._engine.bound.host
        done = {
            "plan": revision.plan,
            "assessment": revision.assessment,
            "interpretation": revision.interpretation,
        }
        for policy in input_.stages:
            if not self._package.exists(done[policy.stage]):
                find_protocol(host, policy.protocol)
                find_rules(host, policy)

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
        step = _Step("plan", self._revision.plan, Plan, lambda reply: derive_plan(facts, reply))
        return await self._accepted(step, input_, facts)

    async def _look_up(self, facts: StageFacts) -> tuple[tuple[Capture, ...], Candidates] | None:
        package, revision = self._package, self._revision
        assert facts.plan is not None  # noqa: S101  # planned in the step before
        candidates = package.load_if(revision.candidates, Candidates)
        if candidates is not None:
            return load_captures(package, revision, candidates), candidates
        self._engine.on_step(package, "look-up")
        try:
            kept = kept_captures(package, revision.captures, Capture)
            captures = await self._engine.look_up(lambda: self._query(facts, kept))
        except ResearchError as exc:
            self._engine.block(package, "look-up", exc)
            return None
        except SettingsError as exc:
            # The frozen input says that database and table were there: they went away, the plan is kept.
            if exc.code not in ("SETTINGS_DATABASE", "SETTINGS_TABLE"):
                raise
            gone = ResearchError("RESEARCH_UNAVAILABLE", where=exc.where, found=exc.found)
            self._engine.block(package, "look-up", gone)
            return None
        for capture in captures:
            package.create_artifact(revision.capture(digest_of(capture.to_bytes())), capture)
        candidates = derive_candidates(facts.plan, captures)
        package.create_artifact(revision.candidates, candidates)
        return tuple(captures), candidates

    def _query(self, facts: StageFacts, kept: Sequence[Capture]) -> Sequence[Capture]:
        """Return the capture of each search; what a run that ended early has `kept` is not asked for again."""
        assert facts.plan is not None  # noqa: S101  # planned in the step before
        assert facts.resolution is not None  # noqa: S101  # nothing is planned without it
        asked = queries(facts.plan, facts.resolution)
        captures = {(capture.catalog, capture.term): capture for capture in kept}
        missing = list(dict.fromkeys(query for query in asked if query not in captures))
        if missing:
            most = facts.resolution.limits.max_candidates
            captures |= zip(missing, self._engine.source().look_up_all(missing, most), strict=True)
        found = [captures[query] for query in asked]
        binding = facts.resolution.binding
        self._engine.refuse_change([text for capture in found for text in changed(binding, capture.binding)])
        return found

    async def _assess(self, input_: InterpretationInput, facts: StageFacts) -> Assessment | None:
        path = self._revision.assessment
        assert facts.plan is not None  # noqa: S101  # planned before
        if not facts.plan.searches:
            return self._keep(path, derive_assessment(facts, dict(NOTHING_SEARCHED)))
        step = _Step("assessment", path, Assessment, lambda reply: derive_assessment(facts, reply))
        return await self._accepted(step, input_, facts)

    # --- interpretation ---------------------------------------------------------------------------------------------

    async def _interpret(self, input_: InterpretationInput, facts: StageFacts) -> None:
        package, revision = self._package, self._revision
        protocol = find_protocol(self._engine.bound.host, input_.policy("interpretation").protocol)
        context = package.load_if(revision.context, InterpretationContext)
        if context is None:
            context = self._keep(revision.context, derive_context(facts, input_, protocol))
        step = _Step(
            "interpretation",
            revision.interpretation,
            Interpretation,
            lambda reply: derive_interpretation(context, protocol, reply),
        )
        interpretation = await self._accepted(step, input_, facts, context.context)
        if interpretation is None:
            return
        package.create(revision.summary, derive_summary(self._case, context, interpretation))
        package.create_artifact(revision.hypothesis_context, derive_hypothesis_context(self._case, interpretation))
        package.create_artifact(revision.seal, derive_seal(package, revision))

    # --- what the steps share ---------------------------------------------------------------------------------------

    async def _accepted(
        self,
        step: _Step[A],
        input_: InterpretationInput,
        facts: StageFacts,
        context: Mapping[str, object] | None = None,
    ) -> A | None:
        """Return the accepted artifact of `step`, asking for it where it does not exist; None: the case waits.

        `context` is what is asked about; None: what the protocol makes of `facts`.
        """
        kept = self._package.load_if(step.path, step.model)
        if kept is not None:
            return kept
        self._engine.on_step(self._package, step.stage)
        host, policy = self._engine.bound.host, input_.policy(step.stage)
        protocol = find_protocol(host, policy.protocol)
        reply = await converse(
            Conversation(
                package=self._package,
                revision=self._revision,
                policy=policy,
                protocol=protocol,
                rules=find_rules(host, policy),
                context=protocol.context(facts) if context is None else context,
                provider=lambda place: self._engine.provider(step.stage, place),
                clock=self._engine.clock,
                permit=lambda request, place: self._engine.permit(self._package, request, place),
            )
        )
        return None if reply is None else self._keep(step.path, step.derive(reply))

    def _keep(self, path: str, artifact: A) -> A:
        self._package.create_artifact(path, artifact)
        return artifact


def derive_seal(package: Package, revision: Revision) -> Seal:
    """Return the seal over every file of this interpretation and before it, by path: all but plugins' phases."""
    sealed = ((path, *package.stamp(path)) for path in package.paths() if layout.is_sealed(path, revision))
    return Seal(files=tuple(SealedFile(path=path, size=size, digest=digest) for path, size, digest in sealed))
