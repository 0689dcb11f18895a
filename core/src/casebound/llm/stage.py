"""The semantic stage that all conversations share: ask, keep, judge, correct; as often as the frozen policy allows.

It knows neither what is asked nor what a good answer is: protocol, context and rules come as arguments. Every step is a
file before the next one begins, so that a restart goes on where the last one ended and a reply that arrived is never
paid for again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from casebound.canonical import canonical_bytes, digest_of
from casebound.clock import Clock, format_time, parse_time
from casebound.contracts.interpretation import Event, Feedback, StagePolicy
from casebound.contracts.model_call import ModelRequest, NativeReply, Outcome
from casebound.errors import ProviderError
from casebound.llm.attempts import OUTCOME, Attempt, AttemptLog
from casebound.llm.judge import judge
from casebound.llm.provider import Provider
from casebound.specs import PromptProtocol, Validator
from casebound.store.events import EventLog
from casebound.store.layout import Revision
from casebound.store.package import Package
from casebound.strict_json import parse_json

SAFETY_DELAY_S = 60
LONGEST_WAIT_S = 366 * 86400
TRANSIENT = ("LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE")
EXHAUSTED = {
    "plan": "ENTITY_RESOLUTION_INVALID_RESPONSES",
    "assessment": "ENTITY_RESOLUTION_INVALID_RESPONSES",
    "interpretation": "INTERPRETATION_INVALID_RESPONSES",
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that one stage of one case needs.

    Attributes:
        provider: makes the provider on first use, so that a replay needs none.
        spend: called once before each request is sent; raises `BUDGET_REACHED` where nothing more may be.
        allow: called with each request before it is frozen; raises where it may not be asked at all.
    """

    package: Package
    revision: Revision
    policy: StagePolicy
    protocol: PromptProtocol
    rules: Sequence[Validator]
    context: Mapping[str, object]
    provider: Callable[[], Provider]
    clock: Clock
    spend: Callable[[], None]
    allow: Callable[[ModelRequest], None] = lambda request: None

    @property
    def stage(self) -> str:
        """The stage's name."""
        return self.policy.stage


async def converse(talk: Conversation) -> dict[str, object] | None:
    """Return the accepted reply; None where the case now waits, with an event that says for what.

    Raises:
        CaseboundError: `BUDGET_REACHED`, `PLUGIN_BROKEN`, or the store's errors.
    """
    log = AttemptLog(talk.package, talk.revision, talk.stage)
    while True:
        attempts = [_settle(talk, log, attempt) for attempt in log.all()]
        last = attempts[-1] if attempts else None
        if last and last.outcome and last.outcome.kind == "accepted":
            return accepted_reply(log, last.number)
        if _must_wait(talk, attempts):
            return None
        await _ask(talk, log, attempts)


def accepted_reply(log: AttemptLog, number: int) -> dict[str, object]:
    """Return the parsed reply of an attempt that was accepted: exactly what the model said."""
    value: dict[str, object] = parse_json(log.reply(number).text.encode())
    return value


# --- one attempt ----------------------------------------------------------------------------------------------------


async def _ask(talk: Conversation, log: AttemptLog, attempts: Sequence[Attempt]) -> None:
    """Make the next attempt: freeze feedback and request, send, keep, settle."""
    number = attempts[-1].number + 1 if attempts else 1
    provider = talk.provider()
    talk.spend()
    feedback = _freeze_feedback(talk, log, attempts, number)
    request = derive_request(talk.policy, talk.protocol, talk.context, feedback, attempts, number)
    talk.allow(request)
    digest = log.write_request(request)
    try:
        native = await provider.send(request)
    except ProviderError as exc:
        log.write_outcome(number, _failed(talk, digest, None, exc))
        return
    log.write_native(number, native)
    _settle(talk, log, Attempt(number, None))


def derive_request(
    policy: StagePolicy,
    protocol: PromptProtocol,
    context: Mapping[str, object],
    feedback: Mapping[str, object] | None,
    attempts: Sequence[Attempt],
    number: int,
) -> ModelRequest:
    """Return the request of attempt `number`: a pure function of what is frozen, so that `verify` can repeat it.

    After each reply that was cut off, the cap grows by the policy's factor.
    """
    prompt = protocol.request(context, feedback)
    schema = prompt.user.get("output_schema")  # the reserved key: where the message carries it, it is made already
    cut = sum(1 for attempt in attempts if attempt.outcome and attempt.outcome.code == "LLM_INCOMPLETE_OUTPUT")
    return ModelRequest(
        stage=policy.stage,
        protocol_version=protocol.version,
        prompt_id=protocol.prompt_id,
        attempt=number,
        provider=policy.provider,
        model=policy.model,
        system=prompt.system,
        user=canonical_bytes(prompt.user).decode(),
        response_format=policy.response_format,
        schema_name=protocol.prompt_id,
        response_schema=schema if isinstance(schema, dict) else protocol.response_schema(context),
        max_output_tokens=int(policy.max_output_tokens * Decimal(policy.incomplete_cap_factor) ** cut),
        timeout_s=policy.timeout_s,
    )


def _freeze_feedback(
    talk: Conversation, log: AttemptLog, attempts: Sequence[Attempt], number: int
) -> Mapping[str, object] | None:
    """Return the feedback that attempt `number` carries, writing it unless the last invalid reply has one already.

    An attempt that only repeats one that a provider failed carries the feedback of that one.
    """
    last = last_invalid(attempts)
    if last is None:
        return None
    for path in (talk.revision.feedback(talk.stage, place) for place in range(last.number + 1, number + 1)):
        frozen = talk.package.load_if(path, Feedback)
        if frozen is not None:
            return frozen.feedback
    outcome = talk.package.digest(log.path(last.number, OUTCOME))
    frozen = derive_feedback(talk.protocol, talk.context, last, outcome, number)
    talk.package.create_artifact(talk.revision.feedback(talk.stage, number), frozen)
    return frozen.feedback


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


def _settle(talk: Conversation, log: AttemptLog, attempt: Attempt) -> Attempt:
    """Decide an attempt that is not decided yet: from its bytes if they arrived, else as unknown."""
    if attempt.outcome is not None:
        return attempt
    digest = log.request_digest(attempt.number)
    native = log.native(attempt.number)
    if native is None:
        outcome = Outcome(
            kind="unknown", code="LLM_CALL_UNKNOWN", request=digest, native=None, at=format_time(talk.clock.now())
        )
    else:
        outcome = _decide(talk, log, attempt.number, digest, native)
    log.write_outcome(attempt.number, outcome)
    return Attempt(attempt.number, outcome)


def _decide(talk: Conversation, log: AttemptLog, number: int, digest: str, native: NativeReply) -> Outcome:
    try:
        reply = talk.provider().read(native)
    except ProviderError as exc:
        return _failed(talk, digest, native, exc)
    reply_digest = log.write_reply(number, reply)
    findings = judge(reply, talk.protocol.response_schema(talk.context), talk.rules, talk.context).findings
    return Outcome(
        kind="invalid" if findings else "accepted",
        code=findings[0].code if findings else None,
        findings=findings,
        request=digest,
        native=digest_of(native.body),
        reply=reply_digest,
        at=format_time(talk.clock.now()),
    )


def _failed(talk: Conversation, digest: str, native: NativeReply | None, error: ProviderError) -> Outcome:
    return Outcome(
        kind="unknown" if error.code == "LLM_CALL_UNKNOWN" else "provider_error",
        code=error.code,
        request=digest,
        native=None if native is None else digest_of(native.body),
        message=str(error).encode("utf-8", "backslashreplace").decode(),
        retryable=error.retryable,
        retry_after_ms=_wish_ms(error.retry_after),
        at=format_time(talk.clock.now()),
    )


def _wish_ms(seconds: float | None) -> int | None:
    """Return a server's wish in milliseconds; what is no time to wait is no wish, and no wait is longer than a year."""
    return round(min(seconds, LONGEST_WAIT_S) * 1000) if seconds is not None and seconds > 0 else None


# --- when to stop ---------------------------------------------------------------------------------------------------


def _must_wait(talk: Conversation, attempts: Sequence[Attempt]) -> bool:
    """Record an event and tell True where the policy allows no further attempt now."""
    events = EventLog(talk.package, talk.revision)
    outcomes = [attempt.outcome for attempt in attempts if attempt.outcome]
    last = outcomes[-1] if outcomes else None
    if last is None:
        return False
    if sum(outcome.kind == "invalid" for outcome in outcomes) >= talk.policy.max_invalid_responses:
        return _record(talk, events, "review", EXHAUSTED.get(talk.stage, "LLM_OUTPUT_SCHEMA"), attempts, None)
    if last.kind == "invalid":
        return False
    since = events.attempts_at_resume(talk.stage)
    failed = [a for a in attempts if a.number > since and a.outcome and a.outcome.kind in ("provider_error", "unknown")]
    if not failed or failed[-1].number != attempts[-1].number:
        return False
    if events.covers(talk.stage, attempts[-1].number):
        return False  # it waited for this failure already, and may now go on
    return _wait_for_provider(talk, events, attempts, last, len(failed))


def _wait_for_provider(
    talk: Conversation, events: EventLog, attempts: Sequence[Attempt], last: Outcome, failures: int
) -> bool:
    code = last.code or "LLM_UNAVAILABLE"
    delay = max(SAFETY_DELAY_S, (last.retry_after_ms or 0) / 1000)
    retry_at = format_time(parse_time(last.at) + timedelta(seconds=delay))
    if last.kind == "unknown":
        if talk.policy.unknown_calls == "retry" and failures <= talk.policy.max_retries:
            return False  # nobody asked us to wait: the call may even have been answered
        return _record(talk, events, "blocked", code, attempts, retry_at)
    transient = code in TRANSIENT and failures <= talk.policy.max_retries
    return _record(talk, events, "retry_pending" if transient else "blocked", code, attempts, retry_at)


def _record(
    talk: Conversation, events: EventLog, kind: str, code: str, attempts: Sequence[Attempt], retry_at: str | None
) -> bool:
    last = attempts[-1]
    detail = (
        last.outcome.message if last.outcome and last.outcome.message else f"stage {talk.stage}, attempt {last.number}"
    )
    events.append(
        Event(
            kind=kind,  # type: ignore[arg-type]  # one of the literals, by the callers above
            code=code,
            at=format_time(talk.clock.now()),
            retry_at=retry_at,
            detail=detail,
            stage=talk.stage,
            attempts=last.number,
        )
    )
    return True
