"""What is derived from the evidence of a live run: records, outcomes, captures. Nothing here writes.

The same evidence gives the same bytes, whoever derives it and however often; so what stands there can be confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from casebound.bench.checks import check_record
from casebound.bench.live_folder import LiveFolder
from casebound.bench.subject import Subject
from casebound.canonical import digest_of
from casebound.contracts.bench_captures import (
    CallFailure,
    CapturedOutput,
    CaptureRecord,
    Captures,
    RecordedLines,
)
from casebound.contracts.bench_live import CallEnding, LivePlan, PlannedSlot, SlotOutcome, StopCause
from casebound.contracts.model_call import ModelReply, NativeReply, Usage
from casebound.errors import ProviderError

Read = Callable[[NativeReply], ModelReply]

_UNKNOWN = "LLM_CALL_UNKNOWN"


def derive_record(
    slot: PlannedSlot, native: NativeReply | None, ending: CallEnding | None, read: Read
) -> CaptureRecord | None:
    """Return what the evidence of a slot says: the same bytes whenever it is derived; None where there is none."""
    if native is not None:
        return _read(slot, native, read)
    if ending is None:
        return None
    if ending.kind == "cancelled":
        return CaptureRecord(case_id=slot.case_id, repeat=slot.repeat, input=slot.input, status="cancelled")
    return _failed(slot, ending.code or "LLM_UNAVAILABLE", ending.message)


def _read(slot: PlannedSlot, native: NativeReply, read: Read) -> CaptureRecord:
    try:
        reply = read(native)
    except ProviderError as exc:
        message = str(exc).encode("utf-8", "backslashreplace").decode()
        return _failed(slot, exc.code, message, native)
    return CaptureRecord(
        case_id=slot.case_id,
        repeat=slot.repeat,
        input=slot.input,
        status="output",
        output=CapturedOutput.of(reply),
        usage=_reported(reply.usage),
        duration_ms=native.duration_ms,
        native=digest_of(native.body),
    )


def _failed(slot: PlannedSlot, code: str, message: str | None, native: NativeReply | None = None) -> CaptureRecord:
    return CaptureRecord(
        case_id=slot.case_id,
        repeat=slot.repeat,
        input=slot.input,
        status="call_failure",
        failure=CallFailure(code=code, message=message),
        duration_ms=None if native is None else native.duration_ms,
        native=None if native is None else digest_of(native.body),
    )


def _reported(usage: Usage) -> dict[str, object] | None:
    """Return the figures that were reported; what was not is left out, and is no zero."""
    return {name: figure for name, figure in usage.to_json().items() if figure is not None} or None


def derive_outcome(record: CaptureRecord, subject: Subject) -> SlotOutcome:
    """Return what the machine makes of a record. Raises `PluginError` where a rule or the checker itself failed."""
    slot = check_record(record, subject)
    return SlotOutcome(
        record=digest_of(record.to_bytes()),
        state=slot.state,
        code=slot.code,
        findings=slot.findings,
        stops=cause_of(record, slot.state),
    )


def cause_of(record: CaptureRecord, state: str) -> StopCause | None:
    """Return why a run stops at a record that reached `state`, None where it goes on."""
    if record.failure is not None:
        return "unknown_slot" if record.failure.code == _UNKNOWN else "call_failure"
    if record.output is None:
        return "cancelled"
    if record.output.tools:
        return "tools_observed"
    match state:
        case "parse_failure" | "schema_rejection" | "binding_rejection":
            return state
    usage = record.usage or {}
    return None if usage.keys() & {"input_tokens", "output_tokens"} else "usage_unreported"


# --- captures -------------------------------------------------------------------------------------------------------


def captured(folder: LiveFolder, plan: LivePlan) -> Sequence[CaptureRecord]:
    """Return the records of all slots that were called, in order; an unknown one is a failure that says so."""
    records = []
    for slot in plan.slots:
        if folder.reservation(plan, slot) is not None:
            records.append(folder.record(slot) or _failed(slot, _UNKNOWN, None))
    return records


def derive_captures(folder: LiveFolder, plan: LivePlan, captures_format: str) -> tuple[bytes, Captures]:
    """Return the lines of all slots that were called, and their head. At least one slot must have been called."""
    records = captured(folder, plan)
    lines = b"".join(record.to_bytes() + b"\n" for record in records)
    reservations = (folder.reservation(plan, slot) for slot in plan.slots)
    head = Captures(
        format=captures_format,
        measurement_id=plan.measurement_id,
        plan_id=plan.plan_id,
        split=plan.split,
        case_ids=tuple(slot.case_id for slot in plan.slots),
        repeats=1,
        started_at=min(reservation.at for reservation in reservations if reservation is not None),
        executor=plan.policy.provider,
        model=plan.policy.model,
        response_format=plan.policy.response_format,
        receipts=plan.receipts,
        records=RecordedLines(count=len(records), bytes=len(lines), digest=digest_of(lines)),
    )
    return lines, head
