"""Confirming a live run: whatever stands in its folder must be what its evidence says. Nothing is called or written.

Rules:
- No file of a slot stands there without its reservation; no record or outcome without the evidence behind it.
- A record is of its slot and of exactly the native bytes that stand there; an outcome is of its record.
- Captures are the records of all slots that were called, and stand only where the run has ended.
- With a subject, outcomes are derived again and compared; with a reader of native replies, records too.

Files are read in the reverse order of their writing, so that a run under way is no damaged one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from casebound.bench.live_folder import (
    CAPTURES,
    CODE,
    ENDING,
    NATIVE,
    NATIVE_BODY,
    OUTCOME,
    RECORD,
    LiveFolder,
)
from casebound.bench.live_records import Read, cause_of, derive_captures, derive_outcome, derive_record
from casebound.bench.subject import Subject
from casebound.canonical import digest_of
from casebound.contracts.bench_captures import RECORDS_FILE, CaptureRecord
from casebound.contracts.bench_live import CallEnding, LivePlan, PlannedSlot, SlotOutcome
from casebound.contracts.model_call import NativeReply
from casebound.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Means:
    """What is at hand to derive again.

    Attributes:
        subject: the frozen measurement, for outcomes; None where it is not installed as it was.
        read: reads native replies, for records; None where the executor is not installed as it was.
    """

    subject: Subject | None = None
    read: Read | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is taken as it stands."""
        return self.subject is not None and self.read is not None


NO_MEANS = Means()


def confirm_run(folder: LiveFolder, plan: LivePlan, means: Means) -> tuple[SlotOutcome | None, ...]:
    """Return the outcome of each slot, None where it has none, once every file of the run holds.

    Raises:
        SettingsError: a file does not hold (`BENCH_LIVE`, `BENCH_FILE`).
    """
    confirm_captures(folder, plan, means)
    called = folder.called(plan)
    return tuple(confirm_slot(folder, plan, slot, means) if slot in called else None for slot in plan.slots)


def confirm_slot(folder: LiveFolder, plan: LivePlan, slot: PlannedSlot, means: Means) -> SlotOutcome | None:
    """Return the outcome of a slot that was called, None where it has none, once all that stands there holds.

    Raises:
        SettingsError: a file of the slot does not hold (`BENCH_LIVE`, `BENCH_FILE`).
        PluginError: reading or judging failed.
    """
    folder.reservation(plan, slot)
    names = folder.names(slot)
    outcome, record = folder.outcome(slot), folder.record(slot)
    native, ending = folder.native(slot), folder.ending(slot)
    if ending is not None and (native is not None or NATIVE in names):
        raise folder.refusal(slot, ENDING, f"an ending without a reply, beside {NATIVE}")
    derived = next((name for name in (RECORD, OUTCOME) if name in names), None)
    if derived is not None and native is None and ending is None:
        raise folder.refusal(slot, derived, f"a file without its evidence: neither {NATIVE_BODY} nor {ENDING}")
    if record is not None:
        _confirm_record(folder, slot, record, (native, ending), means)
    if record is not None and outcome is not None:
        _confirm_outcome(folder, slot, record, outcome, means)
    return outcome


def _confirm_record(
    folder: LiveFolder,
    slot: PlannedSlot,
    record: CaptureRecord,
    evidence: tuple[NativeReply | None, CallEnding | None],
    means: Means,
) -> None:
    native, ending = evidence
    if native is None or means.read is not None:
        holds = record == derive_record(slot, native, ending, means.read or _never)
    else:
        bound = (record.case_id, record.repeat, record.input, record.native, record.duration_ms)
        wanted = (slot.case_id, slot.repeat, slot.input, digest_of(native.body), native.duration_ms)
        holds = bound == wanted and record.status != "cancelled"
    if not holds:
        raise folder.refusal(slot, RECORD, f"another record than {NATIVE_BODY if native else ENDING} gives")


def _never(native: NativeReply) -> NoReturn:
    raise AssertionError("an ending has no native reply")


def _confirm_outcome(
    folder: LiveFolder, slot: PlannedSlot, record: CaptureRecord, outcome: SlotOutcome, means: Means
) -> None:
    holds = outcome.stops == cause_of(record, outcome.state)
    if means.subject is not None:
        holds = outcome == derive_outcome(record, means.subject)
    if not holds:
        raise folder.refusal(slot, OUTCOME, f"another outcome than {RECORD} gives")


def has_ended(folder: LiveFolder, plan: LivePlan) -> bool:
    """Tell whether nothing of a run will ever be called again: it is complete, or has stopped."""
    called = folder.called(plan)
    outcomes = [folder.outcome(slot) for slot in called]
    stopped = any(outcome is None or outcome.stops is not None for outcome in outcomes)
    return stopped or len(called) == len(plan.slots)


def confirm_captures(folder: LiveFolder, plan: LivePlan, means: Means, *, whole: bool = True) -> None:
    """Refuse captures that are not those of the run.

    Args:
        folder: of the run.
        plan: of the run.
        means: with a subject, the name of the format is confirmed too.
        whole: False: missing lines are no error, for they will be derived again.

    Raises:
        SettingsError: `BENCH_LIVE`, `BENCH_FILE`.
    """
    lines, head = folder.captures()
    if lines is None and head is None:
        return
    name = RECORDS_FILE if head is None else CAPTURES
    if not folder.called(plan) or not has_ended(folder, plan):
        raise _refusal(folder, name, "captures of a run of which a slot was never called, without a cause to stop")
    versions = None if means.subject is None else means.subject.versions.captures
    wanted_lines, wanted_head = derive_captures(folder, plan, versions or ("" if head is None else head.format))
    if lines is None and whole:
        raise _refusal(folder, RECORDS_FILE, "nothing", hint="execute derives it again")
    if lines is not None and lines != wanted_lines:
        raise _refusal(folder, RECORDS_FILE, "other lines than the records of the slots")
    if head is not None and head != wanted_head:
        raise _refusal(folder, CAPTURES, "another head than plan, reservations and records give")


def _refusal(folder: LiveFolder, name: str, found: str, hint: str | None = None) -> SettingsError:
    return SettingsError(CODE, path=str(folder.root / name), found=found, hint=hint)
