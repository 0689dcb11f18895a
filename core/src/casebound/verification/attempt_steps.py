"""The attempts of one stage, derived again: each request, each judgment, each feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from casebound.contracts.interpretation import Event, Feedback, StagePolicy
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeRecord, Outcome
from casebound.llm.attempts import NATIVE, NATIVE_BODY, OUTCOME, REPLY, REQUEST, Attempt
from casebound.llm.course import Course
from casebound.llm.judge import judge
from casebound.llm.stage import derive_feedback, derive_request, last_invalid
from casebound.specs import PromptProtocol, Validator
from casebound.store.events import resumptions
from casebound.store.layout import ConversationPaths
from casebound.strict_json import JsonError, parse_json
from casebound.verification.evidence import Evidence, Stop

DECIDED = ("accepted", "invalid")
UNANSWERED = ("provider_error", "unknown")


def verify_stage(
    evidence: Evidence,
    revision: ConversationPaths,
    policy: StagePolicy,
    protocol: PromptProtocol,
    rules: Sequence[Validator],
    context: Mapping[str, object],
) -> dict[str, object] | None:
    """Verify every attempt and return the reply that was accepted, None where none was.

    Raises:
        Stop: an attempt cannot be read; what is wrong is noted.
    """
    files = _Files(revision, policy.stage)
    resumed = resumptions((evidence.load(path, Event) for path in evidence.below(revision.events)), policy.stage)
    before: list[Attempt] = []
    accepted: dict[str, object] | None = None
    for place, number in enumerate(files.numbers(evidence)):
        if number != place + 1:
            evidence.note("STORE_MISSING", files.path(place + 1, REQUEST), "an attempt is missing before a later one")
        if before and before[-1].outcome is None:
            evidence.note(
                "STORE_MISSING", files.path(place, OUTCOME), "an attempt that was not decided, before a later one"
            )
        if accepted is not None:
            evidence.note("VERIFY_EXTRA", files.path(number, REQUEST), "an attempt after the accepted one")
        feedback = _feedback(evidence, files, protocol, context, before, number)
        course = Course(policy, before, resumed)
        if course.next.follows == "stop":
            evidence.note("VERIFY_EXTRA", files.path(number, REQUEST), "an attempt where the policy allows none")
        request = derive_request(course, protocol, context, feedback, number)
        evidence.compare(files.path(number, REQUEST), request)
        outcome = _outcome(evidence, files, number)
        if outcome is not None and outcome.kind in DECIDED:
            accepted = _judge_again(evidence, files, outcome, request, rules, context)
        before.append(Attempt(number, outcome))
    if before:
        _feedback(evidence, files, protocol, context, before, before[-1].number + 1)  # its request is still to come
    return accepted


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the attempts of one stage lie."""

    revision: ConversationPaths
    stage: str

    def path(self, number: int, name: str) -> str:
        return f"{self.revision.attempt(self.stage, number)}/{name}"

    def numbers(self, evidence: Evidence) -> list[int]:
        """Return the number of every attempt that left any file."""
        start = f"{self.revision.attempts(self.stage)}/{self.stage}-"
        found = {path[len(start) :].partition("/")[0] for path in evidence.paths if path.startswith(start)}
        return sorted(int(number) for number in found if number.isdecimal())


def _feedback(
    evidence: Evidence,
    files: _Files,
    protocol: PromptProtocol,
    context: Mapping[str, object],
    before: Sequence[Attempt],
    number: int,
) -> Mapping[str, object] | None:
    """Verify the feedback that attempt `number` carries, and return it; None where it carries none.

    It answers the last invalid reply and stands before the first attempt since then that was sent with it: a package
    from before feedback was kept has attempts that were sent without.
    """
    last = last_invalid(before)
    if last is None:
        return None
    places = range(last.number + 1, number + 1)
    place = next((place for place in places if evidence.has(files.revision.feedback(files.stage, place))), None)
    if place is None:
        if not _carries_feedback(evidence, files, number):
            return None
        place = last.number + 1  # what the request says must have stood there
    outcome_digest = evidence.digest(files.path(last.number, OUTCOME))
    derived = derive_feedback(protocol, context, last, outcome_digest, place)
    stored: Feedback = evidence.derived(files.revision.feedback(files.stage, place), derived)
    return stored.feedback


def _carries_feedback(evidence: Evidence, files: _Files, number: int) -> bool:
    """Tell whether attempt `number` was sent with feedback. Raises `Stop` where its request cannot be read."""
    path = files.path(number, REQUEST)
    if not evidence.has(path):
        return False
    try:
        message = parse_json(evidence.load(path, ModelRequest).user.encode())
    except (JsonError, UnicodeEncodeError):
        return False  # it is not what follows, and is noted so
    return isinstance(message, dict) and "feedback" in message


def _outcome(evidence: Evidence, files: _Files, number: int) -> Outcome | None:
    """Verify what an attempt left behind, in the order of writing; return the decision where there is one."""
    native, body, reply, path = (files.path(number, name) for name in (NATIVE, NATIVE_BODY, REPLY, OUTCOME))
    record = evidence.load(native, NativeRecord) if evidence.has(native) or evidence.has(body) else None
    if record is not None and evidence.has(body):
        evidence.expect(native, "/size", record.size, len(evidence.data(body)))
        evidence.expect(native, "/digest", record.digest, evidence.digest(body))
    if evidence.has(reply):
        evidence.load(reply, ModelReply)
    if not evidence.has(path):
        return None
    outcome = evidence.load(path, Outcome)
    evidence.expect(path, "/request", outcome.request, evidence.digest(files.path(number, REQUEST)))
    if outcome.native is not None or evidence.has(body):
        evidence.expect(path, "/native", outcome.native, evidence.digest(body))
    if outcome.reply is not None or evidence.has(reply):
        evidence.expect(path, "/reply", outcome.reply, evidence.digest(reply))
    possible = DECIDED if evidence.has(reply) else ("provider_error",) if evidence.has(body) else UNANSWERED
    if outcome.kind not in possible:
        evidence.note("VERIFY_BINDING", path, f"{outcome.kind} stands where {' or '.join(possible)} follows", "/kind")
    return outcome


def _judge_again(
    evidence: Evidence,
    files: _Files,
    outcome: Outcome,
    request: ModelRequest,
    rules: Sequence[Validator],
    context: Mapping[str, object],
) -> dict[str, object] | None:
    reply = evidence.load(files.path(request.attempt, REPLY), ModelReply)
    verdict = judge(reply, request.response_schema, rules, context)
    path = files.path(request.attempt, OUTCOME)
    evidence.expect(path, "/findings", outcome.findings, verdict.findings)
    evidence.expect(path, "/code", outcome.code, verdict.findings[0].code if verdict.findings else None)
    evidence.expect(path, "/kind", outcome.kind, "invalid" if verdict.findings else "accepted")
    for pointer, found, expected in (
        ("/message", outcome.message, None),
        ("/retryable", outcome.retryable, False),
        ("/retry_after_ms", outcome.retry_after_ms, None),
    ):
        evidence.expect(path, pointer, found, expected)  # these belong to errors of the provider
    if outcome.kind == "accepted" and verdict.value is None:
        raise Stop
    return verdict.value
