"""One interpretation, derived again: requests, outcomes, plan, captures, candidates, assessment, context, answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from casebound.canonical import digest_of
from casebound.contracts.capture import Capture
from casebound.contracts.interpretation import Event, InterpretationInput
from casebound.contracts.plan import Candidates, ResolutionInput
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import PluginError
from casebound.frozen import find_protocol, find_rules
from casebound.host import Host
from casebound.interpretation.context import derive_context
from casebound.interpretation.interpret import derive_hypothesis_context, derive_interpretation
from casebound.interpretation.summary import derive_summary
from casebound.research.capture_check import contradictions
from casebound.resolution.assess import NOTHING_SEARCHED, derive_assessment
from casebound.resolution.lookup import derive_candidates, queries
from casebound.resolution.plan import derive_plan
from casebound.specs import PromptProtocol, Validator
from casebound.store.layout import ConversationPaths, Revision
from casebound.verification.attempt_steps import verify_stage
from casebound.verification.evidence import Evidence, Stop
from casebound.verification.report_steps import ReportSteps

Reply = dict[str, object]


def verify_events(evidence: Evidence, revision: ConversationPaths) -> None:
    """Verify that every event can be read and none is missing. Raises `Stop`."""
    for place, path in enumerate(evidence.below(revision.events)):
        evidence.load(path, Event)
        if path != revision.event(place + 1):
            evidence.note("STORE_MISSING", revision.event(place + 1), "an event is missing before a later one")


def verify_revision(evidence: Evidence, host: Host, report: ReportSteps, revision: Revision) -> None:
    """Verify one interpretation as far as it goes.

    Raises:
        Stop: the rest cannot be derived; why is noted.
        PluginError: a protocol or rule that it froze is not installed.
    """
    if not evidence.has(revision.input):
        if evidence.has(revision.resolution_input):
            evidence.load(revision.resolution_input, ResolutionInput)  # it is written first
        return
    input_ = evidence.load(revision.input, InterpretationInput)
    _Steps(evidence, host, revision, input_).run(StageFacts(report.case, report.facts))


class _Steps:
    def __init__(self, evidence: Evidence, host: Host, revision: Revision, input_: InterpretationInput) -> None:
        self._evidence = evidence
        self._host = host
        self._revision = revision
        self._input = input_

    def run(self, facts: StageFacts) -> None:
        evidence, path = self._evidence, self._revision.input
        evidence.expect(path, "/case_digest", self._input.case_digest, digest_of(facts.case.to_bytes()))
        evidence.expect(path, "/facts_digest", self._input.facts_digest, digest_of(facts.facts.to_bytes()))
        resolved = facts if self._input.resolution_input is None else self._resolution(facts)
        if resolved is not None:
            self._interpretation(resolved)

    # --- resolution -------------------------------------------------------------------------------------------------

    def _resolution(self, facts: StageFacts) -> StageFacts | None:
        """Return the facts with everything that was resolved; None where resolution is not finished."""
        evidence, revision = self._evidence, self._revision
        frozen = evidence.load(revision.resolution_input, ResolutionInput)
        evidence.expect(
            revision.input,
            "/resolution_input",
            self._input.resolution_input,
            evidence.digest(revision.resolution_input),
        )
        evidence.expect(revision.resolution_input, "/case_digest", frozen.case_digest, self._input.case_digest)
        evidence.expect(revision.resolution_input, "/facts_digest", frozen.facts_digest, self._input.facts_digest)
        for number, protocol in enumerate(frozen.protocols):
            place = f"/protocols/{number}"
            evidence.expect(revision.resolution_input, place, protocol, self._input.policy(protocol.stage).protocol)
        facts = replace(facts, resolution=frozen)
        reply = self._accepted("plan", self._context("plan", facts), revision.plan)
        if reply is None:
            return None
        plan = evidence.derived(revision.plan, derive_plan(facts, reply))
        facts = replace(facts, plan=plan)
        return self._judged(self._looked_up(facts))

    def _looked_up(self, facts: StageFacts) -> StageFacts | None:
        evidence, revision, plan, frozen = self._evidence, self._revision, facts.plan, facts.resolution
        assert plan is not None  # noqa: S101  # derived by the caller
        assert frozen is not None  # noqa: S101  # loaded by the caller
        if not evidence.has(revision.candidates):
            for path in evidence.below(revision.captures):
                self._capture(path, evidence.addressed(path, Capture), frozen)
            return None
        stored = evidence.load(revision.candidates, Candidates)
        if len(stored.searches) != len(plan.searches):
            evidence.note(
                "VERIFY_DERIVED", revision.candidates, "it has not one entry a search of the plan", "/searches"
            )
            raise Stop
        captures = []
        for listed, (catalog, term) in zip(stored.searches, queries(plan, frozen), strict=True):
            path = revision.capture(listed.capture)
            if not evidence.has(path):
                place = f"/searches/{listed.search_index}/capture"
                evidence.note("STORE_MISSING", revision.candidates, f"it rests on {path}", place)
            capture = evidence.addressed(path, Capture)
            self._capture(path, capture, frozen)
            evidence.expect(path, "/catalog", capture.catalog, catalog)
            evidence.expect(path, "/term", capture.term, term)
            captures.append(capture)
        candidates = evidence.derived(revision.candidates, derive_candidates(plan, captures))
        return replace(facts, captures=tuple(captures), candidates=candidates)

    def _capture(self, path: str, capture: Capture, frozen: ResolutionInput) -> None:
        self._evidence.expect(path, "/binding", capture.binding, frozen.binding)
        limits = frozen.query_limits.model_copy(update={"max_candidates": frozen.limits.max_candidates})
        self._evidence.expect(path, "/limits", capture.limits, limits)
        for pointer in contradictions(capture):
            self._evidence.note("VERIFY_DERIVED", path, f"it does not hold {capture.rule}", pointer)

    def _judged(self, facts: StageFacts | None) -> StageFacts | None:
        if facts is None or facts.plan is None:
            return None
        revision = self._revision
        reply: Reply | None = dict(NOTHING_SEARCHED)
        if facts.plan.searches:
            reply = self._accepted("assessment", self._context("assessment", facts), revision.assessment)
        if reply is None or not self._evidence.has(revision.assessment):
            return None
        return replace(facts, assessment=self._evidence.derived(revision.assessment, derive_assessment(facts, reply)))

    # --- interpretation ---------------------------------------------------------------------------------------------

    def _interpretation(self, facts: StageFacts) -> None:
        evidence, revision = self._evidence, self._revision
        protocol, _ = self._plugins("interpretation")
        if not evidence.has(revision.context):
            return
        context = evidence.derived(revision.context, derive_context(facts, self._input, protocol))
        reply = self._accepted("interpretation", context.context, revision.interpretation)
        if reply is None:
            return
        interpretation = evidence.derived(revision.interpretation, derive_interpretation(context, protocol, reply))
        later: dict[str, Callable[[], bytes]] = {
            revision.summary: lambda: derive_summary(facts.case, context, interpretation),
            revision.hypothesis_context: lambda: derive_hypothesis_context(facts.case, interpretation).to_bytes(),
        }
        for path, derive in later.items():
            if evidence.has(path) or evidence.has(revision.seal):
                evidence.compare(path, derive())

    # --- what both share --------------------------------------------------------------------------------------------

    def _plugins(self, stage: str) -> tuple[PromptProtocol, Sequence[Validator]]:
        """Return the protocol and the rules that the case froze for a stage. Raises `Stop` where one is missing."""
        policy = self._input.policy(stage)
        try:
            return find_protocol(self._host, policy.protocol), find_rules(self._host, policy)
        except PluginError as exc:
            place = f"/stages/{self._input.stages.index(policy)}"
            self._evidence.note(exc.code, self._revision.input, f"{exc.found}; install {exc.expected}", place)
            raise Stop from exc

    def _context(self, stage: str, facts: StageFacts) -> Mapping[str, object]:
        return self._plugins(stage)[0].context(facts)

    def _accepted(self, stage: str, context: Mapping[str, object], artifact: str) -> Reply | None:
        """Verify every attempt of a stage; return the accepted reply, None where there is none or no artifact yet."""
        protocol, rules = self._plugins(stage)
        reply = verify_stage(self._evidence, self._revision, self._input.policy(stage), protocol, rules, context)
        exists = self._evidence.has(artifact)
        if exists and reply is None:
            self._evidence.note("VERIFY_DERIVED", artifact, f"no attempt of stage {stage} was accepted")
            raise Stop
        return reply if exists else None
