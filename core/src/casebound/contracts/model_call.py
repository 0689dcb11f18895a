"""One model call: what is asked, the bytes that came back, what was read from them, what was decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.base import Artifact, Contract, Digest, Time
from casebound.contracts.findings import Finding

ResponseFormat = Literal["json_schema", "json_object", "text"]
OutcomeKind = Literal["accepted", "invalid", "provider_error", "unknown"]
FinishReason = Literal["stop", "length", "refusal", "tool_calls", "other"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a protocol asks: the system text, and the one JSON object that is the user message."""

    system: str
    user: dict[str, object]


class ModelRequest(Artifact):
    """`request.json`: on disk before anything is sent. It holds no secret and no address.

    Attributes:
        stage, protocol_version, prompt_id: which conversation this is.
        attempt: 1 …, retries included.
        provider, model: who is asked; model is None where the provider needs none.
        system: the system text; `user` is exactly one canonical JSON object, as text.
        response_format: how far the provider may enforce the schema.
        response_schema: JSON Schema of the reply; `schema_name` is its name on the wire.
        max_output_tokens: cap of this attempt.
        timeout_s: deadline of the whole call.
    """

    format: Literal["casebound-request/v1"] = "casebound-request/v1"
    stage: str
    protocol_version: int
    prompt_id: str
    attempt: int
    provider: str
    model: str | None
    system: str
    user: str
    response_format: ResponseFormat
    schema_name: str
    response_schema: dict[str, object]
    max_output_tokens: int
    timeout_s: int

    @cached_property
    def readable_bytes(self) -> int:
        """How many UTF-8 bytes the model is given to read: system text, user message and schema."""
        texts = (self.system.encode(), self.user.encode(), canonical_bytes(self.response_schema))
        return sum(map(len, texts))


@dataclass(frozen=True)
class NativeReply:
    """What the server sent, before anything is derived from it.

    Attributes:
        status: HTTP status, or 200 where there is no HTTP.
        headers: an allow-list of headers, lower-case names; never a key or a cookie.
        body: the bytes.
        duration_ms: from sending to the last byte, whole milliseconds.
    """

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    duration_ms: int = 0

    @cached_property
    def record(self) -> NativeRecord:
        """What is written down beside the bytes; made once, so that what is written is what was checked."""
        return NativeRecord(
            status=self.status,
            headers=dict(self.headers),
            duration_ms=self.duration_ms,
            size=len(self.body),
            digest=digest_of(self.body),
        )


class NativeRecord(Artifact):
    """`native.json`: everything of a `NativeReply` but the bytes, which are `native.bin`."""

    format: Literal["casebound-native/v1"] = "casebound-native/v1"
    status: int
    headers: dict[str, str]
    duration_ms: int
    size: int
    digest: Digest


class Usage(Contract):
    """Tokens as the provider reported them; None where it said nothing."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


class ModelReply(Artifact):
    """`reply.json`: what a provider read from the native bytes.

    Attributes:
        text: the answer, exactly; empty where there was none.
        finish_reason: normalized; `native_finish_reason` is the server's own word.
        usage: as reported.
        request_id, served_model: as reported.
        tools: names of tools that the reply used or asked for; any makes the reply invalid.
    """

    format: Literal["casebound-reply/v1"] = "casebound-reply/v1"
    text: str
    finish_reason: FinishReason
    native_finish_reason: str | None = None
    usage: Usage = Usage()
    request_id: str | None = None
    served_model: str | None = None
    tools: tuple[str, ...] = ()


class Outcome(Artifact):
    """`outcome.json`: what was decided about an attempt, and why.

    Attributes:
        kind: `accepted`, `invalid`, `provider_error` or `unknown`.
        code: of the first finding or of the provider error; None where accepted.
        findings: everything that the rules found.
        native: digest of `native.bin`, None where no reply arrived.
        reply: digest of `reply.json`, None where nothing could be read from the bytes.
        request: digest of `request.json`.
        message: the error's message without secrets, None where there is none.
        retryable, retry_after_ms: of a provider error; milliseconds that the server asked for.
        at: when it was decided.
    """

    format: Literal["casebound-outcome/v1"] = "casebound-outcome/v1"
    kind: OutcomeKind
    code: str | None
    findings: tuple[Finding, ...] = ()
    request: Digest
    native: Digest | None
    reply: Digest | None = None
    message: str | None = None
    retryable: bool = False
    retry_after_ms: int | None = None
    at: Time
