"""Executing a confirmed plan: each slot at most once, whoever executes it and however often.

Rules:
- A slot is called only by whoever published its reservation. A reserved slot without evidence is unknown: it is never
  called again, and it ends the run.
- What came back is on disk before it is read. What was read can be derived again, to the same bytes.
- Nothing is called before every slot that has evidence is decided: what stops the run stops it for good. The causes
  are a failed or cancelled call, an output that is not admitted, a tool, unreported usage, and an unknown slot. There
  is no retry and no correction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from casebound.bench.checks import check_record
from casebound.bench.live_folder import LiveFolder
from casebound.bench.subject import Subject
from casebound.canonical import digest_of
from casebound.clock import Clock
from casebound.contracts.bench_captures import (
    CallFailure,
    CapturedOutput,
    CaptureRecord,
    Captures,
    RecordedLines,
)
from casebound.contracts.bench_live import CallEnding, LivePlan, PlannedSlot, SlotOutcome, StopCause
from casebound.contracts.model_call import NativeReply, Usage
from casebound.errors import ProviderError, UnavailableError
from casebound.llm.provider import Provider
from casebound.store.lock import exclusive

_UNKNOWN = "LLM_CALL_UNKNOWN"


@dataclass(frozen=True, slots=True)
class Execution:
    """One process at work on a plan.

    Attributes:
        folder: of the run, open for writing.
        plan: as it was confirmed.
        subject: what outputs are checked against.
        provider: who is called.
        clock: tells when.
    """

    folder: LiveFolder
    plan: LivePlan
    subject: Subject
    provider: Provider
    clock: Clock


async def execute(run: Execution) -> None:
    """Call the slots that were never called, one after the other, until all have a record or the run stops.

    Raises:
        UnavailableError: another process executes the plan (`CASE_BUSY`); the folder cannot be written.
        SettingsError: a file of the run does not hold.
        PluginError: the provider, a rule or the checker failed; what was called stays called.
        asyncio.CancelledError: somebody ended it; the slot under way is kept as cancelled.
    """
    run.folder.prepare()
    with exclusive(run.folder.package):
        fresh = _settle_all(run)
        if fresh is not None:
            for slot in fresh:
                if not await _call(run, slot):
                    break
        _keep_captures(run)


def _settle_all(run: Execution) -> list[PlannedSlot] | None:
    """Decide every slot that was called; return those that were not, None where the run has stopped."""
    fresh, stopped = [], False
    for slot in run.plan.slots:
        if run.folder.reservation(run.plan, slot) is None:
            fresh.append(slot)
        else:
            stopped = _settle(run, slot) is not None or stopped
    return None if stopped else fresh


async def _call(run: Execution, slot: PlannedSlot) -> bool:
    """Reserve, send, keep, decide; tell whether the run goes on."""
    request = run.folder.request(slot)
    if not run.folder.reserve(run.plan, slot, run.clock.now()):
        # The lock did not hold, on whatever file system this is: what becomes of the slot is not ours to say.
        raise UnavailableError("CASE_BUSY", path=str(run.folder.root), found=f"a reservation of slot {slot.number}")
    try:
        native = await run.provider.send(request)
    except ProviderError as exc:
        message = str(exc).encode("utf-8", "backslashreplace").decode()
        run.folder.keep_ending(slot, CallEnding(kind="failed", code=exc.code, message=message))
    except asyncio.CancelledError:
        run.folder.keep_ending(slot, CallEnding(kind="cancelled", code=None, message=None))
        _settle(run, slot)
        _keep_captures(run)
        raise
    else:
        run.folder.keep_native(slot, native)
    return _settle(run, slot) is None


# --- deciding -------------------------------------------------------------------------------------------------------


def _settle(run: Execution, slot: PlannedSlot) -> StopCause | None:
    """Derive what a called slot lacks, and return why the run stops there, None where it does not."""
    outcome = run.folder.outcome(slot)
    if outcome is None:
        record = derive_record(run, slot)
        if record is None:
            return "unknown_slot"
        outcome = derive_outcome(record, run.subject)
        run.folder.keep_record(slot, record)
        run.folder.keep_outcome(slot, outcome)
    return outcome.stops


def derive_record(run: Execution, slot: PlannedSlot) -> CaptureRecord | None:
    """Return what the evidence of a slot says: the same bytes whenever it is derived; None where there is none."""
    native = run.folder.native(slot)
    if native is not None:
        return _read(run, slot, native)
    ending = run.folder.ending(slot)
    if ending is None:
        return None
    if ending.kind == "cancelled":
        return CaptureRecord(case_id=slot.case_id, repeat=slot.repeat, input=slot.input, status="cancelled")
    return _failed(slot, ending.code or "LLM_UNAVAILABLE", ending.message)


def _read(run: Execution, slot: PlannedSlot, native: NativeReply) -> CaptureRecord:
    try:
        reply = run.provider.read(native)
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
        stops=_cause(record, slot.state),
    )


def _cause(record: CaptureRecord, state: str) -> StopCause | None:
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


def _keep_captures(run: Execution) -> None:
    """Write the captures, once nothing more will be called."""
    records = captured(run.folder, run.plan)
    decided = [run.folder.outcome(slot) for slot in run.plan.slots]
    stopped = any(record.failure and record.failure.code == _UNKNOWN for record in records)
    stopped = stopped or any(outcome and outcome.stops for outcome in decided)
    if stopped or all(decided):
        lines = b"".join(record.to_bytes() + b"\n" for record in records)
        run.folder.keep_captures(lines, _head(run, lines, len(records)))


def captured(folder: LiveFolder, plan: LivePlan) -> Sequence[CaptureRecord]:
    """Return the records of all slots that were called, in order; an unknown one is a failure that says so."""
    records = []
    for slot in plan.slots:
        if folder.reservation(plan, slot) is not None:
            records.append(folder.record(slot) or _failed(slot, _UNKNOWN, None))
    return records


def _head(run: Execution, lines: bytes, count: int) -> Captures:
    plan = run.plan
    reservations = (run.folder.reservation(plan, slot) for slot in plan.slots)
    return Captures(
        format=run.subject.versions.captures,
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
        records=RecordedLines(count=count, bytes=len(lines), digest=digest_of(lines)),
    )
