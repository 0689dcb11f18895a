"""Strict acceptance of a run: a truth table over the checks, the receipts and the reviews of its outputs.

Every condition stands for itself; the run is accepted where all hold. Nothing here evaluates an output, promotes an
exploratory result, or changes what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator

from casebound.bench import wording
from casebound.bench.review import ReviewedRun
from casebound.contracts.bench_checks import CheckSummary
from casebound.contracts.bench_receipts import Readiness
from casebound.contracts.bench_review import Acceptance, AcceptanceCondition, Standing


def accept(checks: CheckSummary, ready: Readiness, run: ReviewedRun, *, bound_receipts: bool) -> Acceptance:
    """Return the truth table of a run.

    Args:
        checks: its counts.
        ready: what the receipts permit.
        run: what the forms come to.
        bound_receipts: whether the run was bound to every receipt before it began.
    """
    conditions = (
        *_structure(checks),
        _condition(
            "references_settled_before_outputs",
            ready.gold_ready and bound_receipts,
            f"author's review {ready.author_review}, independent review {ready.independent_review}, the run was"
            + (" bound to both" if bound_receipts and ready.gold_ready else " not bound to two approved ones"),
        ),
        _condition(
            "references_agree",
            0 < checks.author_reference_compared == checks.author_reference_matches,
            f"{checks.author_reference_matches} of {checks.author_reference_compared} compared",
        ),
        _condition(
            "outputs_reviewed", 0 < run.outputs == run.complete, f"{run.complete} of {run.outputs} admitted outputs"
        ),
        _condition(
            "no_open_issue",
            not run.issues and not run.disputes,
            f"{run.issues} issues, {len(run.disputes)} disputes about references",
        ),
    )
    accepted = all(condition.holds for condition in conditions)
    standing: Standing = "strictly_accepted" if accepted else "exploratory" if ready.exploratory_ready else "not_ready"
    return Acceptance(
        conditions=conditions,
        accepted=accepted,
        standing=standing,
        readiness=ready,
        checks=checks,
        limitations=tuple(_limitations(checks, ready, run, accepted=accepted, bound=bound_receipts)),
    )


def _structure(checks: CheckSummary) -> Iterator[AcceptanceCondition]:
    counts = {
        "no_call_failure": checks.call_failures + checks.cancelled,
        "no_parse_failure": checks.parse_failures,
        "no_schema_rejection": checks.schema_rejections,
        "no_binding_rejection": checks.binding_rejections,
    }
    whole = checks.planned_cases == checks.cases_of_split
    yield _condition("whole_split_planned", whole, f"{checks.planned_cases} of {checks.cases_of_split} cases")
    yield _condition("plan_recorded", not checks.unattempted, f"{checks.recorded} of {checks.planned} slots")
    yield from (_condition(name, not count, f"{count} slots") for name, count in counts.items())


def _condition(name: str, holds: bool, found: str) -> AcceptanceCondition:
    return AcceptanceCondition(name=name, holds=holds, found=found)


def _limitations(
    checks: CheckSummary, ready: Readiness, run: ReviewedRun, *, accepted: bool, bound: bool
) -> Iterator[str]:
    yield from (*checks.limitations, wording.RECEIPTS, wording.ACCEPTANCE)
    if ready.independent_review == "pending":
        yield wording.INDEPENDENT_MISSING
    if not accepted:
        yield wording.EXPLORATORY
    if not bound:
        yield wording.CLOCK_ONLY
    if run.disputes:
        yield wording.LATE_DISPUTE
        yield from run.disputes
