"""The semantic stage that all conversations share: ask, keep, judge, correct; as often as the frozen policy allows.

It knows neither what is asked nor what a good answer is: protocol, context and rules come as arguments. Every step is a
file before the next one begins, so that a restart goes on where the last one ended and a reply that arrived is never
paid for again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from casebound.canonical import canonical_bytes
from casebound.clock import Clock, format_time, parse_time
from casebound.contracts.findings import Finding
from casebound.contracts.interpretation import Event, Feedback, StagePolicy
from casebound.contracts.model_call import ModelRequest, NativeReply, Outcome
from casebound.errors import CaseboundError, ProviderError
from casebound.llm.attempts import OUTCOME, Attempt, AttemptLog
from casebound.llm.course import Course
from casebound.llm.judge import judge
from casebound.llm.permit import UNLIMITED, AskPermit, Permit
from casebound.llm.provider import Provider
from casebound.specs import PromptProtocol, Validator
from casebound.store.events import SAFETY_DELAY_S, EventLog
from casebound.store.layout import ConversationPaths
from casebound.store.package import Package
from casebound.strict_json import parse_json

_LONGEST_WISH_S = 366 * 86400
EXHAUSTED = {
    "plan": "ENTITY_RESOLUTION_INVALID_RESPONSES",
    "assessment": "ENTITY_RESOLUTION_INVALID_RESPONSES",
    "interpretation": "INTERPRETATION_INVALID_RESPONSES",
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that one stage of one case needs.

    Attributes:
        revision: where its files lie.
        provider: makes the provider of the answerer at a place on first use, so that a replay needs none.
        permit: asked for each call before anything of its attempt is written; raises where it may not be made.
        exhausted: the code of a review, once too many replies were invalid; None: core's for the stage.
    """

    package: Package
    revision: ConversationPaths
    policy: StagePolicy
    protocol: PromptProtocol
    rules: Sequence[Validator]
    context: Mapping[str, object]
    provider: Callable[[int], Provider]
    clock: Clock
    permit: AskPermit
    exhausted: str | None = None

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.policy.stage

    def course(self, attempts: Sequence[Attempt]) -> Course:
        """Return what the policy makes of `attempts`."""
        return Course(self.policy, attempts, EventLog(self.package, self.revision).resumptions(self.stage))


async def converse(talk: Conversation) -> dict[str, object] | None:
    """Return the accepted reply; None where the case now waits, with an event that says for what.

    Raises:
        CaseboundError: `BUDGET_REACHED`, `PLUGIN_BROKEN`, or the store's errors.
    """
    log = AttemptLog(talk.package, talk.revision, talk.stage)
    attempts: list[Attempt] = []
    for attempt in log.all():
        attempts.append(_settled(talk, log, attempt, attempts))
    while True:
        last = attempts[-1] if attempts else None
        if last and last.outcome and last.outcome.kind == "accepted":
            return accepted_reply(log, last.number) if last.text is None else _parsed(last.text)
        course = talk.course(attempts)
        if _stop_if_due(talk, course):
            return None
        attempts.append(await _ask(talk, log, course))


def accepted_reply(log: AttemptLog, number: int) -> dict[str, object]:
    """Return the parsed reply of an attempt that was accepted: exactly what the model said."""
    return _parsed(log.reply(number).text)


def _parsed(text: str) -> dict[str, object]:
    value: dict[str, object] = parse_json(text.encode())
    return value


# --- one attempt ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A reply whose bytes are on the disk.

    Attributes:
        number: of its attempt.
        request: the digest of its request.
        schema: which the request carries, None where it was made in an earlier run.
    """

    number: int
    request: str
    native: NativeReply
    schema: Mapping[str, object] | None = None


async def _ask(talk: Conversation, log: AttemptLog, course: Course) -> Attempt:
    """Make the next attempt: derive feedback and request, freeze both if they may be sent, send, keep, decide."""
    number = course.attempts[-1].number + 1 if course.attempts else 1
    place = course.next.place
    provider = talk.provider(place)
    feedback = _feedback(talk, log, course.attempts, number)
    request = derive_request(
        course, talk.protocol, talk.context, None if feedback is None else feedback.feedback, number
    )
    async with talk.permit(request, place) as permit:
        if feedback is not None:
            talk.package.create_artifact(talk.revision.feedback(talk.stage, feedback.attempt), feedback)
        digest = await log.write_request(request)
        await permit.depart()
        try:
            native = await _sent(provider, request, permit)
        except ProviderError as exc:
            permit.failed(exc)
            failed = log.decided(number, _failed(talk, digest, None, exc))
            await talk.package.flush()  # nothing else says that the call failed, and how
            return failed
        await log.write_native(number, native)
        return _judged(talk, log, _Arrived(number, digest, native, request.response_schema), provider, permit)


async def _sent(provider: Provider, request: ModelRequest, permit: Permit) -> NativeReply:
    try:
        return await provider.send(request)
    finally:
        permit.over()


def derive_request(
    course: Course,
    protocol: PromptProtocol,
    context: Mapping[str, object],
    feedback: Mapping[str, object] | None,
    number: int,
) -> ModelRequest:
    """Return the request of attempt `number`: a pure function of what is on disk, so that `verify` can repeat it."""
    prompt = protocol.request(context, feedback)
    schema = prompt.user.get("output_schema")  # the reserved key: where the message carries it, it is made already
    answerer = course.answerer
    return ModelRequest(
        stage=course.policy.stage,
        protocol_version=protocol.version,
        prompt_id=protocol.prompt_id,
        attempt=number,
        provider=answerer.provider,
        model=answerer.model,
        system=prompt.system,
        user=canonical_bytes(prompt.user).decode(),
        response_format=answerer.response_format,
        schema_name=protocol.prompt_id,
        response_schema=schema if isinstance(schema, dict) else protocol.response_schema(context),
        max_output_tokens=course.max_output_tokens,
        timeout_s=answerer.timeout_s,
    )


def _feedback(talk: Conversation, log: AttemptLog, attempts: Sequence[Attempt], number: int) -> Feedback | None:
    """Return the feedback that attempt `number` carries: the one that is frozen already, else derived now.

    An attempt that only repeats one that a provider failed carries the feedback of that one.
    """
    last = last_invalid(attempts)
    if last is None:
        return None
    for path in (talk.revision.feedback(talk.stage, place) for place in range(last.number + 1, number + 1)):
        frozen = talk.package.load_if(path, Feedback)
        if frozen is not None:
            return frozen
    outcome = talk.package.digest(log.path(last.number, OUTCOME))
    return derive_feedback(talk.protocol, talk.context, last, outcome, number)


def last_invalid(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the attempt that the next feedback answers, None where no reply was invalid."""
    return next((each for each in reversed(attempts) if each.outcome and each.outcome.kind == "invalid"), None)


def derive_feedback(
    protocol: PromptProtocol, context: Mapping[str, object], invalid: Attempt, outcome_digest: str, number: int
) -> Feedback:
    """Return the feedback on an invalid attempt, frozen before attempt `number`: pure, so that `verify` can repeat it.

    That is the very next attempt, unless that one was sent before feedback was kept.
    """
    findings = invalid.outcome.findings if invalid.outcome else ()
    return Feedback(
        stage=protocol.stage,
        attempt=number,
        outcome=outcome_digest,
        feedback=protocol.feedback(findings, context),
    )


def _settled(talk: Conversation, log: AttemptLog, attempt: Attempt, before: Sequence[Attempt]) -> Attempt:
    """Decide an attempt of an earlier run that is not decided yet: from its bytes if they arrived, else as unknown."""
    number = attempt.number
    if attempt.outcome is not None:
        return attempt
    digest, native = log.request_digest(number), log.native(number)
    if native is None:
        at = format_time(talk.clock.now())
        return log.decided(number, Outcome(kind="unknown", code="LLM_CALL_UNKNOWN", request=digest, native=None, at=at))
    provider = talk.provider(talk.course(before).next.place)
    return _judged(talk, log, _Arrived(number, digest, native), provider, UNLIMITED)


def _judged(talk: Conversation, log: AttemptLog, arrived: _Arrived, provider: Provider, permit: Permit) -> Attempt:
    """Read and judge a reply whose bytes are on the disk, and keep what was decided."""
    try:
        reply = provider.read(arrived.native)
    except ProviderError as exc:
        permit.failed(exc)
        return log.decided(arrived.number, _failed(talk, arrived.request, arrived.native, exc))
    permit.used(reply.usage)
    digest = log.write_reply(arrived.number, reply)
    schema = talk.protocol.response_schema(talk.context) if arrived.schema is None else arrived.schema
    findings = judge(reply, schema, talk.rules, talk.context).findings
    return log.decided(arrived.number, _decision(talk, arrived, digest, findings), reply.text)


def _decision(talk: Conversation, arrived: _Arrived, reply_digest: str, findings: tuple[Finding, ...]) -> Outcome:
    return Outcome(
        kind="invalid" if findings else "accepted",
        code=findings[0].code if findings else None,
        findings=findings,
        request=arrived.request,
        native=arrived.native.record.digest,
        reply=reply_digest,
        at=format_time(talk.clock.now()),
    )


def _failed(talk: Conversation, digest: str, native: NativeReply | None, error: ProviderError) -> Outcome:
    return Outcome(
        kind="unknown" if error.code == "LLM_CALL_UNKNOWN" else "provider_error",
        code=error.code,
        request=digest,
        native=None if native is None else native.record.digest,
        message=str(error).encode("utf-8", "backslashreplace").decode(),
        retryable=error.retryable,
        retry_after_ms=_wish_ms(error.retry_after),
        at=format_time(talk.clock.now()),
    )


def _wish_ms(seconds: float | None) -> int | None:
    """Return a server's wish in milliseconds; what is no time to wait is no wish, and no wish is longer than a year."""
    return round(min(seconds, _LONGEST_WISH_S) * 1000) if seconds is not None and seconds > 0 else None


# --- when to stop ---------------------------------------------------------------------------------------------------


def _stop_if_due(talk: Conversation, course: Course) -> bool:
    """Append the event that says why, and return True, where the policy allows no further attempt now."""
    outcomes = [attempt.outcome for attempt in course.attempts if attempt.outcome]
    if sum(outcome.kind == "invalid" for outcome in outcomes) >= talk.policy.max_invalid_responses:
        _append_event(talk, course, "review", talk.exhausted or EXHAUSTED.get(talk.stage, "LLM_OUTPUT_SCHEMA"), None)
        return True
    if course.next.follows == "ask":
        return False
    if EventLog(talk.package, talk.revision).covers(talk.stage, course.attempts[-1].number):
        return False  # it waited for this failure already, and may now go on
    failures = [outcome for _, outcome in course.failures()]
    code = failures[-1].code or "LLM_UNAVAILABLE"
    if course.next.follows == "wait":
        _append_event(talk, course, "retry_pending", code, _retry_at(failures[-1]))
    else:
        # A resumption begins with the first answerer, so the wish of everybody who failed counts.
        _append_event(talk, course, "blocked", code, max(map(_retry_at, failures)))
    return True


def _retry_at(failed: Outcome) -> datetime:
    delay = max(SAFETY_DELAY_S, (failed.retry_after_ms or 0) / 1000)
    return parse_time(failed.at) + timedelta(seconds=delay)


def _append_event(
    talk: Conversation,
    course: Course,
    kind: Literal["blocked", "retry_pending", "review"],
    code: str,
    retry_at: datetime | None,
) -> None:
    last = course.attempts[-1]
    EventLog(talk.package, talk.revision).append(
        Event(
            kind=kind,
            code=code,
            at=format_time(talk.clock.now()),
            retry_at=None if retry_at is None else format_time(retry_at),
            detail=_why(talk, course, code) + _asked_in_turn(course),
            stage=talk.stage,
            attempts=last.number,
        )
    )


def _why(talk: Conversation, course: Course, code: str) -> str:
    """Return the message of the last failure; of refused replies, how many and what the last one has."""
    last, found = course.attempts[-1], None
    if last.outcome and last.outcome.message:
        return last.outcome.message
    if last.outcome and last.outcome.findings:
        first, others = last.outcome.findings[0], len(last.outcome.findings) - 1
        refused = sum(attempt.outcome is not None and attempt.outcome.kind == "invalid" for attempt in course.attempts)
        place = f" at {first.path}" if first.path else ""
        more = f", and {others} more" if others else ""
        found = f"{refused} replies that were refused, the last one for {first.code}{place}{more}"
    error = CaseboundError(code, where=f"stage {talk.stage}, attempt {last.number}", found=found)
    return str(error).encode("utf-8", "backslashreplace").decode()


def _asked_in_turn(course: Course) -> str:
    """Return a line that names everybody who failed, with the code of its last failure; empty where it was only one."""
    failed = {place: outcome.code for place, outcome in course.failures()}
    if len(failed) < 2:
        return ""
    named = (f"{course.policy.answerers[place].name} ({code})" for place, code in failed.items())
    return f"\n  asked in turn: {', '.join(named)}"
