"""The attempts of one stage, derived again: each request, each judgment, each feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casebound.contracts.interpretation import Feedback, StagePolicy
from casebound.contracts.model_call import ModelReply, NativeRecord, Outcome
from casebound.llm.attempts import NATIVE, NATIVE_BODY, OUTCOME, REPLY, REQUEST, Attempt, AttemptLog
from casebound.llm.judge import judge
from casebound.llm.stage import derive_feedback, derive_request
from casebound.specs import PromptProtocol, Validator
from casebound.store.layout import Revision
from casebound.verify.evidence import Evidence, Stop


def verify_stage(
    evidence: Evidence,
    revision: Revision,
    policy: StagePolicy,
    protocol: PromptProtocol,
    rules: Sequence[Validator],
    context: Mapping[str, object],
) -> dict[str, object] | None:
    """Verify every attempt and return the reply that was accepted, None where none was.

    Raises:
        Stop: an attempt cannot be read; what is wrong is noted.
    """
    log = AttemptLog(evidence.package, revision, policy.stage)
    before: list[Attempt] = []
    feedback: Mapping[str, object] | None = None
    accepted: dict[str, object] | None = None
    for place, number in enumerate(log.numbers()):
        if number != place + 1:
            evidence.note("STORE_MISSING", log.path(place + 1, REQUEST), "an attempt is missing before a later one")
        if accepted is not None:
            evidence.note("VERIFY_EXTRA", log.path(number, REQUEST), "an attempt after the accepted one")
        feedback = _feedback(evidence, revision, policy, protocol, context, log, before, number, feedback)
        evidence.compare(log.path(number, REQUEST), derive_request(policy, protocol, context, feedback, before, number))
        outcome = _outcome(evidence, log, number)
        if outcome is not None and outcome.kind in ("accepted", "invalid"):
            accepted = _judge_again(evidence, log, number, outcome, protocol, rules, context)
        before.append(Attempt(number, outcome))
    return accepted


def _feedback(
    evidence: Evidence,
    revision: Revision,
    policy: StagePolicy,
    protocol: PromptProtocol,
    context: Mapping[str, object],
    log: AttemptLog,
    before: Sequence[Attempt],
    number: int,
    current: Mapping[str, object] | None,
) -> Mapping[str, object] | None:
    last = before[-1] if before else None
    if last is None or last.outcome is None or last.outcome.kind != "invalid":
        return current
    path = revision.feedback(policy.stage, number)
    outcome_digest = evidence.digest(log.path(last.number, OUTCOME))
    derived = derive_feedback(protocol, context, policy.stage, last, outcome_digest)
    stored: Feedback = evidence.derived(path, derived)
    return stored.feedback


def _outcome(evidence: Evidence, log: AttemptLog, number: int) -> Outcome | None:
    path = log.path(number, OUTCOME)
    body = log.path(number, NATIVE_BODY)
    if evidence.has(log.path(number, NATIVE)) and evidence.has(body):
        record = evidence.load(log.path(number, NATIVE), NativeRecord)
        if (record.size, record.digest) != (len(evidence.data(body)), evidence.digest(body)):
            evidence.note("STORE_DIGEST", body, "it is not what native.json says")
    if not evidence.has(path):
        return None
    outcome = evidence.load(path, Outcome)
    evidence.expect(path, "/request", outcome.request, evidence.digest(log.path(number, REQUEST)))
    if outcome.native is not None or evidence.has(body):
        evidence.expect(path, "/native", outcome.native, evidence.digest(body))
    return outcome


def _judge_again(
    evidence: Evidence,
    log: AttemptLog,
    number: int,
    outcome: Outcome,
    protocol: PromptProtocol,
    rules: Sequence[Validator],
    context: Mapping[str, object],
) -> dict[str, object] | None:
    reply = evidence.load(log.path(number, REPLY), ModelReply)
    verdict = judge(reply, protocol.response_schema(context), rules, context)
    path = log.path(number, OUTCOME)
    evidence.expect(path, "/findings", outcome.findings, verdict.findings)
    evidence.expect(path, "/code", outcome.code, verdict.findings[0].code if verdict.findings else None)
    evidence.expect(path, "/kind", outcome.kind, "invalid" if verdict.findings else "accepted")
    if outcome.kind == "accepted" and verdict.value is None:
        raise Stop
    return verdict.value
