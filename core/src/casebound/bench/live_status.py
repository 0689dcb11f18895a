"""What became of a live run, from its files alone: nothing is called, derived or written."""

from __future__ import annotations

from casebound.bench.live_folder import LiveFolder
from casebound.contracts.bench_live import LivePlan, LiveStatus, PlannedSlot, SlotReport
from casebound.store.lock import is_held


def derive_status(folder: LiveFolder) -> LiveStatus:
    """Return how far the run is, and whether it has ended for good.

    Raises:
        SettingsError: a file of the run does not hold (`BENCH_FILE`, `BENCH_LIVE`).
    """
    plan = folder.plan()
    running = is_held(folder.package)
    slots = tuple(_report(folder, plan, slot, running) for slot in plan.slots)
    causes = tuple(slot.stops for slot in slots if slot.stops is not None)
    return LiveStatus(
        plan_id=plan.plan_id,
        measurement_id=plan.measurement_id,
        executor=plan.policy.provider,
        model=plan.policy.model,
        split=plan.split,
        max_calls=plan.max_calls,
        called=sum(slot.state != "planned" for slot in slots),
        complete=all(slot.state not in ("planned", "unknown", "under_way", "answered") for slot in slots),
        stopped=bool(causes),
        causes=causes,
        running=running,
        captures=folder.captures_digest(),
        slots=slots,
        limitations=plan.limitations,
    )


def _report(folder: LiveFolder, plan: LivePlan, slot: PlannedSlot, running: bool) -> SlotReport:
    folder.request(slot)
    outcome = folder.outcome(slot)
    blank = SlotReport(number=slot.number, case_id=slot.case_id, repeat=slot.repeat, state="planned")
    if folder.reservation(plan, slot) is None:
        return blank
    if outcome is not None:
        return blank.model_copy(update={"state": outcome.state, "code": outcome.code, "stops": outcome.stops})
    if folder.native(slot) is not None or folder.ending(slot) is not None:
        return blank.model_copy(update={"state": "answered"})
    if running:
        return blank.model_copy(update={"state": "under_way"})
    unknown = {"state": "unknown", "code": "LLM_CALL_UNKNOWN", "stops": "unknown_slot"}
    return blank.model_copy(update=unknown)
