"""What became of a live run, from its files: nothing is called or written, and what was derived is confirmed."""

from __future__ import annotations

from casebound.bench.live_evidence import NO_MEANS, Means, confirm_run
from casebound.bench.live_folder import CAPTURES, LiveFolder
from casebound.bench.wording import NOT_DERIVED_AGAIN
from casebound.contracts.bench_live import LivePlan, LiveStatus, PlannedSlot, SlotOutcome, SlotReport
from casebound.store.lock import is_held


def derive_status(folder: LiveFolder, means: Means = NO_MEANS) -> LiveStatus:
    """Return how far the run is, and whether it has ended for good.

    Args:
        folder: of the run.
        means: to derive records and outcomes again; what they do not cover is taken as it stands, and the status says
            so.

    Raises:
        SettingsError: a file of the run does not hold (`BENCH_FILE`, `BENCH_LIVE`).
    """
    plan = folder.plan()
    running = is_held(folder.package)
    outcomes = confirm_run(folder, plan, means)
    slots = tuple(_report(folder, plan, running, *each) for each in zip(plan.slots, outcomes, strict=True))
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
        captures=folder.package.digest(CAPTURES) if folder.package.exists(CAPTURES) else None,
        slots=slots,
        limitations=plan.limitations if means.whole else (*plan.limitations, NOT_DERIVED_AGAIN),
    )


def _report(
    folder: LiveFolder, plan: LivePlan, running: bool, slot: PlannedSlot, outcome: SlotOutcome | None
) -> SlotReport:
    folder.request(slot)
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
