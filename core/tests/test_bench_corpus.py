"""The parser of a corpus: one test a rule, with its message; and what no file may do to it."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest
from casebound.bench.corpus import find_problems, load_corpus, parse_corpus
from casebound.bench.files import read_file
from casebound.bench.instrument import open_instrument
from casebound.bench.prompt import prompt_of
from casebound.canonical import digest_of
from casebound.contracts.benchmark import CaseInput, SemanticCheck
from casebound.errors import PluginError, SettingsError
from casebound.testing import small_benchmark
from casebound.testing.small_benchmark import Notes, NotesCorpus
from hypothesis import given
from hypothesis import strategies as st

PATH = open_instrument(small_benchmark.small_host(), "small").corpus_path
GOOD = json.loads(PATH.read_bytes())
PLACES = {case["caseId"]: place for place, case in enumerate(GOOD["cases"])}
PRINTER, DOOR, LIFT = (PLACES[name] for name in ("tuning-printer", "tuning-door", "holdout-lift"))


def parse(value):
    return parse_corpus(Path("corpus.json"), json.dumps(value).encode(), NotesCorpus)


def refused(change):
    """Return pointer and finding of the one error that a changed corpus gets."""
    value = copy.deepcopy(GOOD)
    change(value["cases"], value)
    with pytest.raises(SettingsError) as caught:
        parse(value)
    assert (caught.value.code, caught.value.path, caught.value.exit_status) == ("BENCH_CORPUS", "corpus.json", 2)
    return caught.value.pointer, caught.value.found


# --- what holds -----------------------------------------------------------------------------------------------------


def test_a_corpus_is_read_with_its_raw_bytes_and_their_digest():
    found = load_corpus(PATH, NotesCorpus)
    assert found.data == PATH.read_bytes()
    assert found.digest == digest_of(found.data)
    assert found.corpus.to_json() == GOOD
    assert [case.case_id for case in found.corpus.in_split("holdout")] == ["holdout-lift", "holdout-heat"]


@given(st.permutations(range(4)), st.permutations(list(GOOD["phenomena"])))
def test_the_order_of_cases_and_phenomena_never_matters(order, tags):
    phenomena = {tag: GOOD["phenomena"][tag] for tag in tags}
    corpus = parse({**GOOD, "cases": [GOOD["cases"][place] for place in order], "phenomena": phenomena})
    assert list(find_problems(corpus)) == []


# --- leaks ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-013")
def test_a_project_in_two_splits_is_refused():
    assert refused(lambda cases, _: cases[LIFT].update(projectId="tuning-project")) == (
        f"/cases/{LIFT}/projectId",
        "the project 'tuning-project' stands in the splits 'tuning' and 'holdout'",
    )


@pytest.mark.spec("B-013")
def test_a_conversation_in_two_splits_is_refused():
    assert refused(lambda cases, _: cases[LIFT].update(conversationId="tuning-door-talk")) == (
        f"/cases/{LIFT}/conversationId",
        "the conversation 'tuning-door-talk' stands in the splits 'tuning' and 'holdout'",
    )


def test_a_group_may_have_many_cases_of_one_split():
    value = copy.deepcopy(GOOD)
    value["cases"][DOOR]["conversationId"] = value["cases"][PRINTER]["conversationId"]
    assert len(parse(value).cases) == len(value["cases"])


@pytest.mark.spec("B-014")
@pytest.mark.parametrize(
    "text",
    [
        "The north door does not lock.",
        "  the NORTH door\n\tdoes not  lock. ",
    ],
)
def test_a_selected_text_in_two_splits_is_refused_whatever_its_case_and_spacing(text):
    assert refused(lambda cases, _: cases[LIFT]["input"]["second"].update(text=text)) == (
        f"/cases/{LIFT}/input",
        "a selected text stands in the split 'tuning' too, in 'tuning-door'",
    )


@pytest.mark.spec("B-014")
def test_a_selected_text_that_is_composed_otherwise_is_the_same():
    def change(cases, _):
        cases[DOOR]["input"]["first"]["text"] = "Die T\u00fcr klemmt."
        cases[LIFT]["input"]["first"]["text"] = "Die Tu\u0308r klemmt."

    assert refused(change)[0] == f"/cases/{LIFT}/input"


# --- identities and names -------------------------------------------------------------------------------------------


@pytest.mark.spec("B-015")
def test_a_case_id_that_stands_twice_is_refused():
    assert refused(lambda cases, _: cases[LIFT].update(caseId="tuning-door")) == (
        f"/cases/{LIFT}/caseId",
        f"the case 'tuning-door' stands at /cases/{DOOR} already",
    )


def test_a_check_that_stands_twice_in_its_case_is_refused():
    assert refused(lambda cases, _: cases[DOOR]["semanticChecks"].append(cases[DOOR]["semanticChecks"][0])) == (
        f"/cases/{DOOR}/semanticChecks/1/checkId",
        "the check 'two' stands twice in its case",
    )


def test_a_split_that_the_benchmark_does_not_have_is_refused():
    assert refused(lambda cases, _: cases[DOOR].update(split="train")) == (
        f"/cases/{DOOR}/split",
        "the split 'train'; splits are tuning, holdout",
    )


def test_an_assessment_that_the_benchmark_does_not_have_is_refused():
    assert refused(lambda cases, _: cases[DOOR].update(expectedAssessment="maybe")) == (
        f"/cases/{DOOR}/expectedAssessment",
        "the assessment 'maybe'; there are same, other",
    )


def test_a_tag_that_nothing_explains_is_refused():
    assert refused(lambda cases, _: cases[DOOR]["tags"].append("odd")) == (
        f"/cases/{DOOR}/tags/1",
        "the tag 'odd', which phenomena does not explain",
    )


def test_a_tag_that_stands_twice_is_refused():
    assert refused(lambda cases, _: cases[DOOR]["tags"].append("two-things")) == (
        f"/cases/{DOOR}/tags/1",
        "the tag 'two-things' stands twice in its case",
    )


# --- coverage -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-010")
def test_a_split_without_one_of_the_assessments_is_refused():
    assert refused(lambda cases, _: cases[LIFT].update(expectedAssessment="other")) == (
        "/cases",
        "no case of the split 'holdout' has the assessment 'same'",
    )


def test_a_split_without_a_case_is_refused():
    pointer, found = refused(lambda cases, value: value.update(cases=cases[:2]))
    assert (pointer, found) == ("/cases", "no case of the split 'holdout' has the assessment 'same'")


@pytest.mark.spec("B-011")
def test_a_phenomenon_that_no_case_covers_is_refused():
    assert refused(lambda _, value: value["phenomena"].update({"a/b": "Never seen."})) == (
        "/phenomena/a~1b",
        "no case covers the phenomenon 'a/b'",
    )


# --- bindings and shape ---------------------------------------------------------------------------------------------


@pytest.mark.spec("B-016")
def test_a_broken_binding_is_refused_with_its_place_in_the_input():
    assert refused(lambda cases, _: cases[LIFT]["input"]["second"].update(noteId="n1")) == (
        f"/cases/{LIFT}/input/second/noteId",
        "the note 'n1' stands twice",
    )


@pytest.mark.parametrize(
    ("key", "value", "pointer"),
    [
        ("caseId", "../out", "/caseId"),
        ("caseId", 7, "/caseId"),
        ("tags", [], "/tags/"),
        ("semanticChecks", [], "/semanticChecks"),
        ("semanticChecks", [{"checkId": "a", "aspect": "taste", "text": "t"}], "/semanticChecks/0/aspect"),
        ("referenceRationale", " \n", "/referenceRationale"),
        ("input", None, "/input"),
    ],
)
def test_a_case_of_another_shape_is_refused_at_the_key(key, value, pointer):
    found, _ = refused(lambda cases, _: cases[DOOR].update({key: value}))
    assert found == f"/cases/{DOOR}{pointer.rstrip('/')}"


def test_a_key_that_is_written_as_in_python_is_refused():
    assert refused(lambda cases, _: cases[DOOR].update(case_id=cases[DOOR].pop("caseId"))) == (
        f"/cases/{DOOR}/caseId",
        "Field required",
    )


@pytest.mark.parametrize("key", ["format", "guide", "authors", "provenance", "limitations", "phenomena", "cases"])
def test_a_corpus_without_one_of_its_keys_is_refused(key):
    assert refused(lambda _, value: value.pop(key)) == (f"/{key}", "Field required")


def test_a_corpus_of_another_version_is_refused():
    pointer, found = refused(lambda _, value: value.update(format="casebound-small-corpus/v2"))
    assert (pointer, found) == ("/format", "Input should be 'casebound-small-corpus/v1'")


def test_a_binding_check_that_fails_itself_is_no_error_of_the_corpus(monkeypatch):
    monkeypatch.setattr(Notes, "problems", CaseInput.problems)
    with pytest.raises(PluginError) as caught:
        parse(GOOD)
    assert (caught.value.code, caught.value.where) == ("PLUGIN_BROKEN", "bindings of Notes")


# --- hostile files --------------------------------------------------------------------------------------------------

TEXT = PATH.read_text("utf-8")


@pytest.mark.parametrize(
    ("data", "found", "pointer"),
    [
        (b"", "", None),
        (TEXT[: len(TEXT) // 2].encode(), "", None),
        (TEXT.encode("utf-16"), "invalid UTF-8 at byte 0", None),
        (TEXT.encode("utf-8-sig"), "", None),
        (b"\xff" + TEXT.encode(), "invalid UTF-8 at byte 0", None),
        (TEXT.replace('"tuning"', '"tuning", "split": "holdout"', 1).encode(), "a key stands twice", "/cases/0/split"),
        (TEXT.replace('"tuning"', '"\\ud800"', 1).encode(), "a lone surrogate", "/cases/0/split"),
        (TEXT.replace('"tuning"', "NaN", 1).encode(), "", "/cases/0/split"),
        (TEXT.encode() + b"{}", "", None),
        (b"[" * 100_000, "nesting too deep", None),
    ],
    ids=["empty", "truncated", "utf-16", "mark", "bytes", "twice", "surrogate", "nan", "trailing", "deep"],
)
def test_bytes_that_are_no_strict_json_are_refused_with_their_place(tmp_path, data, found, pointer):
    path = tmp_path / "corpus.json"
    path.write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        load_corpus(path, NotesCorpus)
    assert (caught.value.code, caught.value.path, caught.value.exit_status) == ("BENCH_FILE", str(path), 2)
    assert caught.value.pointer == pointer
    assert found in caught.value.found


@pytest.mark.parametrize("value", [None, 1, "text", [], [GOOD], {}])
def test_json_that_is_no_corpus_is_refused(value):
    with pytest.raises(SettingsError) as caught:
        parse(value)
    assert caught.value.code == "BENCH_CORPUS"


def test_what_is_no_regular_file_within_the_limit_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"12345")
    found = {}
    for name in (".", "pipe", "large", "absent", "large/x", "a\0b"):
        with pytest.raises(SettingsError) as caught:
            read_file(tmp_path / name, most_bytes=4)
        assert (caught.value.code, caught.value.path) == ("BENCH_FILE", str(tmp_path / name))
        found[name] = caught.value.found
    assert found == {
        ".": "no regular file",
        "pipe": "no regular file",
        "large": "more than 4 bytes",
        "absent": "No such file or directory",
        "large/x": "Not a directory",
        "a\0b": "no path that a system takes",
    }
    assert read_file(tmp_path / "large", most_bytes=5) == b"12345"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
)


@given(st.data(), JSON)
def test_whatever_stands_anywhere_the_corpus_is_read_or_refused(data, junk):
    value = copy.deepcopy(GOOD)
    part = value
    while isinstance(part, dict | list) and part:
        key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if not isinstance(part[key], dict | list) or data.draw(st.booleans()):
            part[key] = junk
            break
        part = part[key]
    try:
        parse(value)
    except SettingsError as error:
        assert error.code == "BENCH_CORPUS"  # noqa: PT017  # most junk is refused, and some is no harm


# --- what is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-020")
@given(st.text(min_size=1), st.text(min_size=1), st.sampled_from(("same", "other")), st.sampled_from(("a", "b")))
def test_a_request_depends_on_the_input_alone(why, check, assessment, name):
    case = load_corpus(PATH, NotesCorpus).corpus.cases[0]
    other = case.model_copy(
        update={
            "case_id": name,
            "split": name,
            "project_id": name,
            "conversation_id": name,
            "tags": (check,),
            "expected_assessment": assessment,
            "reference_rationale": why,
            "semantic_checks": (SemanticCheck.model_construct(check_id=name, aspect="side", text=check),),
        }
    )
    asked, plain = (prompt_of(each.input, small_benchmark.PROTOCOL) for each in (other, case))
    assert asked == plain
    assert set(asked.user) == {"task", "notes", "output_schema"}
    assert asked.user["notes"] == list(case.input.to_json().values())


def test_the_small_benchmark_answers_its_own_cases():
    corpus = load_corpus(PATH, NotesCorpus).corpus
    for case in corpus.cases:
        notes = case.input.to_json()
        reply = small_benchmark.answer({"notes": [notes["first"], notes["second"]]})
        assert small_benchmark.assessment_of(reply) == case.expected_assessment
