"""Executing a confirmed plan: each slot at most once, whoever executes it and however often.

Rules:
- A slot is called only by whoever published its reservation. A reserved slot without evidence is unknown: it is never
  called again, and it ends the run.
- What came back is on disk before it is read. What was read can be derived again, to the same bytes.
- Nothing is called before every slot that has evidence is decided, and nothing where a file does not hold, where a
  slot lost its reservation, or where captures stand already: what stops the run stops it for good. The causes
  are a failed or cancelled call, an output that is not admitted, a tool, unreported usage, and an unknown slot. There
  is no retry and no correction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from casebound.bench.live_evidence import Means, confirm_captures, confirm_slot, has_ended
from casebound.bench.live_folder import LiveFolder
from casebound.bench.live_records import derive_captures, derive_outcome, derive_record
from casebound.bench.subject import Subject
from casebound.clock import Clock
from casebound.contracts.bench_live import CallEnding, LivePlan, PlannedSlot, StopCause
from casebound.errors import ProviderError, UnavailableError
from casebound.llm.provider import Provider
from casebound.store.lock import exclusive


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

    @property
    def means(self) -> Means:
        """Everything with which what stands there is derived again."""
        return Means(self.subject, self.provider.read)


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
        confirm_captures(run.folder, run.plan, run.means, whole=False)
        if fresh is not None:
            for slot in fresh:
                if not await _call(run, slot):
                    break
        _keep_captures(run)


def _settle_all(run: Execution) -> list[PlannedSlot] | None:
    """Decide every slot that was called; return those that were not, None where the run has stopped."""
    called = run.folder.called(run.plan)
    stopped = [slot for slot in called if _settle(run, slot) is not None]
    return None if stopped else [slot for slot in run.plan.slots if slot not in called]


async def _call(run: Execution, slot: PlannedSlot) -> bool:
    """Reserve, send, keep, decide; tell whether the run goes on."""
    request = run.folder.request(slot)
    if not await run.folder.reserve(run.plan, slot, run.clock.now()):
        # The lock did not hold, on whatever file system this is: what becomes of the slot is not ours to say.
        raise UnavailableError("CASE_BUSY", path=str(run.folder.root), found=f"a reservation of slot {slot.number}")
    try:
        native = await run.provider.send(request)
    except ProviderError as exc:
        message = str(exc).encode("utf-8", "backslashreplace").decode()
        await run.folder.keep_ending(slot, CallEnding(kind="failed", code=exc.code, message=message))
    except asyncio.CancelledError:
        await run.folder.keep_ending(slot, CallEnding(kind="cancelled", code=None, message=None))
        _settle(run, slot)
        _keep_captures(run)
        raise
    else:
        await run.folder.keep_native(slot, native)
    return _settle(run, slot) is None


# --- deciding -------------------------------------------------------------------------------------------------------


def _settle(run: Execution, slot: PlannedSlot) -> StopCause | None:
    """Derive what a called slot lacks, and return why the run stops there, None where it does not."""
    outcome = confirm_slot(run.folder, run.plan, slot, run.means)
    if outcome is None:
        record = derive_record(slot, run.folder.native(slot), run.folder.ending(slot), run.provider.read)
        if record is None:
            return "unknown_slot"
        outcome = derive_outcome(record, run.subject)
        run.folder.keep_record(slot, record)
        run.folder.keep_outcome(slot, outcome)
    return outcome.stops


def _keep_captures(run: Execution) -> None:
    """Write the captures, once nothing more will be called."""
    confirm_captures(run.folder, run.plan, run.means, whole=False)
    if has_ended(run.folder, run.plan):
        run.folder.keep_captures(*derive_captures(run.folder, run.plan, run.subject.versions.captures))
