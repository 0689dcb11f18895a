"""The layered checks: what became of each planned slot, and the sums with their own denominators.

The layers, in order: planned, recorded, an output, parsed, of the schema, bound to the selected evidence (admitted).
Only an admitted output is compared with the author's label; no layer and no agreement is promoted to anything else. A
rule or a checker that itself fails ends the check: that is no failure of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal

from casebound.bench.captures import CaptureFile
from casebound.bench.subject import Subject
from casebound.bench.wording import OF_CHECKS, SELECTION
from casebound.contracts.bench_captures import CapturedOutput, CaptureRecord
from casebound.contracts.bench_checks import CheckedSlot, CheckSummary, SlotState
from casebound.contracts.benchmark import CorpusCase
from casebound.errors import PluginError

_PARSE_CODES = frozenset(("LLM_OUTPUT_JSON", "LLM_INCOMPLETE_OUTPUT", "LLM_REFUSED"))
_EXACT = Context(prec=60)
_PLACES = Decimal("0.000001")


def check_captures(
    captures: CaptureFile, subject: Subject, each: Callable[[CheckedSlot], object] = lambda slot: None
) -> CheckSummary:
    """Judge every output and count; memory does not grow with the number of outputs.

    Args:
        captures: as `load_captures` returned them.
        subject: the same measurement.
        each: called with every planned slot: those of the lines in their order, then those without a line.

    Raises:
        PluginError: a rule or the checker itself failed.
        IntegrityError: the lines changed in the meantime.
    """
    tally = Tally(captures, subject)
    for record in captures.records():
        each(tally.count(check_record(record, subject), record))
    for slot in tally.unattempted():
        each(slot)
    return tally.summary()


def check_record(record: CaptureRecord, subject: Subject) -> CheckedSlot:
    """Return what became of one recorded slot. Raises `PluginError` where a rule or the checker itself failed."""
    slot = _blank(subject.cases[record.case_id], record.repeat)
    if record.output is not None:
        return _check_output(slot, record.output, subject)
    if record.failure is None:
        return slot.model_copy(update={"state": "cancelled"})
    return slot.model_copy(update={"state": "call_failure", "code": record.failure.code})


def _check_output(slot: CheckedSlot, output: CapturedOutput, subject: Subject) -> CheckedSlot:
    verdict = subject.admit(output.reply(), subject.cases[slot.case_id].input)
    if verdict.value is None:
        code = verdict.findings[0].code
        return slot.model_copy(update={"state": _layer(code), "code": code, "findings": verdict.findings})
    assessment = subject.assessment_of(verdict.value)
    if assessment not in subject.corpus.ASSESSMENTS:
        raise PluginError("PLUGIN_OFFER", where="checker of the benchmark", found=f"the assessment {assessment!r}")
    agrees = assessment == slot.author_reference
    return slot.model_copy(update={"state": "admitted", "assessment": assessment, "agrees_with_author": agrees})


def _layer(code: str) -> SlotState:
    if code in _PARSE_CODES:
        return "parse_failure"
    return "schema_rejection" if code == "LLM_OUTPUT_SCHEMA" else "binding_rejection"


def _blank(case: CorpusCase, repeat: int) -> CheckedSlot:
    reference = case.expected_assessment
    return CheckedSlot(case_id=case.case_id, repeat=repeat, state="unattempted", author_reference=reference)


class Tally:
    """The counts of one run; the order in which slots are counted does not matter."""

    def __init__(self, captures: CaptureFile, subject: Subject) -> None:
        self._captures = captures
        self._subject = subject
        self._states: Counter[SlotState] = Counter()
        self._codes: Counter[str] = Counter()
        self._labels: dict[str, Counter[str]] = {}
        self._costs = _Sum()
        self._durations = _Sum()
        self._matches = 0
        self._places = {case_id: number for number, case_id in enumerate(captures.head.case_ids)}
        self._seen = bytearray(len(self._places) * captures.head.repeats)

    def count(self, slot: CheckedSlot, record: CaptureRecord) -> CheckedSlot:
        """Count a recorded slot, and return it."""
        self._seen[self._places[slot.case_id] * self._captures.head.repeats + slot.repeat - 1] = 1
        self._states[slot.state] += 1
        if slot.code is not None:
            self._codes[slot.code] += 1
        if slot.assessment is not None:
            self._labels.setdefault(slot.author_reference, Counter())[slot.assessment] += 1
            self._matches += slot.agrees_with_author is True
        self._costs.add(record.cost_usd)
        self._durations.add(record.duration_ms)
        return slot

    def unattempted(self) -> Iterator[CheckedSlot]:
        """Yield the planned slots that were not counted, in the order of the plan."""
        head = self._captures.head
        slots = ((case_id, repeat) for case_id in head.case_ids for repeat in range(1, head.repeats + 1))
        for (case_id, repeat), seen in zip(slots, self._seen, strict=True):
            if not seen:
                yield _blank(self._subject.cases[case_id], repeat)

    def summary(self) -> CheckSummary:
        """Return the counts and rates."""
        head, states = self._captures.head, self._states
        planned, recorded = len(self._seen), states.total()
        outputs = recorded - states["call_failure"] - states["cancelled"]
        parsed = outputs - states["parse_failure"]
        cases = len(self._subject.corpus.in_split(head.split))
        complete = self._costs.count == planned
        return CheckSummary(
            checker=self._subject.versions.checker,
            measurement_id=head.measurement_id,
            captures=self._captures.digest,
            split=head.split,
            repeats=head.repeats,
            cases_of_split=cases,
            planned_cases=len(head.case_ids),
            planned=planned,
            recorded=recorded,
            unattempted=planned - recorded,
            call_failures=states["call_failure"],
            cancelled=states["cancelled"],
            output_count=outputs,
            parse_failures=states["parse_failure"],
            parse_failure_rate=rate(states["parse_failure"], outputs),
            schema_rejections=states["schema_rejection"],
            structure_rejection_rate=rate(states["schema_rejection"], parsed),
            binding_rejections=states["binding_rejection"],
            admitted=states["admitted"],
            author_reference_compared=states["admitted"],
            author_reference_matches=self._matches,
            agreement_by_reference={label: dict(found) for label, found in self._labels.items()},
            failure_codes=dict(self._codes),
            records_with_cost=self._costs.count,
            reported_cost_usd=self._costs.text(),
            total_cost_usd=self._costs.text() if complete else None,
            records_with_duration=self._durations.count,
            reported_duration_ms=None if self._durations.text() is None else int(self._durations.total),
            limitations=OF_CHECKS if cases == len(head.case_ids) else (*OF_CHECKS, SELECTION),
        )


class _Sum:
    """An exact sum of what was reported, and how often that was."""

    def __init__(self) -> None:
        self.count = 0
        self.total = Decimal(0)

    def add(self, value: str | int | None) -> None:
        if value is not None:
            self.count += 1
            self.total = _EXACT.add(self.total, Decimal(value))

    def text(self) -> str | None:
        """Return the sum without trailing zeros, None where nothing was reported."""
        if not self.count:
            return None
        text = f"{self.total:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text


def rate(part: int, whole: int) -> str | None:
    """Return `part` of `whole` as a decimal with at most six places, rounded half to even; None of nothing."""
    if not whole:
        return None
    value = _EXACT.divide(Decimal(part), Decimal(whole)).quantize(_PLACES, ROUND_HALF_EVEN)
    text = f"{value:f}".rstrip("0").rstrip(".")
    return text or "0"
