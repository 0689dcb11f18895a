"""What a run of a benchmark recorded: `captures.json`, and beside it `captures.jsonl`, one attempted slot a line.

Rules:
- The head binds what was planned before anything was asked, and the lines by size and digest; so the lines can be
  streamed, and a file that lost its tail does not hold.
- A slot is a planned case and a repeat. One that was not attempted has no line; a call that failed or was cancelled
  has one, without an output. What was not reported is absent, never zero.
- Money is a decimal as text: no float stands in a file that is digested.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from casebound.contracts.base import Artifact, CamelContract, Contract, Digest, SafeName, Time
from casebound.contracts.model_call import FinishReason, ModelReply, ResponseFormat

RECORDS_FILE: Literal["captures.jsonl"] = "captures.jsonl"
MOST_REPEATS = 2

Decimals = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?$")]
CodeName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]


class RecordedLines(CamelContract):
    """The lines that belong to a head: how many there are, their bytes together, and the digest of these."""

    file: Literal["captures.jsonl"] = RECORDS_FILE
    count: int = Field(ge=0)
    bytes: int = Field(ge=0)
    digest: Digest


class Captures(CamelContract, Artifact):
    """`captures.json`: what was planned, who was asked, and which lines say what came of it.

    Attributes:
        format: the benchmark's name of its captures.
        measurement_id: the measurement that the run belongs to.
        plan_id: the confirmed plan of a live run; None where there was none.
        split: the one split that was asked for.
        case_ids: the planned cases of the split, in the corpus's order.
        repeats: how often each case was planned, once or twice.
        started_at: before the first call.
        executor, model: who was asked; `served_model` of an output is what the server said.
        response_format: how far the executor was to enforce the schema.
        receipts: digests of the review receipts that the run was bound to before it began.
        records: the lines.
    """

    SCHEMA_NAME: ClassVar[str] = "casebound-bench-captures-v1"

    format: str
    measurement_id: Digest
    plan_id: Digest | None
    split: str
    case_ids: tuple[SafeName, ...] = Field(min_length=1)
    repeats: int = Field(ge=1, le=MOST_REPEATS)
    started_at: Time
    executor: Label
    model: Label | None
    response_format: ResponseFormat
    receipts: tuple[Digest, ...]
    records: RecordedLines


class CapturedOutput(CamelContract):
    """What the model answered, exactly; the fields are those of `reply.json`."""

    text: str
    finish_reason: FinishReason
    native_finish_reason: str | None = None
    request_id: str | None = None
    served_model: str | None = None
    tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, reply: ModelReply) -> Self:
        """Return what a capture keeps of a reply; its usage stands in the record."""
        return cls(
            text=reply.text,
            finish_reason=reply.finish_reason,
            native_finish_reason=reply.native_finish_reason,
            request_id=reply.request_id,
            served_model=reply.served_model,
            tools=reply.tools,
        )

    def reply(self) -> ModelReply:
        """Return the reply as admission judges it."""
        return ModelReply(
            text=self.text,
            finish_reason=self.finish_reason,
            native_finish_reason=self.native_finish_reason,
            request_id=self.request_id,
            served_model=self.served_model,
            tools=self.tools,
        )


class CallFailure(Contract):
    """Why a call has no output: a code of the table, and its message without secrets."""

    code: CodeName
    message: str | None = None


class CaptureRecord(CamelContract, Artifact):
    """One line of `captures.jsonl`: an attempted slot. An optional key without a value is left out.

    Attributes:
        case_id, repeat: the slot; repeats count from 1.
        input: digest of the canonical JSON of the case's input, as it was sent.
        status: what came back: an output, a failure of the call, or nothing because it was cancelled. A call that was
            sent and whose reply never reached the disk is a failure with `LLM_CALL_UNKNOWN`.
        output, failure: exactly the one that `status` names.
        usage: as the executor reported it, unchanged.
        duration_ms: measured.
        cost_usd: as the executor reported it; absent is unknown.
        native: digest of the archived native reply.
    """

    SCHEMA_NAME: ClassVar[str] = "casebound-bench-capture-record-v1"

    case_id: SafeName
    repeat: int = Field(ge=1, le=MOST_REPEATS)
    input: Digest
    status: Literal["output", "call_failure", "cancelled"]
    output: CapturedOutput | None = None
    failure: CallFailure | None = None
    usage: dict[str, object] | None = None
    duration_ms: int | None = Field(default=None, ge=0)
    cost_usd: Decimals | None = Field(default=None, alias="costUSD")
    native: Digest | None = None

    @model_validator(mode="after")
    def _one_ending(self) -> Self:
        if (self.output is not None) != (self.status == "output"):
            raise ValueError("an output stands exactly where the status says so")
        if (self.failure is not None) != (self.status == "call_failure"):
            raise ValueError("a failure stands exactly where the status says so")
        return self

    def to_json(self) -> dict[str, object]:
        """Return the record as plain JSON data, without the keys that have no value."""
        return {key: value for key, value in super().to_json().items() if value is not None}
