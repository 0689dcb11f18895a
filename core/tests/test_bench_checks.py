"""The layered checks: counts, rates, nulls and states, counted by hand; and what holds of any captures."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pytest
from casebound.bench import wording
from casebound.bench.captures import load_captures
from casebound.bench.checks import check_captures, rate
from casebound.contracts.bench_captures import CaptureRecord
from casebound.errors import PluginError
from casebound.guard import guarded
from casebound.specs import Validator
from casebound.testing.bench_pairs import (
    NOW,
    OTHER,
    SAME,
    UNKNOWN,
    answer,
    pair_case,
    pair_corpus,
    pair_subject,
    record,
    write_captures,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SUBJECT = pair_subject()
GOOD_A, GOOD_B, GOOD_C = answer(SAME, "a one"), answer(OTHER, "b one", "b two"), answer(UNKNOWN)


def line(case_id: str, text: str | None = None, repeat: int = 1, **facts: object) -> CaptureRecord:
    return record(SUBJECT, case_id, text, repeat, **facts)


def check(folder: Path, lines, subject=SUBJECT, each=lambda slot: None, **changed):
    captures = load_captures(write_captures(folder, subject, lines, **changed), subject, (), NOW)
    return check_captures(captures, subject, each)


def counts(summary) -> dict[str, object]:
    found = summary.to_json()
    keys = ("format", "checker", "measurementId", "captures", "split", "limitations")
    return {key: value for key, value in found.items() if key not in keys}


# What three planned slots without any line come to; each row of the table says what differs.
NOTHING = {
    "repeats": 1,
    "casesOfSplit": 3,
    "plannedCases": 3,
    "planned": 3,
    "recorded": 0,
    "unattempted": 3,
    "callFailures": 0,
    "cancelled": 0,
    "outputCount": 0,
    "parseFailures": 0,
    "parseFailureRate": None,
    "schemaRejections": 0,
    "structureRejectionRate": None,
    "bindingRejections": 0,
    "admitted": 0,
    "authorReferenceCompared": 0,
    "authorReferenceMatches": 0,
    "agreementByReference": {},
    "failureCodes": {},
    "recordsWithCost": 0,
    "reportedCostUSD": None,
    "totalCostUSD": None,
    "recordsWithDuration": 0,
    "reportedDurationMs": None,
    "semanticReview": "pending",
    "qualityConclusion": "not_evaluated",
}
ALL_RECORDED = {"recorded": 3, "unattempted": 0}

TABLE = {
    "nothing was attempted": ([], {}, {}),
    "every output is admitted and agrees": (
        [line("a", GOOD_A), line("b", GOOD_B), line("c", GOOD_C)],
        {},
        {
            **ALL_RECORDED,
            "outputCount": 3,
            "parseFailureRate": "0",
            "structureRejectionRate": "0",
            "admitted": 3,
            "authorReferenceCompared": 3,
            "authorReferenceMatches": 3,
            "agreementByReference": {SAME: {SAME: 1}, OTHER: {OTHER: 1}, UNKNOWN: {UNKNOWN: 1}},
        },
    ),
    "one of each failure, in three slots": (
        [line("a", "no JSON"), line("b", '{"label": "blue", "words": []}'), line("c", answer(SAME, "d one"))],
        {},
        {
            **ALL_RECORDED,
            "outputCount": 3,
            "parseFailures": 1,
            "parseFailureRate": "0.333333",
            "schemaRejections": 1,
            "structureRejectionRate": "0.5",
            "bindingRejections": 1,
            "failureCodes": {"LLM_OUTPUT_JSON": 1, "LLM_OUTPUT_SCHEMA": 1, "PAIR_WORD": 1},
        },
    ),
    "a cut, a refused and an empty output are parse failures, and no schema rate is left": (
        [line("a", '{"label"', finish="length"), line("b", "I may not.", finish="refusal"), line("c", "")],
        {},
        {
            **ALL_RECORDED,
            "outputCount": 3,
            "parseFailures": 3,
            "parseFailureRate": "1",
            "failureCodes": {"LLM_INCOMPLETE_OUTPUT": 1, "LLM_REFUSED": 1, "LLM_OUTPUT_JSON": 1},
        },
    ),
    "calls without an output are in no rate": (
        [line("a", failure="LLM_TIMEOUT"), line("b"), line("c", GOOD_C)],
        {},
        {
            **ALL_RECORDED,
            "callFailures": 1,
            "cancelled": 1,
            "outputCount": 1,
            "parseFailureRate": "0",
            "structureRejectionRate": "0",
            "admitted": 1,
            "authorReferenceCompared": 1,
            "authorReferenceMatches": 1,
            "agreementByReference": {UNKNOWN: {UNKNOWN: 1}},
            "failureCodes": {"LLM_TIMEOUT": 1},
        },
    ),
    "only calls that failed": (
        [line("a", failure="LLM_CALL_UNKNOWN"), line("b", failure="LLM_CALL_UNKNOWN")],
        {},
        {"recorded": 2, "unattempted": 1, "callFailures": 2, "failureCodes": {"LLM_CALL_UNKNOWN": 2}},
    ),
    "disagreements, and unknown sameness apart from known difference": (
        [line("a", answer(UNKNOWN)), line("b", answer(UNKNOWN)), line("c", answer(OTHER))],
        {},
        {
            **ALL_RECORDED,
            "outputCount": 3,
            "parseFailureRate": "0",
            "structureRejectionRate": "0",
            "admitted": 3,
            "authorReferenceCompared": 3,
            "agreementByReference": {SAME: {UNKNOWN: 1}, OTHER: {UNKNOWN: 1}, UNKNOWN: {OTHER: 1}},
        },
    ),
    "only admitted outputs are compared": (
        [line("a", answer(SAME, "nowhere")), line("b", GOOD_B), line("c", answer(SAME))],
        {},
        {
            **ALL_RECORDED,
            "outputCount": 3,
            "parseFailureRate": "0",
            "structureRejectionRate": "0",
            "bindingRejections": 1,
            "admitted": 2,
            "authorReferenceCompared": 2,
            "authorReferenceMatches": 1,
            "agreementByReference": {OTHER: {OTHER: 1}, UNKNOWN: {SAME: 1}},
            "failureCodes": {"PAIR_WORD": 1},
        },
    ),
    "two repeats of one selected case": (
        [line("b", GOOD_B, repeat=2, duration_ms=7), line("b", "[]", repeat=1, duration_ms=0)],
        {"repeats": 2, "case_ids": ("b",)},
        {
            "repeats": 2,
            "plannedCases": 1,
            "planned": 2,
            "recorded": 2,
            "unattempted": 0,
            "outputCount": 2,
            "parseFailureRate": "0",
            "schemaRejections": 1,
            "structureRejectionRate": "0.5",
            "admitted": 1,
            "authorReferenceCompared": 1,
            "authorReferenceMatches": 1,
            "agreementByReference": {OTHER: {OTHER: 1}},
            "failureCodes": {"LLM_OUTPUT_SCHEMA": 1},
            "recordsWithDuration": 2,
            "reportedDurationMs": 7,
        },
    ),
    "costs of a complete plan": (
        [line("a", cost_usd="0.10"), line("b", cost_usd="0.2"), line("c", cost_usd="0")],
        {},
        {**ALL_RECORDED, "cancelled": 3, "recordsWithCost": 3, "reportedCostUSD": "0.3", "totalCostUSD": "0.3"},
    ),
    "a cost that one record does not report": (
        [line("a", cost_usd="0.1"), line("b", cost_usd="0.2"), line("c")],
        {},
        {**ALL_RECORDED, "cancelled": 3, "recordsWithCost": 2, "reportedCostUSD": "0.3"},
    ),
    "costs of every record of a plan that is not complete": (
        [line("a", cost_usd="1"), line("b", cost_usd="2.000000000001")],
        {},
        {"recorded": 2, "unattempted": 1, "cancelled": 2, "recordsWithCost": 2, "reportedCostUSD": "3.000000000001"},
    ),
    "a zero that somebody filled in is a report of that record alone": (
        [line("a", cost_usd="0"), line("b")],
        {},
        {"recorded": 2, "unattempted": 1, "cancelled": 2, "recordsWithCost": 1, "reportedCostUSD": "0"},
    ),
}


@pytest.mark.spec("B-035", "B-039", "B-041", "B-043", "B-044", "B-045", "B-046", "B-050", "B-053", "B-058", "B-059")
@pytest.mark.spec("B-060", "B-061")
@pytest.mark.parametrize("name", TABLE)
def test_counts_are_those_of_the_hand(name, tmp_path):
    lines, changed, wanted = TABLE[name]
    assert counts(check(tmp_path, lines, **changed)) == {**NOTHING, **wanted}


@pytest.mark.spec("B-047", "B-052", "B-134")
def test_every_planned_slot_is_reported_once_with_its_state_and_its_review_pending(tmp_path):
    slots = []
    lines = [line("c", answer(OTHER)), line("a", "no JSON")]
    check(tmp_path, lines, each=slots.append)
    assert [(slot.case_id, slot.state, slot.code) for slot in slots] == [
        ("c", "admitted", None),
        ("a", "parse_failure", "LLM_OUTPUT_JSON"),
        ("b", "unattempted", None),
    ]
    assert [(slot.assessment, slot.author_reference, slot.agrees_with_author) for slot in slots] == [
        (OTHER, UNKNOWN, False),
        (None, SAME, None),
        (None, OTHER, None),
    ]
    assert {json.loads(slot.to_bytes())["rationaleReview"] for slot in slots} == {"pending"}


@pytest.mark.spec("B-054")
def test_no_agreement_is_promoted_to_a_semantic_success(tmp_path):
    summary = check(tmp_path, [line("a", GOOD_A), line("b", GOOD_B), line("c", GOOD_C)])
    assert summary.author_reference_matches == 3
    assert (summary.semantic_review, summary.quality_conclusion) == ("pending", "not_evaluated")
    for field, value in (("semantic_review", "passed"), ("quality_conclusion", "good")):
        with pytest.raises(ValueError, match="literal_error"):
            type(summary).model_validate({**summary.model_dump(by_alias=False), field: value})


@pytest.mark.spec("B-062", "B-063")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([line("a", GOOD_A), line("b", GOOD_B), line("c", GOOD_C)], 0),
        ([line("a", answer(OTHER)), line("b", answer(SAME)), line("c", answer(SAME))], 0),
        ([line("a", GOOD_A), line("b", GOOD_B)], 1),
        ([line("a", GOOD_A), line("b", GOOD_B), line("c", "no JSON")], 1),
        ([line("a", GOOD_A), line("b", GOOD_B), line("c", "{}")], 1),
        ([line("a", GOOD_A), line("b", GOOD_B), line("c", answer(SAME, "nowhere"))], 1),
        ([line("a", GOOD_A), line("b", GOOD_B), line("c", failure="LLM_TIMEOUT")], 1),
        ([line("a", GOOD_A), line("b", GOOD_B), line("c")], 1),
    ],
)
def test_the_exit_fails_for_what_is_missing_or_not_admitted_and_for_no_disagreement(lines, status, tmp_path):
    assert check(tmp_path, lines).exit_status == status


def _broken(*_):
    raise RuntimeError("a bug of the rule")


@pytest.mark.spec("B-042")
@pytest.mark.parametrize(
    "subject",
    [
        pair_subject(rules=(Validator("pair", "PAIR_WORD", 1, _broken),)),
        pair_subject(assessment_of=guarded(_broken, str, "checker")),
        pair_subject(assessment_of=lambda reply: "blue"),
    ],
    ids=["rule", "checker", "label"],
)
def test_an_error_of_the_checker_ends_the_check_and_is_no_failure_of_the_model(subject, tmp_path):
    slots = []
    with pytest.raises(PluginError) as caught:
        check(tmp_path, [line("b", "no JSON"), line("a", GOOD_A)], subject, slots.append)
    assert caught.value.exit_status != 0
    assert [(slot.case_id, slot.state) for slot in slots] == [("b", "parse_failure")]


@pytest.mark.spec("B-055", "B-057")
def test_a_line_keeps_output_usage_and_failure_as_they_were_and_has_no_key_without_a_value():
    usage = {"input": 3, "details": {"cached": None, "note": "raw ✓"}}
    text = '  {"label":\t"same"} \u202e'
    written = line("a", text, usage=usage, cost_usd="0.10").to_bytes()
    read = CaptureRecord.from_bytes(written)
    assert read.output.text == text
    assert (read.usage, read.cost_usd) == (usage, "0.10")
    assert set(json.loads(written)) == {"caseId", "repeat", "input", "status", "output", "usage", "costUSD"}
    failed = json.loads(line("a", failure="LLM_AUTH").to_bytes())
    assert set(failed) == {"caseId", "repeat", "input", "status", "failure"}
    assert failed["failure"] == {"code": "LLM_AUTH", "message": None}


@pytest.mark.spec("B-056")
@pytest.mark.parametrize(
    "facts", [{"duration_ms": -1}, {"cost_usd": "-1"}, {"cost_usd": "1e-3"}, {"cost_usd": "NaN"}, {"cost_usd": ".5"}]
)
def test_neither_a_duration_nor_a_cost_can_be_below_zero_or_unclear(facts):
    with pytest.raises(ValueError, match=r"greater_than_equal|string_pattern_mismatch"):
        line("a", GOOD_A, **facts)


@pytest.mark.spec("B-049", "B-051", "B-060", "B-064", "B-139d", "B-139e")
def test_every_summary_says_what_its_counts_do_not(tmp_path):
    summary = check(tmp_path, [line("a", GOOD_A)], case_ids=("a",))
    text = " ".join(summary.limitations)
    for words in (
        "neither a correct identity nor a supported rationale",
        "agreement with the labels of the corpus's authors",
        "not independent accuracy",
        "scores no rationale",
        "Neither a zero that was filled in",
        "neither semantic nor independent acceptance",
        "do not establish overall accuracy, stability, coverage of real dialogues, automatic identity across agents",
        "a benefit for any task",
        "a selection of the split's cases",
    ):
        assert words in text
    assert wording.SELECTION not in check(tmp_path / "whole", []).limitations
    assert "accuracy" not in "".join(type(summary).model_fields)


# --- what holds of any captures -------------------------------------------------------------------------------------

MANY = pair_subject(pair_corpus([pair_case(f"case-{n}", (SAME, OTHER, UNKNOWN)[n % 3]) for n in range(6)]))
TEXTS = st.sampled_from([answer(SAME), answer(OTHER), answer(UNKNOWN), answer(SAME, "nowhere"), "{}", "no", ""])
ENDINGS = st.one_of(
    TEXTS.map(lambda text: {"text": text}),
    st.sampled_from(["LLM_TIMEOUT", "LLM_AUTH"]).map(lambda code: {"text": None, "failure": code}),
    st.just({"text": None}),
)
MONEY = st.none() | st.decimals(0, 1000, places=6).map(lambda value: f"{value:f}")


@st.composite
def random_lines(draw):
    slots = draw(st.lists(st.tuples(st.sampled_from(list(MANY.cases)), st.integers(1, 2)), unique=True))
    return [
        record(
            MANY, case_id, repeat=repeat, cost_usd=draw(MONEY), duration_ms=draw(st.none() | st.integers(0, 9)), **end
        )
        for case_id, repeat in slots
        for end in [draw(ENDINGS)]
    ]


@pytest.mark.spec("B-039", "B-041", "B-050", "B-058", "B-059")
@settings(max_examples=30, deadline=None)
@given(lines=random_lines(), data=st.data())
def test_counts_add_up_rates_are_rates_and_order_never_matters(lines, data):
    with tempfile.TemporaryDirectory() as folder:
        slots = []
        summary = check(Path(folder) / "one", lines, MANY, slots.append, repeats=2)
        other = check(Path(folder) / "other", data.draw(st.permutations(lines)), MANY, repeats=2)
    assert counts(summary) == counts(other)
    assert len(slots) == len({(slot.case_id, slot.repeat) for slot in slots}) == summary.planned == 12
    assert summary.recorded == len(lines)
    assert summary.recorded + summary.unattempted == summary.planned
    assert summary.call_failures + summary.cancelled + summary.output_count == summary.recorded
    layers = summary.parse_failures + summary.schema_rejections + summary.binding_rejections + summary.admitted
    assert layers == summary.output_count
    assert summary.author_reference_matches <= summary.author_reference_compared == summary.admitted
    assert sum(sum(found.values()) for found in summary.agreement_by_reference.values()) == summary.admitted
    for value, whole in (
        (summary.parse_failure_rate, summary.output_count),
        (summary.structure_rejection_rate, summary.output_count - summary.parse_failures),
    ):
        assert (value is None) == (whole == 0)
        assert value is None or 0 <= Decimal(value) <= 1
    costs = [Decimal(item.cost_usd) for item in lines if item.cost_usd is not None]
    assert summary.reported_cost_usd is None if not costs else Decimal(summary.reported_cost_usd) == sum(costs)
    assert (summary.total_cost_usd is not None) == (len(costs) == 12)


def test_memory_does_not_grow_with_the_outputs(tmp_path):
    subject = pair_subject(pair_corpus([pair_case(f"case-{n}", SAME) for n in range(300)]))
    text = answer(SAME) + " " * 20_000

    def peak(count: int) -> int:
        lines = [record(subject, case_id, text) for case_id in list(subject.cases)[:count]]
        head = write_captures(tmp_path / str(count), subject, lines)
        del lines
        tracemalloc.start()
        assert check_captures(load_captures(head, subject, (), NOW), subject).admitted == count
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few = peak(30)
    assert peak(300) < few + 5 * len(text)  # the outputs have three hundred times that length


@given(part=st.integers(0, 10**6), more=st.integers(0, 10**6))
def test_a_rate_is_the_nearest_decimal_of_six_places(part, more):
    whole = part + more
    if not whole:
        assert rate(part, whole) is None
        return
    assert abs(Decimal(rate(part, whole)) - Decimal(part) / whole) <= Decimal("0.0000005")
    assert rate(part, whole) == f"{Decimal(rate(part, whole)).normalize():f}"
