"""Reviews of outputs and strict acceptance: forms that people fill in, and the truth table over them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from casebound.bench import review, wording
from casebound.bench.acceptance import accept
from casebound.bench.captures import load_captures
from casebound.bench.checks import check_captures
from casebound.bench.review import ReviewedRun, form_files, load_reviews
from casebound.canonical import digest_of, readable_bytes
from casebound.clock import format_time
from casebound.contracts.bench_receipts import Readiness
from casebound.errors import SettingsError
from casebound.testing.bench_pairs import (
    NOW,
    OTHER,
    SAME,
    STARTED,
    UNKNOWN,
    answer,
    pair_subject,
    record,
    write_captures,
)

SUBJECT = pair_subject()
LINES = [
    record(SUBJECT, "a", answer(SAME, "a one")),
    record(SUBJECT, "b", answer(OTHER)),
    record(SUBJECT, "c", answer(UNKNOWN)),
]
READY = Readiness(
    author_review="approved",
    independent_review="attested_independent_human",
    exploratory_ready=True,
    gold_ready=True,
)
EXPLORATORY = Readiness(
    author_review="approved", independent_review="pending", exploratory_ready=True, gold_ready=False
)
BLOCKED = Readiness(
    author_review="changes_requested", independent_review="pending", exploratory_ready=False, gold_ready=False
)


def load(folder: Path, lines=LINES, **changed):
    return load_captures(write_captures(folder / "run", SUBJECT, lines, **changed), SUBJECT, (), NOW)


def write_forms(folder: Path, captures) -> Path:
    forms = folder / "forms"
    forms.mkdir()
    for name, data in form_files(captures, SUBJECT).items():
        (forms / name).write_bytes(data)
    return forms


def fill(path: Path, **changed: object) -> None:
    """Answer a form as a person would; `changed` replaces keys."""
    form = json.loads(path.read_bytes())
    form.update(reviewKind="independent-human", reviewer="Iris Reader", reviewedAt=format_time(NOW))
    form["independenceAttestation"] = True
    for asked in (*form["aspects"].values(), *form["checks"]):
        asked["verdict"] = "holds"
    form.update(changed)
    path.write_bytes(readable_bytes(form))


def refusal(forms: Path, captures, now=NOW) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_reviews(forms, captures, SUBJECT, now)
    assert caught.value.exit_status == 2
    assert str(forms) in caught.value.path
    return caught.value


# --- forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-036", "B-082")
def test_each_admitted_output_gets_a_blank_form_with_the_six_questions_and_its_frozen_checks(tmp_path):
    captures = load(tmp_path, [LINES[1], LINES[0], record(SUBJECT, "c", "no JSON")])
    files = form_files(captures, SUBJECT)
    assert list(files) == ["b.1.json", "a.1.json"]
    form = json.loads(files["a.1.json"])
    assert list(form["aspects"]) == ["side", "scope", "level", "evidence", "unknowns", "invention"]
    assert form["checks"] == [{"checkId": "reason", "text": "names both words", "verdict": None, "note": None}]
    assert {answer["verdict"] for answer in form["aspects"].values()} == {None}
    signature = ("reviewKind", "reviewer", "reviewedAt", "independenceAttestation", "annotationDispute")
    assert [form[key] for key in signature] == [None] * 5
    assert (form["outputText"], form["output"]) == (answer(SAME, "a one"), digest_of(form["outputText"].encode()))
    assert (form["measurementId"], form["captures"]) == (SUBJECT.measurement_id, captures.digest)
    assert "expected" not in files["a.1.json"].decode()


def test_what_nobody_sees_in_an_output_stands_in_its_form_as_an_escape(tmp_path):
    text = answer(SAME, "a one") + "\r\n \n"
    hidden = json.dumps({"outputText": "a one\u202e\U000e0041\u3000é漢"}, ensure_ascii=False)
    captures = load(tmp_path, [record(SUBJECT, "b", text.replace("a one", "b one"))])
    assert json.loads(form_files(captures, SUBJECT)["b.1.json"])["outputText"] == text.replace("a one", "b one")
    written = readable_bytes(json.loads(hidden))
    assert json.loads(written) == json.loads(hidden)
    assert "a one\\u202e\\udb40\\udc41\\u3000é漢" in written.decode()


@pytest.mark.spec("B-037", "B-082")
def test_forms_are_complete_once_a_person_signed_and_answered_them_whole(tmp_path):
    captures = load(tmp_path)
    forms = write_forms(tmp_path, captures)
    assert load_reviews(forms, captures, SUBJECT, NOW) == ReviewedRun(3, 0, 0, ())
    fill(forms / "a.1.json")
    for key in ("reviewKind", "reviewer", "reviewedAt", "independenceAttestation"):
        fill(forms / "b.1.json", **{key: None})
        assert load_reviews(forms, captures, SUBJECT, NOW).complete == 1
    form = json.loads((forms / "b.1.json").read_bytes())
    fill(forms / "b.1.json", checks=[{**form["checks"][0], "verdict": None}])
    assert load_reviews(forms, captures, SUBJECT, NOW).complete == 1
    fill(forms / "b.1.json")
    aspects = json.loads((forms / "b.1.json").read_bytes())["aspects"]
    aspects["evidence"] = {**aspects["evidence"], "verdict": "issue", "note": "it rests on a name alone"}
    fill(forms / "c.1.json", annotationDispute="the reference overlooks a word")
    form = json.loads((forms / "b.1.json").read_bytes())
    (forms / "b.1.json").write_bytes(readable_bytes({**form, "aspects": aspects}))
    run = load_reviews(forms, captures, SUBJECT, NOW)
    assert run == ReviewedRun(3, 3, 1, ("c, repeat 1: the reference overlooks a word",))
    (forms / "a.1.json").unlink()
    assert load_reviews(forms, captures, SUBJECT, NOW).complete == 2


BAD = {
    "another measurement": ({"measurementId": digest_of(b"x")}, "/measurementId"),
    "other captures": ({"captures": digest_of(b"x")}, "/captures"),
    "another output": ({"output": digest_of(b"x")}, "/output"),
    "a text that was edited": ({"outputText": "{}"}, "/outputText"),
    "another assessment": ({"assessment": OTHER}, "/assessment"),
    "another slot": ({"caseId": "b"}, "/caseId"),
    "another repeat": ({"repeat": 2}, "/repeat"),
    "checks taken away": ({"checks": []}, "/checks/0"),
    "an author": ({"reviewer": "ADA author"}, "/reviewer"),
    "who was asked": ({"reviewer": "Scripted"}, "/reviewer"),
    "the model": ({"reviewer": "Tiny 1"}, "/reviewer"),
    "nobody": ({"reviewer": "--"}, "/reviewer"),
    "a kind of its own": ({"reviewKind": "model"}, "/reviewKind"),
    "no attestation": ({"independenceAttestation": False}, "/independenceAttestation"),
    "a future": ({"reviewedAt": "2026-11-20T12:00:00.001Z"}, "/reviewedAt"),
    "before the run": ({"reviewedAt": STARTED}, "/reviewedAt"),
    "a key of its own": ({"score": "1"}, "/score"),
}


@pytest.mark.spec("B-036", "B-077")
@pytest.mark.parametrize("name", BAD)
def test_a_form_that_says_something_else_is_refused(name, tmp_path):
    changed, pointer = BAD[name]
    captures = load(tmp_path)
    forms = write_forms(tmp_path, captures)
    fill(forms / "a.1.json", **changed)
    error = refusal(forms, captures)
    assert (error.code, error.pointer, Path(error.path).name) == ("BENCH_REVIEW", pointer, "a.1.json")


def test_an_issue_says_what_it_is(tmp_path):
    captures = load(tmp_path)
    forms = write_forms(tmp_path, captures)
    fill(forms / "a.1.json")
    form = json.loads((forms / "a.1.json").read_bytes())
    form["checks"][0]["verdict"] = "issue"
    (forms / "a.1.json").write_bytes(readable_bytes(form))
    assert refusal(forms, captures).pointer == "/checks/0/note"
    form["aspects"]["side"]["question"] = "All fine?"
    (forms / "a.1.json").write_bytes(readable_bytes(form))
    assert refusal(forms, captures).pointer == "/aspects/side/question"


def test_a_file_that_belongs_to_no_output_is_refused(tmp_path):
    captures = load(tmp_path)
    forms = write_forms(tmp_path, captures)
    (forms / "z.1.json").write_bytes(b"{}")
    assert refusal(forms, captures).code == "BENCH_REVIEW"
    assert refusal(tmp_path / "nowhere", captures).code == "BENCH_FILE"
    (forms / "z.1.json").unlink()
    (forms / "a.1.json").write_bytes(b'{"format": 1, "format": 2}')
    assert (refusal(forms, captures).code, refusal(forms, captures).pointer) == ("BENCH_FILE", "/format")


# --- acceptance -----------------------------------------------------------------------------------------------------

REVIEWED = ReviewedRun(3, 3, 0, ())
# How each condition is broken: lines, changes of the head, readiness and bound receipts, what the forms come to.
BREAKS = {
    "whole_split_planned": {"case_ids": ("a", "b")},
    "plan_recorded": {"drop": True},
    "no_call_failure": {"last": record(SUBJECT, "c", None, failure="LLM_TIMEOUT")},
    "no_parse_failure": {"last": record(SUBJECT, "c", "no JSON")},
    "no_schema_rejection": {"last": record(SUBJECT, "c", "{}")},
    "no_binding_rejection": {"last": record(SUBJECT, "c", answer(UNKNOWN, "nowhere"))},
    "references_settled_before_outputs": {"ready": EXPLORATORY},
    "references_agree": {"last": record(SUBJECT, "c", answer(SAME))},
    "outputs_reviewed": {"run": replace(REVIEWED, complete=2)},
    "no_open_issue": {"run": replace(REVIEWED, issues=1)},
}


def acceptance(folder: Path, *, last=LINES[2], drop=False, ready=READY, bound=True, run=REVIEWED, **changed):
    lines = LINES[:2] if drop or "case_ids" in changed else [*LINES[:2], last]
    checks = check_captures(load(folder, lines, **changed), SUBJECT)
    return accept(checks, ready, run, bound_receipts=bound)


def broken(found) -> list[str]:
    return [condition.name for condition in found.conditions if not condition.holds]


@pytest.mark.spec("B-137a", "B-137b", "B-137c", "B-137d")
def test_a_run_is_accepted_where_every_condition_holds(tmp_path):
    found = acceptance(tmp_path)
    assert [condition.name for condition in found.conditions] == list(BREAKS)
    assert (broken(found), found.accepted, found.standing, found.exit_status) == ([], True, "strictly_accepted", 0)


@pytest.mark.spec("B-137a", "B-137b", "B-137c", "B-137d", "B-139b", "B-139c")
@pytest.mark.parametrize("name", BREAKS)
def test_a_single_condition_that_does_not_hold_refuses_acceptance(name, tmp_path):
    found = acceptance(tmp_path, **BREAKS[name])
    assert broken(found) == [name]
    assert (found.accepted, found.standing, found.exit_status) == (False, "exploratory", 1)
    assert wording.EXPLORATORY in found.limitations


@pytest.mark.spec("B-137a", "B-137b", "B-137c", "B-137d")
def test_any_two_broken_conditions_are_both_named(tmp_path):
    for number, (one, other) in enumerate(combinations(BREAKS, 2)):
        changes = {**BREAKS[one], **BREAKS[other]}
        if len(changes) < 2 or {"last", "drop"} <= set(changes) or {"last", "case_ids"} <= set(changes):
            continue  # both break the same slot
        if {"drop", "case_ids"} == set(changes):
            continue
        assert set(broken(acceptance(tmp_path / str(number), **changes))) == {one, other}


@pytest.mark.spec("B-137c")
@pytest.mark.parametrize(
    ("ready", "bound"), [(EXPLORATORY, True), (EXPLORATORY, False), (BLOCKED, True), (READY, False)]
)
def test_references_are_settled_by_two_approved_receipts_to_which_the_run_was_bound(ready, bound, tmp_path):
    found = acceptance(tmp_path, ready=ready, bound=bound)
    assert broken(found) == ["references_settled_before_outputs"]
    assert found.standing == ("exploratory" if ready.exploratory_ready else "not_ready")
    assert (wording.CLOCK_ONLY in found.limitations) is not bound


def test_nothing_at_all_is_no_acceptance(tmp_path):
    checks = check_captures(load(tmp_path, []), SUBJECT)
    found = accept(checks, READY, ReviewedRun(0, 0, 0, ()), bound_receipts=True)
    assert {"plan_recorded", "references_agree", "outputs_reviewed"} <= set(broken(found))


@pytest.mark.spec("B-037", "B-138", "B-081")
def test_neither_an_issue_nor_a_dispute_changes_a_count_or_the_captures(tmp_path):
    captures = load(tmp_path)
    before = check_captures(captures, SUBJECT)
    files = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    forms = write_forms(tmp_path, captures)
    for name in ("a.1.json", "b.1.json", "c.1.json"):
        fill(forms / name, annotationDispute="I read it otherwise")
    run = load_reviews(forms, captures, SUBJECT, NOW)
    found = accept(check_captures(captures, SUBJECT), READY, run, bound_receipts=True)
    assert found.checks.to_bytes() == before.to_bytes()
    assert found.checks.author_reference_matches == 3
    assert found.checks.semantic_review == "pending"
    assert broken(found) == ["no_open_issue"]
    assert {wording.LATE_DISPUTE, "a, repeat 1: I read it otherwise"} <= set(found.limitations)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == files


@pytest.mark.spec("B-139a", "B-139c", "B-139d", "B-139e")
def test_what_is_missing_stays_explicit_and_nothing_is_claimed(tmp_path):
    found = acceptance(tmp_path, ready=EXPLORATORY)
    assert found.to_json()["readiness"]["independentReview"] == "pending"
    assert wording.INDEPENDENT_MISSING in found.limitations
    assert wording.SMALL_CORPUS in found.limitations
    assert "neither gold nor a complete acceptance of quality" in wording.EXPLORATORY
    printed = json.dumps({**found.to_json(), "limitations": []})
    printed = printed.replace(json.dumps(found.to_json()["checks"]["limitations"])[1:-1], "")
    for word in ("accuracy", "stability", "stable", "proves", "correct", "benefit"):
        assert word not in printed


@pytest.mark.spec("B-082")
def test_no_function_fills_a_form_in():
    source = Path(review.__file__).read_text(encoding="utf-8")
    for word in ('verdict="', "verdict='", '"holds"', "reviewer=captures", "independence_attestation=True"):
        assert word not in source
    assert "readable_bytes(form.to_json())" in source
