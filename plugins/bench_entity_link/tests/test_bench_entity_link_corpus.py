"""The twelve pairs and the two guides: what the corpus must cover, and how its references are made."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import casebound_bench_entity_link as plugin
import pytest
from casebound.bench.corpus import load_corpus, parse_corpus
from casebound.bench.prompt import measured_protocol, prompt_of
from casebound.errors import SettingsError
from casebound.host import build_host
from casebound_bench_entity_link.corpus import LinkCorpus

FOLDER = Path(plugin.__file__).parent
CORPUS = FOLDER / "corpora" / "entity-link-review-v1.json"
FILE = load_corpus(CORPUS, LinkCorpus)
CASES = {case.case_id: case for case in FILE.corpus.cases}
GUIDES = [(FOLDER / "guides" / f"entity-link.{language}.md").read_text("utf-8") for language in ("en", "zh")]


def tagged(tag):
    return [case for case in CASES.values() if tag in case.tags]


def assessments(tag):
    return {case.expected_assessment for case in tagged(tag)}


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-002", "B-003", "B-004", "B-005", "B-006")
def test_formats_have_their_published_names():
    versions = build_host().benchmarks["entity-link"].versions
    assert versions.guide == "casebound-entity-link-annotation/v1"
    assert versions.corpus == "casebound-entity-link-quality/v1"
    assert versions.checker == "casebound-entity-link-checks/v1"
    assert versions.measurement == "casebound-entity-link-measurement/v1"
    assert versions.captures == "casebound-entity-link-captures/v1"
    assert versions.author_review == "casebound-entity-author-review/v1"
    assert versions.independent_review == "casebound-entity-annotation-review/v1"
    assert versions.runtime == "casebound-entity-measurement-runtime/v2"


@pytest.mark.spec("B-001")
def test_what_is_measured_is_the_production_protocol():
    host = build_host()
    protocol = measured_protocol(host.benchmarks["entity-link"], host)
    assert (protocol.prompt_id, protocol.response_contract) == ("entity-link-proposal-v1", "entity-link-suggestion/v1")
    assert host.distribution_of("protocols", ("entity_link", 1)).distribution == "casebound-entity-link"


# --- the pairs ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-009", "B-010", "B-025")
def test_there_are_six_pairs_in_each_split_two_of_each_assessment():
    assert Counter((case.split, case.expected_assessment) for case in CASES.values()) == {
        (split, assessment): 2
        for split in ("development", "validation")
        for assessment in ("same_object", "different_objects", "insufficient_evidence")
    }


@pytest.mark.spec("B-009b")
def test_ids_are_the_published_ones():
    assert [case.case_id for case in FILE.corpus.in_split("development")] == [
        "dev-component-rename",
        "dev-component-properties",
        "dev-separate-deployments",
        "dev-version-objects",
        "dev-path-only",
        "dev-assistant-guess",
    ]
    assert all(case.case_id.startswith("val-") for case in FILE.corpus.in_split("validation"))


@pytest.mark.spec("B-011", "B-028", "B-033")
def test_every_phenomenon_is_covered_with_the_assessment_that_it_leads_to():
    assert assessments("explicit-rename") == assessments("alias") == {"same_object"}
    assert assessments("changed-property") == assessments("changed-administrator") == {"same_object"}
    assert assessments("changed-environment") == assessments("changed-version-condition") == {"same_object"}
    assert assessments("distinct-deployment") == assessments("distinct-version-object") == {"different_objects"}
    assert assessments("component-versus-instance") == {"different_objects"}
    assert assessments("scoped-identifier") == {"same_object", "different_objects"}
    assert assessments("path-only") == assessments("version-label-only") == {"insufficient_evidence"}
    assert assessments("assistant-guess") == assessments("embedded-instruction") == {"insufficient_evidence"}


@pytest.mark.spec("B-027", "B-029", "B-031")
def test_what_decides_nothing_never_stands_behind_sameness_and_doubt_never_behind_difference():
    for tag in ("equal-name", "related-description", "path-only", "version-label-only", "assistant-guess"):
        assert "same_object" not in assessments(tag)
    for tag in ("unknown-scope", "unknown-level", "embedded-instruction"):
        assert assessments(tag) == {"insufficient_evidence"}


@pytest.mark.spec("B-032")
@pytest.mark.parametrize("case_id", ["dev-component-properties", "val-instance-promoted"])
def test_a_change_of_property_team_environment_or_version_leaves_one_object(case_id):
    case = CASES[case_id]
    assert case.expected_assessment == "same_object"
    assert any(tag.startswith("changed-") for tag in case.tags)
    assert {"evidence", "level"} <= {check.aspect for check in case.semantic_checks}


@pytest.mark.spec("B-034")
def test_a_component_and_its_instance_differ_and_an_unknown_level_stays_open():
    stated, unknown = CASES["val-component-instance"], CASES["val-embedded-instruction"]
    assert (stated.input.left.type, stated.input.right.type) == ("component", "instance")
    assert stated.expected_assessment == "different_objects"
    assert unknown.input.left.type == unknown.input.right.type
    assert "unknown-level" in unknown.tags
    assert unknown.expected_assessment == "insufficient_evidence"


@pytest.mark.spec("B-026")
def test_every_reference_says_what_stays_open_and_sameness_rests_on_a_correspondence():
    for case in CASES.values():
        rationale = case.reference_rationale
        assert re.search(r"Left open:|It is missing ", rationale)
        if case.expected_assessment == "same_object":
            evidence = next(check.text for check in case.semantic_checks if check.aspect == "evidence")
            both = [set(re.findall(r"[A-Z]+-\d+|i-\w+|\b\d{4}\b", text)) for text in (rationale, evidence)]
            shown = [" ".join(m.text for m in side.mentions) for side in (case.input.left, case.input.right)]
            assert any(all(name in text for text in shown) for name in both[0] & both[1])


@pytest.mark.spec("B-030")
def test_insufficient_evidence_has_a_check_that_names_what_is_missing():
    for case in CASES.values():
        checks = [check.text for check in case.semantic_checks if check.aspect == "unknowns"]
        if case.expected_assessment == "insufficient_evidence":
            assert any(re.match(r"Names what is missing: \S+ \S+ \S+", text) for text in checks)
            assert "It is missing " in case.reference_rationale


def test_each_pair_has_checks_of_at_least_three_aspects_and_one_against_invention_or_overreach():
    for case in CASES.values():
        aspects = {check.aspect for check in case.semantic_checks}
        assert len(aspects) >= 3
        assert "evidence" in aspects
    assert {check.aspect for case in CASES.values() for check in case.semantic_checks} == {
        "side",
        "scope",
        "level",
        "evidence",
        "unknowns",
        "invention",
    }


def test_no_input_tells_its_reference_in_an_id_or_a_description():
    for case in CASES.values():
        for side in (case.input.left, case.input.right):
            shown = " ".join((side.entity_id, side.type, side.name, side.description)).lower()
            assert not re.search(r"dev-|val-|same|differ|renam|alias|insufficient|missing", shown)


@pytest.mark.spec("B-012")
def test_the_corpus_says_that_it_is_synthetic_and_holds_no_dialogue_of_users():
    assert FILE.corpus.provenance.startswith("Synthetic: every text was written for this corpus")
    assert "no dialogue of real users" in FILE.corpus.provenance
    text = FILE.data.decode()
    assert not re.search(r"https?://|@[a-z]|\b\d{1,3}(?:\.\d{1,3}){3}\b", text)


@pytest.mark.spec("B-017", "B-018")
def test_the_corpus_says_what_its_checks_and_its_size_do_not_show():
    checks, validation, sample, exposure, _ = FILE.corpus.limitations
    assert "do not find everything that means the same in other words" in checks
    assert "neither hidden nor blind" in validation
    assert "no sample" in sample
    assert "must not be called unseen" in exposure


@pytest.mark.spec("B-022")
def test_an_input_holds_bindings_descriptions_selected_mentions_and_limitations_of_both_sides():
    for case in CASES.values():
        given = case.input.to_json()
        assert given.keys() == {"left", "right"}
        for side in given.values():
            assert side.keys() == {"entityId", "type", "name", "description", "mentions", "limitations"}
            assert all(mention.keys() == {"mentionId", "text", "source"} for mention in side["mentions"])
            assert all((side["description"], side["mentions"], side["limitations"]))


@pytest.mark.spec("B-023")
def test_an_instruction_in_a_source_stands_in_the_message_as_quoted_text_and_nowhere_else():
    host = build_host()
    protocol = measured_protocol(host.benchmarks["entity-link"], host)
    (case,) = tagged("embedded-instruction")
    (order,) = (mention for mention in case.input.right.mentions if "answer same_object" in mention.text)
    prompt = prompt_of(case.input, protocol)
    assert order.text not in prompt.system
    assert prompt.user.keys() == {"task", "left", "right", "output_schema"}
    assert order.text in [mention["text"] for mention in prompt.user["right"]["mentions"]]
    assert order.text not in json.dumps({**prompt.user, "right": None}, ensure_ascii=False)


@pytest.mark.spec("B-023", "B-031")
def test_answering_an_instruction_opens_no_file_and_no_connection(monkeypatch):
    host = build_host()
    protocol = measured_protocol(host.benchmarks["entity-link"], host)
    answer = host.load_named("rules", "entity_link", host.rules["entity_link"].answer)
    (case,) = tagged("embedded-instruction")

    def refuse(*_, **__):
        raise AssertionError("something was opened")

    for name in ("builtins.open", "os.open", "io.open", "socket.socket", "subprocess.Popen"):
        monkeypatch.setattr(name, refuse)
    reply = answer(prompt_of(case.input, protocol).user)
    monkeypatch.undo()
    assert reply["assessment"] == "insufficient_evidence"


# --- bindings -------------------------------------------------------------------------------------------------------


def refusal(change):
    value = json.loads(FILE.data)
    change(value["cases"][0]["input"])
    with pytest.raises(SettingsError) as caught:
        parse_corpus(CORPUS, json.dumps(value).encode(), LinkCorpus)
    assert (caught.value.code, caught.value.path, caught.value.exit_status) == ("BENCH_CORPUS", str(CORPUS), 2)
    return caught.value.pointer, caught.value.found


@pytest.mark.spec("B-016")
def test_one_entity_on_both_sides_is_no_pair():
    pointer, found = refusal(lambda pair: pair["right"].update(entityId=pair["left"]["entityId"]))
    assert pointer == "/cases/0/input/right/entityId"
    assert found == "the entity 'harbor-031/E0001' stands on both sides"


@pytest.mark.spec("B-016")
def test_a_mention_that_stands_twice_is_refused():
    def change(pair):
        pair["right"]["mentions"][0]["mentionId"] = pair["left"]["mentions"][1]["mentionId"]

    assert refusal(change) == (
        "/cases/0/input/right/mentions/0/mentionId",
        "the mention 'harbor-031/S0004' stands twice",
    )


@pytest.mark.spec("B-016")
def test_a_mention_of_another_case_is_refused():
    pointer, found = refusal(lambda pair: pair["left"]["mentions"][0].update(mentionId="harbor-099/S0001"))
    assert pointer == "/cases/0/input/left/mentions/0/mentionId"
    assert found == "the mention 'harbor-099/S0001', but the entity is of the case 'harbor-031'"


@pytest.mark.spec("B-016")
def test_a_side_whose_mentions_never_name_its_entity_is_refused():
    pointer, found = refusal(lambda pair: pair["right"].update(name="paper-mill"))
    assert (pointer, found) == (
        "/cases/0/input/right/name",
        "no selected mention of this side holds the name 'paper-mill'",
    )


@pytest.mark.spec("B-016", "B-022")
@pytest.mark.parametrize("key", ["mentions", "limitations"])
def test_a_side_without_mentions_or_limitations_is_refused(key):
    pointer, found = refusal(lambda pair: pair["left"].update({key: []}))
    assert pointer == f"/cases/0/input/left/{key}"
    assert "at least 1 item" in found


@pytest.mark.spec("B-016")
@pytest.mark.parametrize("name", ["E0001", "a/b/E0001", "../x/E0001", "harbor/e1", "harbor/E0001\n", ""])
def test_an_id_that_is_not_case_and_alias_is_refused(name):
    pointer, _ = refusal(lambda pair: pair["left"].update(entityId=name))
    assert pointer == "/cases/0/input/left/entityId"


@pytest.mark.spec("B-025")
def test_a_fourth_assessment_is_refused():
    value = json.loads(FILE.data)
    value["cases"][3]["expectedAssessment"] = "unsure"
    with pytest.raises(SettingsError, match="'same_object', 'different_objects' or 'insufficient_evidence'") as caught:
        parse_corpus(CORPUS, json.dumps(value).encode(), LinkCorpus)
    assert caught.value.pointer == "/cases/3/expectedAssessment"


# --- the guides -----------------------------------------------------------------------------------------------------


def test_both_guides_have_one_outline():
    def outline(text):
        lines = text.splitlines()
        return [re.match(r"#+|\d\.|\||-|", line)[0] for line in lines if re.match(r"#|\d\.|\||- ", line)]

    english, chinese = map(outline, GUIDES)
    assert english == chinese
    assert re.findall(r"`[^`]+`", GUIDES[0]) == re.findall(r"`[^`]+`", GUIDES[1])


@pytest.mark.spec("B-026", "B-028", "B-030")
def test_the_guide_asks_sameness_for_a_correspondence_difference_for_a_passage_and_doubt_for_what_is_missing():
    rows = {match[1]: match[2] for match in re.finditer(r"\| `(\w+_\w+)` \| ([^|]+) \|", GUIDES[0])}
    assert "Say what corresponds to what, and what stays open" in rows["same_object"]
    assert "Say which passage does so" in rows["different_objects"]
    assert "Say what is missing" in rows["insufficient_evidence"]


@pytest.mark.spec("B-027", "B-029", "B-031", "B-032", "B-033", "B-034")
def test_the_guide_says_what_is_not_enough():
    english = " ".join(GUIDES[0].split())
    for sentence in (
        "names, paths or version labels are equal; descriptions resemble each other; both belong to one component; an "
        "assistant supposes it",
        "sameness could not be shown; a scope or a level is unknown",
        "Change is no new object.",
        "are different objects, even under one name",
        "It proves nothing, and permits nothing: no file is read, no tool is called",
        "Do not choose because a choice is asked for.",
        "Where a side does not tell its level, the level is unknown, and stays so.",
        "They are never counted together.",
    ):
        assert sentence in english
