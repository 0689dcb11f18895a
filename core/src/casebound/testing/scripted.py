"""Fakes that are told beforehand what to say: a provider, a provider that must not be asked, a clock; and a request.

The scripted provider obeys the contract of real ones and passes the same suite (`testing.conformance.provider`).
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pydantic import ValidationError

from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError

ScriptedAnswer: TypeAlias = "dict[str, object] | str | ProviderError | NativeReply | ModelReply"


def model_request(**changes: object) -> ModelRequest:
    """Return a small valid request of stage `plan`, with `changes` to its fields."""
    facts: dict[str, object] = {
        "stage": "plan",
        "protocol_version": 4,
        "prompt_id": "test",
        "attempt": 1,
        "provider": "scripted",
        "model": "model-1",
        "system": "Answer with one JSON object.",
        "user": '{"task":"plan"}',
        "response_format": "json_schema",
        "schema_name": "plan",
        "response_schema": {"type": "object"},
        "max_output_tokens": 64,
        "timeout_s": 20,
    }
    return ModelRequest.model_validate({**facts, **changes})


def native_reply(
    text: str | dict[str, object],
    *,
    finish_reason: FinishReason = "stop",
    usage: Usage | None = None,
    tools: Sequence[str] = (),
) -> NativeReply:
    """Return what a `ScriptedProvider` receives when the model says `text` (a dict: its canonical JSON)."""
    body: dict[str, object] = {
        "text": text if isinstance(text, str) else canonical_bytes(text).decode(),
        "finish_reason": finish_reason,
        "usage": None if usage is None else usage.to_json(),
    }
    if tools:
        body["tools"] = list(tools)
    return NativeReply(status=200, body=canonical_bytes(body))


def native_error(code: str, *, retryable: bool = False, retry_after_s: int | None = None) -> NativeReply:
    """Return an error that the server itself sends: `send` delivers it, `read` raises it."""
    error = {"code": code, "retryable": retryable, "retry_after": retry_after_s}
    return NativeReply(status=500, body=canonical_bytes({"error": error}))


class ScriptedProvider:
    """Gives prepared answers, each once, in order, by stage.

    An answer is a dict (the model's JSON), a string (the model's text, exactly), a `ModelReply` (what is read), a
    `NativeReply` (the bytes, see `native_reply` and `native_error`) or a `ProviderError` (nothing came back: `send`
    raises it). A request for which nothing is left raises `AssertionError`.

    Attributes:
        calls: every request, in the order of sending.
        closed: how often `aclose` was called.
    """

    def __init__(self, replies: Mapping[str, Sequence[ScriptedAnswer]]) -> None:
        self.calls: list[ModelRequest] = []
        self.closed = 0
        self._left = {stage: deque(answers) for stage, answers in replies.items()}

    async def send(self, request: ModelRequest) -> NativeReply:
        """Return the next answer for the request's stage, as bytes."""
        self.calls.append(request)
        left = self._left.get(request.stage)
        if not left:
            raise AssertionError(f"nothing is scripted for call {len(self.calls)}, stage {request.stage}")
        answer = left.popleft()
        if isinstance(answer, ProviderError):
            raise answer
        if isinstance(answer, NativeReply):
            return answer
        if isinstance(answer, ModelReply):
            return NativeReply(status=200, body=canonical_bytes({"reply": answer.to_json()}))
        return native_reply(answer)

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the bytes say; `{"text", "finish_reason", "usage"}` is their shape."""
        try:
            body = json.loads(native.body)
        except (ValueError, RecursionError) as exc:
            raise ProviderError("LLM_UNAVAILABLE", retryable=True, found="bytes that are not JSON") from exc
        if not isinstance(body, dict):
            raise ProviderError("LLM_UNAVAILABLE", retryable=True, found="JSON that is not an object")
        error = body.get("error")
        if isinstance(error, dict):
            raise ProviderError(
                str(error.get("code")),
                retryable=error.get("retryable") is True,
                retry_after=error.get("retry_after"),
                found="a scripted error",
            )
        try:
            if "reply" in body:
                return ModelReply.from_json(body["reply"])
            usage = body.pop("usage", None) or {}
            return ModelReply.from_json({**body, "usage": usage})
        except ValidationError as exc:
            raise ProviderError("LLM_UNAVAILABLE", retryable=True, found="JSON of another shape") from exc

    async def aclose(self) -> None:
        """Count; there is nothing to close."""
        self.closed += 1

    def left(self) -> dict[str, int]:
        """Return how many answers each stage still has; a test may demand that none is left."""
        return {stage: len(answers) for stage, answers in self._left.items()}


class RaisingProvider:
    """A provider that must not be asked: whoever sends or reads gets an `AssertionError`."""

    async def send(self, request: ModelRequest) -> NativeReply:
        """Raise: nothing may be sent."""
        raise AssertionError(f"a request was sent: stage {request.stage}, attempt {request.attempt}")

    def read(self, native: NativeReply) -> ModelReply:
        """Raise: nothing may be read."""
        raise AssertionError(f"a native reply of {len(native.body)} bytes was read")

    async def aclose(self) -> None:
        """Do nothing."""


class FixedClock:
    """A clock that moves only by hand; who sleeps by it wakes when it was advanced far enough."""

    def __init__(self, start: datetime = datetime(2026, 11, 1, 8, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = timedelta()
        self._sleepers: list[tuple[timedelta, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time at which the clock was set."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds by which the clock was advanced."""
        return self._elapsed.total_seconds()

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raises `ValueError` for a step back."""
        if seconds < 0:
            raise ValueError("a clock never goes back; use set_now for a wall clock that was corrected")
        self._elapsed += timedelta(seconds=seconds)
        for due, sleeper in self._asleep():
            if due <= self._elapsed:
                sleeper.get_loop().call_soon_threadsafe(_wake, sleeper)

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by `seconds`."""
        if seconds <= 0:
            return await asyncio.sleep(0)
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed + timedelta(seconds=seconds), sleeper))
        return await sleeper

    def next_waking(self) -> float | None:
        """Return in how many seconds somebody who sleeps would wake, None where nobody sleeps."""
        return min(((due - self._elapsed).total_seconds() for due, _ in self._asleep()), default=None)

    def is_awaited(self, seconds: float) -> bool:
        """Tell whether somebody sleeps who wakes in exactly so many seconds."""
        return any(due - self._elapsed == timedelta(seconds=seconds) for due, _ in self._asleep())

    def _asleep(self) -> list[tuple[timedelta, asyncio.Future[None]]]:
        self._sleepers = [(due, sleeper) for due, sleeper in self._sleepers if not sleeper.done()]
        return self._sleepers

    def set_now(self, moment: datetime) -> None:
        """Correct the wall clock, as an operator might; `monotonic` does not change."""
        self._start = moment - self._elapsed


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
