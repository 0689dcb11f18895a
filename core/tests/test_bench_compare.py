"""Two runs side by side: what may stand there at all, every slot of both, and sums that claim nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.bench import intervals, wording
from casebound.bench.captures import load_captures
from casebound.bench.compare import Run, compare
from casebound.bench.intervals import exact_interval
from casebound.canonical import digest_of
from casebound.contracts.bench_captures import CaptureRecord
from casebound.contracts.bench_compare import Comparison
from casebound.contracts.bench_identity import (
    TREE_SCOPE,
    GovernedPrompt,
    Language,
    MeasurementIdentity,
    Tree,
)
from casebound.errors import SettingsError
from casebound.testing.bench_pairs import (
    NOW,
    OTHER,
    SAME,
    UNKNOWN,
    VERSIONS,
    answer,
    pair_subject,
    record,
    write_captures,
)
from hypothesis import given
from hypothesis import strategies as st

SUBJECT = pair_subject()
ONE = digest_of(b"one")
TREE = Tree(digest=ONE, files=1, bytes=1)
IDENTITY = MeasurementIdentity(
    benchmark="pairs",
    measurement_version=VERSIONS.measurement,
    corpus_version=VERSIONS.corpus,
    guide_version=VERSIONS.guide,
    checker_version=VERSIONS.checker,
    capture_format=VERSIONS.captures,
    scope=TREE_SCOPE,
    corpus=ONE,
    guides={"en": ONE},
    checker=TREE,
    production=(),
    validators=(),
    declarations=(),
    language=Language(implementation="cpython", version="3.11.7", executable=ONE, library=None),
    prompt=GovernedPrompt(
        stage="pair", version=1, prompt_id="pair-v1", system=ONE, response_contract=None, response_schema=ONE
    ),
)
FULL = (answer(SAME), answer(OTHER), answer(UNKNOWN))


def lines(*texts: str | None, repeat: int = 1) -> list[CaptureRecord]:
    return [record(SUBJECT, case_id, text, repeat) for case_id, text in zip("abc", texts, strict=False)]


def run(folder: Path, records: list[CaptureRecord], *, identity=IDENTITY, bounds=None, **changed) -> Run:
    captures = load_captures(write_captures(folder, SUBJECT, records, **changed), SUBJECT, (), NOW)
    return Run(folder.name, identity, SUBJECT, captures, bounds or {})


def refusal(a: Run, b: Run, **options: bool) -> str:
    with pytest.raises(SettingsError) as caught:
        compare(a, b, **options)
    assert (caught.value.code, caught.value.exit_status) == ("BENCH_COMPARE", 2)
    return str(caught.value.found)


# --- what may stand side by side ------------------------------------------------------------------------------------


@pytest.mark.spec("B-093", "B-133")
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"corpus": digest_of(b"two")}, "corpus"),
        ({"corpus_version": "pairs-corpus/v2"}, "corpusVersion"),
        ({"guides": {"en": digest_of(b"two")}}, "guides"),
        ({"guide_version": "pairs-guide/v2"}, "guideVersion"),
        ({"checker": Tree(digest=digest_of(b"two"), files=1, bytes=1)}, "checker"),
        ({"checker_version": "pairs-checks/v2"}, "checkerVersion"),
        ({"scope": "another-scope/v3"}, "scope"),
        ({"capture_format": "pairs-captures/v2"}, "captureFormat"),
        ({"measurement_version": "pairs-measurement/v2"}, "measurementVersion"),
    ],
)
@pytest.mark.parametrize("complete_requests", [False, True])
def test_two_measurements_are_refused_and_the_part_that_differs_is_named(
    tmp_path: Path, changes: dict[str, object], part: str, complete_requests: bool
) -> None:
    a = run(tmp_path / "a", lines(*FULL))
    b = run(tmp_path / "b", lines(*FULL), identity=IDENTITY.model_copy(update=changes))
    assert refusal(a, b, complete_requests=complete_requests) == f"they differ in {part}"


@pytest.mark.spec("B-133")
@pytest.mark.parametrize(
    ("changed", "part"),
    [({"case_ids": ("a", "b")}, "caseIds"), ({"repeats": 2}, "repeats")],
)
def test_runs_of_another_selection_are_refused(tmp_path: Path, changed: dict[str, object], part: str) -> None:
    a, b = run(tmp_path / "a", lines(*FULL)), run(tmp_path / "b", lines(*FULL[:2]), **changed)
    assert refusal(a, b, complete_requests=True) == f"they differ in {part}"


@pytest.mark.spec("B-133")
def test_runs_of_another_split_are_refused(tmp_path: Path) -> None:
    a = run(tmp_path / "a", lines(*FULL))
    b = run(tmp_path / "b", [record(SUBJECT, "v", FULL[0])], split="validation", case_ids=("v",))
    assert refusal(a, b, complete_requests=True) == "they differ in split, caseIds"


REQUESTS = [
    ({"prompt": IDENTITY.prompt.model_copy(update={"system": digest_of(b"two")})}, {}, {}, ("prompt",)),
    ({"prompt": IDENTITY.prompt.model_copy(update={"response_schema": digest_of(b"two")})}, {}, {}, ("prompt",)),
    ({}, {"response_format": "json_object"}, {}, ("responseFormat",)),
    ({}, {}, {"maxOutputTokens": 9}, ("maxOutputTokens",)),
    ({"benchmark": "pairs-2"}, {"response_format": "text"}, {}, ("benchmark", "responseFormat")),
]


@pytest.mark.spec("B-133", "B-135", "B-136")
@pytest.mark.parametrize(("identity", "head", "bounds", "parts"), REQUESTS)
def test_other_requests_are_compared_as_complete_requests_only_and_labelled(
    tmp_path: Path, identity, head, bounds, parts: tuple[str, ...]
) -> None:
    a = run(tmp_path / "a", lines(*FULL), bounds={"maxOutputTokens": 8})
    b = run(tmp_path / "b", lines(*FULL), identity=IDENTITY.model_copy(update=identity), bounds=bounds, **head)
    assert refusal(a, b) == f"they differ in {', '.join(parts)}"
    found = compare(a, b, complete_requests=True)
    assert (found.kind, found.differs) == ("complete_requests", parts)
    assert found.limitations[0] == wording.COMPLETE_REQUESTS
    assert "comparison of complete requests" in wording.COMPLETE_REQUESTS
    assert "no isolated effect" in wording.COMPLETE_REQUESTS


def test_equal_requests_are_never_called_complete_requests(tmp_path: Path) -> None:
    a = run(tmp_path / "a", lines(*FULL))
    b = run(tmp_path / "b", lines(*FULL), executor="other", model="tiny-2")
    for asked in (False, True):
        found = compare(a, b, complete_requests=asked)
        assert (found.kind, found.differs) == ("one_measurement", ("executor", "model"))
        assert wording.COMPLETE_REQUESTS not in found.limitations


# --- what stands there ----------------------------------------------------------------------------------------------


@pytest.mark.spec("B-134", "B-035")
def test_every_planned_slot_is_listed_with_its_failure_or_disagreement_beside_the_counts(tmp_path: Path) -> None:
    failed = [record(SUBJECT, "a", answer(OTHER)), record(SUBJECT, "b", None, failure="LLM_TIMEOUT")]
    a, b = run(tmp_path / "a", failed), run(tmp_path / "b", lines(answer(SAME), "prose", answer(UNKNOWN)))
    found = compare(a, b)
    rows = [(slot.case_id, slot.author_reference, slot.a.to_json(), slot.b.to_json()) for slot in found.slots]
    assert rows == [
        ("a", SAME, side("admitted", None, OTHER, False), side("admitted", None, SAME, True)),
        ("b", OTHER, side("call_failure", "LLM_TIMEOUT"), side("parse_failure", "LLM_OUTPUT_JSON")),
        ("c", UNKNOWN, side("unattempted"), side("admitted", None, UNKNOWN, True)),
    ]
    shares = {each.name: ((each.a.count, each.a.of, each.a.rate), (each.b.count, each.b.of)) for each in found.shares}
    assert shares == {
        "parseFailures": ((0, 1, "0"), (1, 3)),
        "structureRejections": ((0, 1, "0"), (0, 2)),
        "admitted": ((1, 3, "0.333333"), (2, 3)),
        "authorReferenceMatches": ((0, 1, "0"), (2, 2)),
    }
    assert found.agreement.to_json() == {
        "bothAdmitted": 1,
        "sameAssessment": 0,
        "bothMatchAuthor": 0,
        "onlyAMatchesAuthor": 0,
        "onlyBMatchesAuthor": 1,
        "neitherMatchesAuthor": 0,
    }
    assert (found.a.summary.planned, found.a.summary.unattempted) == (3, 1)


def side(state: str, code: str | None = None, said: str | None = None, agrees: bool | None = None) -> dict:
    return {"state": state, "code": code, "assessment": said, "agreesWithAuthor": agrees}


def test_a_comparison_is_the_same_from_the_other_side(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", lines(*FULL)), run(tmp_path / "b", lines(FULL[1], None, FULL[2]))
    there, back = compare(a, b), compare(b, a)
    assert (there.a, there.b) == (back.b, back.a)
    assert [(slot.a, slot.b) for slot in there.slots] == [(slot.b, slot.a) for slot in back.slots]
    assert there.agreement.only_a_matches_author == back.agreement.only_b_matches_author


def test_the_report_is_an_artifact_that_reads_back(tmp_path: Path) -> None:
    found = compare(run(tmp_path / "a", lines(*FULL)), run(tmp_path / "b", lines(*FULL)))
    assert Comparison.from_bytes(found.to_bytes()) == found


@pytest.mark.spec("B-139d", "B-139e")
def test_no_report_speaks_of_significance_or_ranks_anybody(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", lines(*FULL)), run(tmp_path / "b", lines(*(answer(UNKNOWN),) * 3))
    said = compare(a, b).to_bytes().decode().lower()
    assert not re.search(r"significan|p-value|winner|outperform|superior|confiden|proves", said)
    assert "does not show that one model or request is better" in said
    assert "do not establish overall accuracy" in said


# --- intervals ------------------------------------------------------------------------------------------------------


def test_rates_of_complete_runs_have_exact_intervals(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", lines(*FULL)), run(tmp_path / "b", lines(answer(SAME), answer(SAME), answer(SAME)))
    found = compare(a, b)
    (matches,) = [share for share in found.shares if share.name == "authorReferenceMatches"]
    assert (matches.a.interval, matches.b.interval) == (("0.2924", "1.0000"), ("0.0084", "0.9058"))
    assert found.interval_method == wording.EXACT_INTERVALS


@pytest.mark.parametrize(
    ("records", "changed", "says"),
    [
        ([*lines(*FULL), *lines(*FULL, repeat=2)], {"repeats": 2}, wording.REPEATS_ARE_DEPENDENT),
        (lines(*FULL[:2]), {}, wording.INCOMPLETE_RUN),
    ],
)
def test_counts_that_are_no_independent_draws_have_no_interval(tmp_path: Path, records, changed, says: str) -> None:
    a, b = run(tmp_path / "a", records, **changed), run(tmp_path / "b", records, **changed)
    found = compare(a, b)
    assert found.interval_method == says
    assert all(share.interval is None for each in found.shares for share in (each.a, each.b))


def test_without_the_library_rates_stand_alone_and_the_report_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(intervals, "find_spec", lambda name: None)
    intervals.exact_interval.cache_clear()
    a = run(tmp_path / "a", lines(*FULL))
    found = compare(a, replace(a, name="b"))
    intervals.exact_interval.cache_clear()
    assert found.interval_method == wording.INTERVALS_NEED_LIBRARY
    assert [share.a.interval for share in found.shares] == [None] * 4


# Printed tables of Clopper and Pearson, to the places that they have.
@pytest.mark.parametrize(
    ("part", "whole", "lower", "upper"),
    [(0, 6, 0.0, 0.459), (5, 6, 0.359, 0.996), (6, 6, 0.541, 1.0), (3, 12, 0.055, 0.572), (10, 100, 0.049, 0.176)],
)
def test_intervals_are_those_of_the_tables(part: int, whole: int, lower: float, upper: float) -> None:
    found = exact_interval(part, whole)
    assert found is not None
    assert (float(found[0]), float(found[1])) == pytest.approx((lower, upper), abs=0.0006)


@given(st.integers(1, 60).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_an_interval_holds_its_rate_and_mirrors_that_of_the_opposite_count(counts: tuple[int, int]) -> None:
    part, whole = counts
    found, opposite = exact_interval(part, whole), exact_interval(whole - part, whole)
    assert found is not None
    assert opposite is not None
    lower, upper = map(float, found)
    assert 0 <= lower <= part / whole <= upper <= 1
    assert (round(1 - upper, 4), round(1 - lower, 4)) == tuple(map(float, opposite))


def test_nothing_has_no_interval() -> None:
    assert exact_interval(0, 0) is None
