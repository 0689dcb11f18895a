"""A provider that answers from recorded replies: a live run as an offline regression fixture.

Rules:
- It answers only the attempt that was recorded, and only where the model would see the same again: the same provider
  and model, prompt, system text, user message, schema and format. Else it names the parts that differ.
- Nothing is judged here: a reply that the rules refused is refused by them again, a cut one is cut again, an error of
  the server is the same error, a call whose reply never arrived is unknown again.
- Every native reply says in a header of ours that it was replayed, and from which recording. The policy that the case
  froze names who answered then, because nobody else is accepted.
- No key, no network, no code of a vendor: what was read from the native bytes is recorded beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.contracts.recording import RecordedAttempt, RecordedRequest, Recording
from casebound.errors import ProviderError, SettingsError
from casebound.strict_json import parse_json

REPLAYED = "casebound-replayed-from"


class ReplayedError(ProviderError):
    """An error that a provider had when the recording was made, in its own words, marked as replayed."""

    def __init__(self, recorded: RecordedAttempt, source: str) -> None:
        wish_ms = recorded.outcome.retry_after_ms
        self._words = recorded.outcome.message or recorded.outcome.code
        self._source = source
        super().__init__(
            recorded.outcome.code or "LLM_UNAVAILABLE",
            retryable=recorded.outcome.retryable,
            retry_after=None if wish_ms is None else wish_ms / 1000,
        )

    def _message(self) -> str:
        return f"{self._words}\n  replayed from: {self._source}"


class ReplayProvider:
    """Answers every stage of a case from one recording, which must hold (`Recording.check`)."""

    def __init__(self, recording: Recording) -> None:
        self.digest = digest_of(recording.to_bytes())
        self._attempts = {(attempt.stage, attempt.attempt): attempt for attempt in recording.attempts}

    def check(self, request: ModelRequest) -> None:
        """Refuse a request that the recording does not answer.

        Raises:
            SettingsError: `REPLAY_MISSING`: no such attempt; `REPLAY_MISMATCH`: another request, with the parts.
        """
        self._recorded(request)

    def check_model(self, stage: str, provider: str, model: str | None) -> None:
        """Refuse settings that let somebody else answer `stage` than the one whose replies are recorded.

        Raises:
            SettingsError: `REPLAY_MISMATCH`.
        """
        recorded = self._attempts.get((stage, 1))
        if recorded is not None:
            then = recorded.request
            _refuse(f"stage {stage}", {"provider": provider, "model": model}, then.to_json())

    async def send(self, request: ModelRequest) -> NativeReply:
        """Return the recorded bytes. Raises `SettingsError` as `check`, `ProviderError` where nothing came back."""
        recorded = self._recorded(request)
        native = recorded.native_reply()
        source = f"{self.digest} {_name(recorded)}"
        if native is None:
            raise ReplayedError(recorded, source)
        return replace(native, headers={**native.headers, REPLAYED: source})

    def read(self, native: NativeReply) -> ModelReply:
        """Return what was read from the bytes then. Raises `ProviderError` as the provider did.

        Raises:
            SettingsError: `REPLAY_MISMATCH`, for bytes that came from elsewhere.
        """
        source = native.headers.get(REPLAYED, "")
        recorded = next((a for a in self._attempts.values() if source == f"{self.digest} {_name(a)}"), None)
        if recorded is None:
            raise SettingsError(
                "REPLAY_MISMATCH",
                found="a reply that is already on disk and did not come from this recording",
                hint="go on as the case began, without the recording or with the other one",
            )
        if recorded.reply is None:
            raise ReplayedError(recorded, source)
        return recorded.reply

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _recorded(self, request: ModelRequest) -> RecordedAttempt:
        where = f"stage {request.stage}, attempt {request.attempt}"
        recorded = self._attempts.get((request.stage, request.attempt))
        if recorded is None:
            kept = [_name(attempt) for attempt in self._attempts.values()]
            raise SettingsError("REPLAY_MISSING", where=where, found="nothing recorded for it", allowed=kept)
        _refuse(where, recorded_request(request).to_json(), recorded.request.to_json())
        return recorded


def recorded_request(request: ModelRequest) -> RecordedRequest:
    """Return what a recording says of a request."""
    message: Mapping[str, object] = parse_json(request.user.encode())
    return RecordedRequest(
        provider=request.provider,
        model=request.model,
        prompt_id=request.prompt_id,
        response_format=request.response_format,
        system=digest_of(request.system.encode()),
        user={key: digest_of(canonical_bytes(value)) for key, value in message.items()},
        response_schema=digest_of(canonical_bytes(request.response_schema)),
    )


def replayed_from(headers: Mapping[str, str]) -> str | None:
    """Return the digest of the recording that a native reply with `headers` came from; None: a provider sent it."""
    return headers[REPLAYED].partition(" ")[0] if REPLAYED in headers else None


def _refuse(where: str, now: Mapping[str, object], then: Mapping[str, object]) -> None:
    """Raise `REPLAY_MISMATCH` with every part of `now` that is another one than in `then`; nothing else is compared."""
    different = [text for part, found in now.items() for text in _differences(part, found, then[part])]
    if different:
        raise SettingsError("REPLAY_MISMATCH", where=where, found=f"another {', '.join(different)}")


def _differences(part: str, now: object, then: object) -> Iterator[str]:
    if isinstance(now, dict) and isinstance(then, dict):
        keys = dict.fromkeys([*now, *then])
        yield from (f"{part}.{key}" for key in keys if now.get(key) != then.get(key))
    elif now != then:
        yield part if part in ("system", "response_schema") else f"{part} ({now}, recorded: {then})"


def _name(attempt: RecordedAttempt) -> str:
    return f"{attempt.stage}-{attempt.attempt:04d}"
