"""Comparing two runs: which may stand side by side at all, and what stands there.

Rules:
- What was frozen must be equal: corpus, guides, checker, scope and the formats of the benchmark; split, cases and
  repeats. Anything else is two measurements, and is refused with the parts that differ.
- Where prompt, schema, output mode or what is installed differ, only complete requests are compared, and only where
  that is asked for; the report says so.
- Every planned slot is listed. A rate stands beside its counts, with an exact interval; nothing is tested, ranked or
  concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from casebound.bench.captures import CaptureFile
from casebound.bench.checks import check_captures, rate
from casebound.bench.identity import differing_parts
from casebound.bench.intervals import can_compute, exact_interval
from casebound.bench.subject import Subject
from casebound.bench.wording import (
    COMPLETE_REQUESTS,
    EXACT_INTERVALS,
    INCOMPLETE_RUN,
    INTERVALS_NEED_LIBRARY,
    OF_COMPARISONS,
    REPEATS_ARE_DEPENDENT,
)
from casebound.contracts.bench_checks import CheckedSlot, CheckSummary
from casebound.contracts.bench_compare import (
    Agreement,
    ComparedRun,
    ComparedShare,
    ComparedSlot,
    Comparison,
    Share,
    ShareName,
    SlotSide,
)
from casebound.contracts.bench_identity import MeasurementIdentity
from casebound.errors import SettingsError

CODE = "BENCH_COMPARE"
# Parts of an identity that two complete requests may differ in; every other part is the measurement itself.
OF_REQUESTS = frozenset(("benchmark", "prompt", "production", "validators", "declarations", "language"))
OF_HEADS = ("split", "case_ids", "repeats")
_ALIASES = {"case_ids": "caseIds", "repeats": "repeats", "split": "split"}


@dataclass(frozen=True)
class Run:
    """One run with the measurement that it belongs to.

    Attributes:
        name: as the command line names it, for errors.
        identity: of its bundle.
        subject: what its outputs are checked against.
        captures: as `load_captures` returned them.
        bounds: what a plan says of the requests' bounds (`timeoutS` …); empty where there is no plan.
    """

    name: str
    identity: MeasurementIdentity
    subject: Subject
    captures: CaptureFile
    bounds: Mapping[str, object]

    @cached_property
    def checked(self) -> tuple[dict[tuple[str, int], CheckedSlot], CheckSummary]:
        """Every planned slot by case and repeat, and the sums."""
        slots: dict[tuple[str, int], CheckedSlot] = {}

        def keep(slot: CheckedSlot) -> None:
            slots[slot.case_id, slot.repeat] = slot

        return slots, check_captures(self.captures, self.subject, keep)

    @property
    def slots(self) -> dict[tuple[str, int], CheckedSlot]:
        """Every planned slot by case and repeat."""
        return self.checked[0]

    @property
    def summary(self) -> CheckSummary:
        """The checker's sums."""
        return self.checked[1]

    @cached_property
    def served_models(self) -> tuple[str, ...]:
        """What servers said that they were."""
        outputs = (record.output for record in self.captures.records() if record.output is not None)
        return tuple(sorted({output.served_model for output in outputs if output.served_model is not None}))


def compare(a: Run, b: Run, *, complete_requests: bool = False) -> Comparison:
    """Return the two runs side by side.

    Args:
        a: a run that holds by itself.
        b: another one.
        complete_requests: prompt, schema, output mode and installation may differ; the report then says so.

    Raises:
        SettingsError: the runs cannot stand side by side (`BENCH_COMPARE`); the message names the parts that differ.
    """
    refuse_unequal(a, b, complete_requests=complete_requests)
    requests = request_differences(a, b)
    head, method = a.captures.head, _interval_method(a.summary, b.summary)
    return Comparison(
        kind="complete_requests" if requests else "one_measurement",
        differs=(*requests, *_other_differences(a, b)),
        split=head.split,
        case_ids=head.case_ids,
        repeats=head.repeats,
        a=_described(a),
        b=_described(b),
        slots=tuple(_slot(key, a, b) for key in _keys(a)),
        shares=_shares(a.summary, b.summary, intervals=method == EXACT_INTERVALS),
        agreement=_agreement(a, b),
        interval_method=method,
        limitations=(*((COMPLETE_REQUESTS,) if requests else ()), *OF_COMPARISONS, *_limitations(a, b)),
    )


# --- what may stand side by side ------------------------------------------------------------------------------------


def refuse_unequal_identities(a: MeasurementIdentity, b: MeasurementIdentity, *, names: tuple[str, ...]) -> None:
    """Refuse two measurements that are not of one corpus, guide, checker and scope.

    Raises:
        SettingsError: `BENCH_COMPARE`, with the parts that differ.
    """
    frozen = [part for part in differing_parts(a, b) if part not in OF_REQUESTS]
    if frozen:
        raise _refusal(names, frozen, "results of two measurements are not compared, and nothing is scored again")


def refuse_unequal(a: Run, b: Run, *, complete_requests: bool) -> None:
    """Refuse two runs of which something differs that may not. Raises `SettingsError` (`BENCH_COMPARE`)."""
    names = a.name, b.name
    refuse_unequal_identities(a.identity, b.identity, names=names)
    heads = [_ALIASES[name] for name in OF_HEADS if getattr(a.captures.head, name) != getattr(b.captures.head, name)]
    if heads:
        raise _refusal(names, heads, "compare runs of the same split, cases and repeats: both plans were frozen before")
    requests = request_differences(a, b)
    if requests and not complete_requests:
        hint = "--complete-requests compares them as complete requests, which isolates no effect"
        raise _refusal(names, requests, hint)


def request_differences(a: Run, b: Run) -> tuple[str, ...]:
    """Return in what the requests differ beside who answers: parts of the identities, the output mode, and bounds."""
    found = [part for part in differing_parts(a.identity, b.identity) if part in OF_REQUESTS]
    if a.captures.head.response_format != b.captures.head.response_format:
        found.append("responseFormat")
    shared = a.bounds.keys() & b.bounds.keys()
    return (*found, *sorted(name for name in shared if a.bounds[name] != b.bounds[name]))


def _other_differences(a: Run, b: Run) -> tuple[str, ...]:
    heads = a.captures.head, b.captures.head
    names = ("executor", "model")
    return tuple(name for name in names if getattr(heads[0], name) != getattr(heads[1], name))


def _refusal(names: Sequence[str], parts: Sequence[str], hint: str) -> SettingsError:
    return SettingsError(CODE, where=" and ".join(names), found=f"they differ in {', '.join(parts)}", hint=hint)


# --- what stands there ----------------------------------------------------------------------------------------------


def _keys(run: Run) -> list[tuple[str, int]]:
    head = run.captures.head
    return [(case_id, repeat) for case_id in head.case_ids for repeat in range(1, head.repeats + 1)]


def _described(run: Run) -> ComparedRun:
    head = run.captures.head
    return ComparedRun(
        measurement_id=head.measurement_id,
        captures=run.captures.digest,
        plan_id=head.plan_id,
        started_at=head.started_at,
        executor=head.executor,
        model=head.model,
        response_format=head.response_format,
        served_models=run.served_models,
        summary=run.summary,
    )


def _slot(key: tuple[str, int], a: Run, b: Run) -> ComparedSlot:
    return ComparedSlot(
        case_id=key[0],
        repeat=key[1],
        author_reference=a.slots[key].author_reference,
        a=_side(a.slots[key]),
        b=_side(b.slots[key]),
    )


def _side(slot: CheckedSlot) -> SlotSide:
    return SlotSide(
        state=slot.state,
        code=slot.code,
        assessment=slot.assessment,
        agrees_with_author=slot.agrees_with_author,
    )


def _shares(a: CheckSummary, b: CheckSummary, *, intervals: bool) -> tuple[ComparedShare, ...]:
    left, right = _counted(a), _counted(b)
    return tuple(
        ComparedShare(name=name, a=_share(*left[name], intervals), b=_share(*right[name], intervals)) for name in left
    )


def _counted(summary: CheckSummary) -> dict[ShareName, tuple[int, int]]:
    """Return counts with their denominators, which are those of the checker's rates."""
    parsed = summary.output_count - summary.parse_failures
    return {
        "parseFailures": (summary.parse_failures, summary.output_count),
        "structureRejections": (summary.schema_rejections, parsed),
        "admitted": (summary.admitted, summary.planned),
        "authorReferenceMatches": (summary.author_reference_matches, summary.author_reference_compared),
    }


def _share(count: int, of: int, intervals: bool) -> Share:
    interval = exact_interval(count, of) if intervals else None
    return Share(count=count, of=of, rate=rate(count, of), interval=interval)


def _interval_method(a: CheckSummary, b: CheckSummary) -> str:
    """Return how intervals are made, or the first reason why there are none."""
    if a.repeats > 1:
        return REPEATS_ARE_DEPENDENT
    if a.unattempted or b.unattempted:
        return INCOMPLETE_RUN
    return EXACT_INTERVALS if can_compute() else INTERVALS_NEED_LIBRARY


def _agreement(a: Run, b: Run) -> Agreement:
    pairs = [(a.slots[key], b.slots[key]) for key in _keys(a)]
    both = [(left, right) for left, right in pairs if left.state == right.state == "admitted"]
    matches = Counter((left.agrees_with_author, right.agrees_with_author) for left, right in both)
    return Agreement(
        both_admitted=len(both),
        same_assessment=sum(left.assessment == right.assessment for left, right in both),
        both_match_author=matches[True, True],
        only_a_matches_author=matches[True, False],
        only_b_matches_author=matches[False, True],
        neither_matches_author=matches[False, False],
    )


def _limitations(a: Run, b: Run) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*a.summary.limitations, *b.summary.limitations)))
