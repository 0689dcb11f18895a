"""The recorded replies of a case as one file: a live run that became a fixture.

It holds what the models answered and, of each request, only digests of what the model saw; no text of a request, no
settings, no address and no time of day. Hence the same replies to the same requests are the same bytes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Literal, Self

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.base import Artifact, Contract, Digest
from casebound.contracts.model_call import ModelReply, NativeRecord, NativeReply, OutcomeKind, ResponseFormat


class RecordedRequest(Contract):
    """Who was asked, and digests of everything that the model saw.

    Attributes:
        user: by key of the user message, the digest of the canonical JSON that stands there.
    """

    provider: str
    model: str | None
    prompt_id: str
    response_format: ResponseFormat
    system: Digest
    user: dict[str, Digest]
    response_schema: Digest


class RecordedOutcome(Contract):
    """What became of the attempt; the fields are those of `outcome.json`."""

    kind: OutcomeKind
    code: str | None
    message: str | None
    retryable: bool
    retry_after_ms: int | None


class RecordedAttempt(Contract):
    """One attempt of one stage.

    Attributes:
        native, body: what the server sent, the bytes as base64; None where nothing came back.
        reply: what the provider read from it; None where it read an error, or nothing came back.
    """

    stage: str
    attempt: int
    request: RecordedRequest
    native: NativeRecord | None
    body: str | None
    reply: ModelReply | None
    outcome: RecordedOutcome

    def native_reply(self) -> NativeReply | None:
        """Return what the server sent, None where nothing came back. Raises `ValueError` where it does not hold."""
        if self.native is None or self.body is None:
            return None
        try:
            body = base64.b64decode(self.body, validate=True)
        except binascii.Error as exc:
            raise ValueError(f"{self.stage} {self.attempt}: the body is no base64") from exc
        if (len(body), digest_of(body)) != (self.native.size, self.native.digest):
            raise ValueError(f"{self.stage} {self.attempt}: the body is not what its digest says")
        return NativeReply(self.native.status, body, self.native.headers, self.native.duration_ms)


class Recording(Artifact):
    """A recording: every decided attempt of a case's latest interpretation, in the order of stages and numbers.

    Attributes:
        content: digest of the canonical JSON of `attempts`.
    """

    format: Literal["casebound-recording/v1"] = "casebound-recording/v1"
    content: Digest
    attempts: tuple[RecordedAttempt, ...]

    @classmethod
    def of(cls, attempts: Sequence[RecordedAttempt]) -> Self:
        """Return the recording of `attempts`."""
        return cls(content=_content(attempts), attempts=tuple(attempts))

    def check(self) -> None:
        """Raise `ValueError`, with what is wrong, where a digest does not hold or an attempt stands twice."""
        if self.content != _content(self.attempts):
            raise ValueError("the attempts are not what the digest at /content says")
        if len({(attempt.stage, attempt.attempt) for attempt in self.attempts}) != len(self.attempts):
            raise ValueError("an attempt stands twice")
        for attempt in self.attempts:
            attempt.native_reply()


def _content(attempts: Sequence[RecordedAttempt]) -> str:
    return digest_of(canonical_bytes([attempt.to_json() for attempt in attempts]))
