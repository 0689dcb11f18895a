"""Every rule of stage `interpretation`: replies that pass, replies that fail by exactly this rule, and random ones."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from casebound.protocols.interpretation import v0, v6
from casebound.resolution.assess import derive_assessment
from casebound.testing.inventory import REPORT
from casebound.testing.inventory_cases import SITUATIONS, Situation, facts_of
from casebound.testing.inventory_model import interpretation_reply
from casebound.testing.rules import findings_of_judge, findings_of_rules, message_of_context, said
from hypothesis import given
from hypothesis import strategies as st

PROTOCOL = v6.PROTOCOL
# E0001 is a cited service with a bound name (F0002) and a description (P0001); N0001 and N0002 were selected by V0001
# and V0002, whose rows are the facts F0004 and F0005. There is no formal expectation.
CONTEXT = PROTOCOL.context(facts_of("selected"))
# S0002 is an observation, S0003 an expectation, N0001 the host.
EXPECTED = PROTOCOL.context(facts_of("expected"))
UNNAMED = PROTOCOL.context(facts_of("unnamed"))
AMBIGUOUS = PROTOCOL.context(facts_of("ambiguous"))
GROUPED = PROTOCOL.context(facts_of("grouped"))

SOURCE, OBSERVATION, EXPECTATION = "UNKNOWN_SOURCE", "OBSERVATION_SOURCE", "EXPECTATION_SOURCE"
DESCRIPTION, GAP, ENTITY, MISSING = "DESCRIPTION_SOURCE", "PROVISIONAL_GAP", "UNKNOWN_ENTITY", "ENTITY_MISSING"
PROVENANCE, BINDING, REASON, IDENTITY = "ENTITY_PROVENANCE", "NAME_BINDING", "UNBOUND_REASON", "IDENTITY_MISSING"
LOCAL = {"basis": "local_description"}


def statement(*source_ids, **labels):
    return {"text": "it is so", "source_ids": list(source_ids), **labels}


def entity(name, *source_ids, reason="it matters"):
    return {"entity_id": name, "reason": reason, "source_ids": list(source_ids)}


def described(*source_ids, verification="not_independently_verified", **labels):
    return statement(*source_ids, **{**LOCAL, "verification": verification, **labels})


def provisional(*source_ids, status="provisional", **labels):
    return statement(*source_ids, **{**LOCAL, "status": status, **labels})


SERVICE = entity("E0001", "S0002", "F0002")
CANARY = entity("N0001", "S0001", "N0001")
RUNNER = entity("N0002", "S0002", "F0005")


def reply(**changes):
    return {
        "summary": statement("S0001"),
        "observed_behavior": [statement("S0002")],
        "expected_behavior": [],
        "behavior_gap": None,
        "first_known_divergence": None,
        "described_behavior": [described("P0001")],
        "provisional_behavior_gap": provisional("S0002", "P0001"),
        "relevant_entities": [SERVICE, CANARY, RUNNER],
        "unknowns": [statement("Q0001")],
        **changes,
    }


def expecting(**changes):
    base = {
        "described_behavior": [],
        "provisional_behavior_gap": None,
        "relevant_entities": [entity("N0001", "S0002", "N0001")],
        "unknowns": [],
        "expected_behavior": [statement("S0003")],
        "behavior_gap": statement("S0002", "S0003"),
        "first_known_divergence": statement("S0003"),
    }
    return reply(**{**base, **changes})


def test_the_contexts_are_what_these_tests_believe():
    kinds = {source["id"]: source["kind"] for source in CONTEXT["sources"]}
    assert kinds == {
        "S0001": "title",
        "S0002": "observation",
        "S0003": "observation",
        "S0005": "reproduction",
        "S0006": "reproduction",
        "P0001": "project_description",
    }
    assert [(one["id"], one["selected"], one["required_reason"]) for one in CONTEXT["entities"]] == [
        ("E0001", False, None),
        ("N0001", True, None),
        ("N0002", True, None),
    ]
    looked_up = [(one["id"], one["capture"]) for one in CONTEXT["facts"] if one["kind"] == "entity_name_lookup"]
    assert looked_up == [("F0004", "V0001"), ("F0005", "V0002")]
    assert {source["id"]: source["kind"] for source in EXPECTED["sources"]}["S0003"] == "expectation"


@pytest.mark.spec("A-089", "A-135", "A-136", "A-145g", "A-150j", "A-154e")
@pytest.mark.parametrize(
    "answer",
    [
        reply(),
        reply(described_behavior=[], provisional_behavior_gap=None),
        reply(provisional_behavior_gap=None),
        reply(observed_behavior=[], unknowns=[]),
        reply(observed_behavior=[statement(name) for name in ("S0001", "S0002", "S0005")]),
        reply(summary=statement("V0001", "F0001", "E0001", "N0001", "Q0001", "P0001")),
        reply(relevant_entities=[CANARY, RUNNER]),  # a cited entity that was not selected may be left out
        reply(
            relevant_entities=[SERVICE, RUNNER, entity("N0001", "S0006", "F0004")]
        ),  # a fact of its capture is enough
        reply(relevant_entities=[SERVICE, RUNNER, entity("N0001", "P0001", "N0001", "F0004", "F0003")]),
        reply(relevant_entities=[SERVICE, RUNNER, entity("N0001", "S0001", "N0001", reason="the one that fails")]),
    ],
)
def test_interpretations_that_hold(answer):
    assert said(findings_of_rules(PROTOCOL, answer, CONTEXT)) == []
    assert said(findings_of_judge(PROTOCOL, answer, CONTEXT)) == []


@pytest.mark.spec(
    "A-040", "A-134", "A-135", "A-137", "A-138", "A-141", "A-145b", "A-145f", "A-146a", "A-146d", "A-146e", "A-154e"
)
@pytest.mark.parametrize(
    ("answer", "code", "path", "by_schema"),
    [
        (reply(summary=statement("S0001", "S0099")), SOURCE, "/summary/source_ids/1", None),
        (reply(summary=statement("S0004")), SOURCE, "/summary/source_ids/0", None),  # markup
        (reply(unknowns=[statement("D0001")]), SOURCE, "/unknowns/0/source_ids/0", None),
        (reply(summary=statement("V0003")), SOURCE, "/summary/source_ids/0", None),
        (reply(observed_behavior=[statement("F0004")]), OBSERVATION, "/observed_behavior/0/source_ids", None),
        (reply(observed_behavior=[statement("S0002", "P0001")]), OBSERVATION, "/observed_behavior/0/source_ids", None),
        (reply(observed_behavior=[statement("V0001")]), OBSERVATION, "/observed_behavior/0/source_ids", None),
        (
            reply(observed_behavior=[statement("S0002"), statement("N0001")]),
            OBSERVATION,
            "/observed_behavior/1/source_ids",
            None,
        ),
        (reply(observed_behavior=[statement("E0001")]), OBSERVATION, "/observed_behavior/0/source_ids", None),
        (reply(expected_behavior=[statement("P0001")]), EXPECTATION, "/expected_behavior/0/source_ids", None),
        (reply(expected_behavior=[statement("S0002")]), EXPECTATION, "/expected_behavior/0/source_ids", None),
        (reply(behavior_gap=statement("S0002")), EXPECTATION, "/behavior_gap/source_ids", None),
        (reply(behavior_gap=statement("S0002", "P0001")), EXPECTATION, "/behavior_gap/source_ids", None),
        (reply(first_known_divergence=statement("S0005")), EXPECTATION, "/first_known_divergence/source_ids", None),
        (
            reply(described_behavior=[described("P0001"), described("S0002")]),
            DESCRIPTION,
            "/described_behavior/1/source_ids",
            None,
        ),
        (
            reply(described_behavior=[described("P0001", "F0003")]),
            DESCRIPTION,
            "/described_behavior/0/source_ids",
            None,
        ),
        (reply(provisional_behavior_gap=provisional("S0002")), GAP, "/provisional_behavior_gap/source_ids", None),
        (reply(provisional_behavior_gap=provisional("P0001")), GAP, "/provisional_behavior_gap/source_ids", None),
        (reply(described_behavior=[]), GAP, "/provisional_behavior_gap/source_ids", None),  # P0001 is not included
        (
            reply(provisional_behavior_gap=provisional("S0002", "P0001", "F0003")),
            GAP,
            "/provisional_behavior_gap/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[SERVICE, CANARY, RUNNER, RUNNER]),
            ENTITY,
            "/relevant_entities/3/entity_id",
            "/relevant_entities",
        ),
        (
            reply(relevant_entities=[CANARY, RUNNER, entity("N0009", "S0001")]),
            ENTITY,
            "/relevant_entities/2/entity_id",
            "…",
        ),
        (reply(relevant_entities=[SERVICE, CANARY]), MISSING, "/relevant_entities", None),
        (
            reply(relevant_entities=[SERVICE, CANARY, entity("N0002", "S0002")]),
            PROVENANCE,
            "/relevant_entities/2/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[SERVICE, CANARY, entity("N0002", "F0005")]),
            PROVENANCE,
            "/relevant_entities/2/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[SERVICE, CANARY, entity("N0002", "N0002", "S0003")]),
            PROVENANCE,
            "/relevant_entities/2/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[SERVICE, CANARY, entity("N0002", "S0002", "F0004")]),
            PROVENANCE,
            "/relevant_entities/2/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[SERVICE, CANARY, entity("N0002", "S0002", "V0002")]),
            PROVENANCE,
            "/relevant_entities/2/source_ids",
            None,
        ),
        (
            reply(relevant_entities=[entity("E0001", "S0001"), CANARY, RUNNER]),
            BINDING,
            "/relevant_entities/0/source_ids",
            "…",
        ),
        (
            reply(relevant_entities=[entity("E0001", "S0001", "F0003"), CANARY, RUNNER]),
            BINDING,
            "/relevant_entities/0/source_ids",
            "…",
        ),
    ],
)
def test_interpretations_that_break_exactly_one_rule(answer, code, path, by_schema):
    """`…`: the schema finds it at the same place, before the rules are asked."""
    assert said(findings_of_rules(PROTOCOL, answer, CONTEXT)) == [(f"INTERPRETATION_{code}", path)]
    found = said(findings_of_judge(PROTOCOL, answer, CONTEXT))
    if by_schema is None:
        assert found == [(f"INTERPRETATION_{code}", path)]
    else:
        assert found == [("LLM_OUTPUT_SCHEMA", path if by_schema == "…" else by_schema)]


@pytest.mark.spec("A-146a", "A-146d", "A-146e")
@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({}, None, None),
        ({"first_known_divergence": None, "behavior_gap": statement("S0003")}, None, None),
        ({"observed_behavior": [statement("S0003")]}, OBSERVATION, "/observed_behavior/0/source_ids"),
        ({"expected_behavior": [statement("S0003", "S0002")]}, EXPECTATION, "/expected_behavior/0/source_ids"),
        ({"behavior_gap": statement("S0002")}, EXPECTATION, "/behavior_gap/source_ids"),
        ({"behavior_gap": statement("S0003", "F0001")}, EXPECTATION, "/behavior_gap/source_ids"),
        ({"first_known_divergence": statement("S0002")}, EXPECTATION, "/first_known_divergence/source_ids"),
    ],
)
def test_where_there_is_a_formal_expectation(changes, code, path):
    answer = expecting(**changes)
    expected = [(f"INTERPRETATION_{code}", path)] if code else []
    assert said(findings_of_rules(PROTOCOL, answer, EXPECTED)) == expected
    assert said(findings_of_judge(PROTOCOL, answer, EXPECTED)) == expected


@pytest.mark.spec("A-145c", "A-145d", "A-145e")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"described_behavior": [described("P0001", basis="formal")]}, "/described_behavior/0/basis"),
        ({"described_behavior": [described("P0001", verification="verified")]}, "/described_behavior/0/verification"),
        ({"described_behavior": [statement("P0001")]}, "/described_behavior/0"),
        (
            {"provisional_behavior_gap": provisional("S0002", "P0001", basis="formal")},
            "/provisional_behavior_gap/basis",
        ),
        (
            {"provisional_behavior_gap": provisional("S0002", "P0001", status="final")},
            "/provisional_behavior_gap/status",
        ),
        ({"provisional_behavior_gap": statement("S0002", "P0001")}, "/provisional_behavior_gap"),
        ({"observed_behavior": [statement("S0002", basis="local_description")]}, "/observed_behavior/0"),
    ],
)
def test_labels_are_constant(changes, path):
    assert said(findings_of_judge(PROTOCOL, reply(**changes), CONTEXT)) == [("LLM_OUTPUT_SCHEMA", path)]


@pytest.mark.spec("A-006", "A-088")
@pytest.mark.parametrize("key", ["cause", "root_cause", "fix", "hypotheses", "proposed_changes", "diagnosis"])
def test_there_is_no_field_for_a_cause_or_a_change(key):
    assert said(findings_of_judge(PROTOCOL, reply(**{key: "x"}), CONTEXT)) == [("LLM_OUTPUT_SCHEMA", "")]


@pytest.mark.spec("A-138", "A-139", "A-140")
def test_a_missing_entity_and_missing_provenance_are_told_apart_and_beside_every_other_error():
    answer = reply(
        observed_behavior=[statement("F0004")],
        relevant_entities=[SERVICE, entity("N0001", "S0005", "F0005")],
    )
    found = findings_of_judge(PROTOCOL, answer, CONTEXT)
    assert said(found) == [
        ("INTERPRETATION_ENTITY_MISSING", "/relevant_entities"),
        ("INTERPRETATION_ENTITY_PROVENANCE", "/relevant_entities/1/source_ids"),
        ("INTERPRETATION_OBSERVATION_SOURCE", "/observed_behavior/0/source_ids"),
    ]
    errors = PROTOCOL.feedback(found, CONTEXT)["errors"]
    missing = next(error for error in errors if error["code"].endswith("ENTITY_MISSING"))
    assert missing["entity_id"] == "N0002"
    assert missing["mentions"] == ["S0002"]
    assert missing["evidence"] == ["N0002", "F0005"]
    parts = {error["missing"]: error["permitted"] for error in errors if error["code"].endswith("PROVENANCE")}
    assert parts == {"mention": ["P0001", "S0001", "S0002", "S0006"], "evidence": ["N0001", "F0004"]}


@pytest.mark.spec("A-144n", "A-147d")
@pytest.mark.parametrize("evidence", ["N0001", "F0001", "F0003"])
def test_any_capture_of_a_group_shows_its_identity(evidence):
    (group,) = GROUPED["entities"]
    assert [link["capture"] for link in group["lookup_associations"]] == ["V0001", "V0002"]
    answer = reply(
        described_behavior=[],
        provisional_behavior_gap=None,
        relevant_entities=[entity("N0001", "S0002", evidence)],
    )
    assert said(findings_of_judge(PROTOCOL, answer, GROUPED)) == []
    answer["relevant_entities"] = [entity("N0001", "S0002", "F0002")]  # the same capture, another row
    assert said(findings_of_judge(PROTOCOL, answer, GROUPED)) != []


@pytest.mark.spec("A-137")
def test_a_fact_of_a_capture_from_which_nothing_was_selected_shows_nothing():
    """The broad search found the same row too, but stayed ambiguous: its fact is no evidence of the selection."""
    facts = facts_of("nested")
    answered = copy.deepcopy(facts.assessment.reply)
    answered["resolutions"][1].update(status="ambiguous", entity=None)
    context = PROTOCOL.context(replace(facts, assessment=derive_assessment(facts, answered)))
    rows = {(one["entity_id"], one["capture"]): one["id"] for one in context["facts"]}
    for capture, expected in (
        ("V0001", []),
        ("V0002", [("INTERPRETATION_ENTITY_PROVENANCE", "/relevant_entities/1/source_ids")]),
    ):
        given = entity("N0001", "S0001", rows["12", capture])
        answer = reply(relevant_entities=[SERVICE, given], unknowns=[statement("D0001")])
        assert said(findings_of_rules(PROTOCOL, answer, context)) == expected


# --- entities without a name, identities that stayed open -----------------------------------------------------------

NEUTRAL = "Entity of type service with id 440."


def unnamed(**reasons):
    neutral = {one["id"]: one["required_reason"] for one in UNNAMED["entities"]}
    return reply(
        described_behavior=[],
        provisional_behavior_gap=None,
        relevant_entities=[entity(name, "S0002", reason=reasons.get(name, text)) for name, text in neutral.items()],
    )


@pytest.mark.spec("A-150d", "A-150e", "A-150g", "A-154h")
def test_an_entity_without_a_name_has_exactly_one_reason():
    assert [one["required_reason"] for one in UNNAMED["entities"]] == [
        NEUTRAL,
        "Entity of type host with id 11.",
        "Entity of type host with id 99.",
    ]
    assert said(findings_of_judge(PROTOCOL, unnamed(), UNNAMED)) == []
    for reason in ("The job scheduler.", NEUTRAL[:-1], NEUTRAL + " ", NEUTRAL.lower(), "Nightly billing run"):
        path = "/relevant_entities/0/reason"
        assert said(findings_of_rules(PROTOCOL, unnamed(E0001=reason), UNNAMED)) == [
            ("INTERPRETATION_UNBOUND_REASON", path)
        ]
        assert said(findings_of_judge(PROTOCOL, unnamed(E0001=reason), UNNAMED)) == [("LLM_OUTPUT_SCHEMA", path)]


@pytest.mark.spec("A-150f")
def test_the_feedback_gives_the_required_reason_word_for_word():
    answer = unnamed(E0001="The job scheduler.")
    for found in (findings_of_rules(PROTOCOL, answer, UNNAMED), findings_of_judge(PROTOCOL, answer, UNNAMED)):
        (error,) = PROTOCOL.feedback(found, UNNAMED)["errors"]
        assert error["permitted"] == [NEUTRAL]


@pytest.mark.spec("A-151b")
def test_only_the_reason_is_held_by_a_rule():
    """The ban on inferred names covers every field, by the prompt; a program judges this one only, and says so."""
    answer = {**unnamed(), "summary": {"text": "Service 440 is the job scheduler.", "source_ids": ["S0002"]}}
    assert said(findings_of_judge(PROTOCOL, answer, UNNAMED)) == []
    assert "nothing here verifies the free text" in " ".join((v6.__doc__ or "").split())


@pytest.mark.spec("A-154f")
def test_the_feedback_names_the_facts_of_a_name():
    answer = reply(relevant_entities=[entity("E0001", "S0001"), CANARY, RUNNER])
    for found in (findings_of_rules(PROTOCOL, answer, CONTEXT), findings_of_judge(PROTOCOL, answer, CONTEXT)):
        (error,) = PROTOCOL.feedback(found, CONTEXT)["errors"]
        assert error["permitted"] == ["F0002"]


@pytest.mark.spec("A-041", "A-083", "A-113c")
def test_an_unresolved_identity_is_cited_by_an_unknown():
    base = {"described_behavior": [], "provisional_behavior_gap": None, "relevant_entities": []}
    for unknowns, path in (
        ([statement("Q0001")], "/unknowns"),
        ([], "/unknowns"),
        ([statement("D0001")], None),
        ([statement("Q0001"), statement("S0002", "D0001")], None),
    ):
        answer = reply(**base, unknowns=unknowns)
        expected = [("INTERPRETATION_IDENTITY_MISSING", path)] if path else []
        assert said(findings_of_rules(PROTOCOL, answer, AMBIGUOUS)) == expected
        assert said(findings_of_judge(PROTOCOL, answer, AMBIGUOUS)) == expected
    elsewhere = reply(**base, summary=statement("D0001"), unknowns=[])
    assert said(findings_of_rules(PROTOCOL, elsewhere, AMBIGUOUS)) == [("INTERPRETATION_IDENTITY_MISSING", "/unknowns")]


# --- random replies -------------------------------------------------------------------------------------------------

OBSERVED = [source["id"] for source in CONTEXT["sources"] if source["kind"] != "project_description"]
KNOWN = [*(source["id"] for source in CONTEXT["sources"]), "E0001", "N0001", "F0001", "F0004", "V0001", "Q0001"]


@st.composite
def valid_interpretations(draw):
    def some(names, **labels):
        return statement(*draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)), **labels)

    def many(names):
        return [some(names) for _ in range(draw(st.integers(0, 2)))]

    has_description = draw(st.booleans())
    entities = [entity("N0001", draw(st.sampled_from(["S0001", "P0001"])), draw(st.sampled_from(["N0001", "F0004"])))]
    entities.append(
        entity(
            "N0002",
            "S0002",
            draw(st.sampled_from(["N0002", "F0005"])),
            *draw(st.lists(st.sampled_from(KNOWN), max_size=2)),
        )
    )
    if draw(st.booleans()):
        entities.append(SERVICE)
    return copy.deepcopy(
        reply(
            summary=some(KNOWN),
            observed_behavior=many(OBSERVED),
            described_behavior=[described("P0001")] if has_description else [],
            provisional_behavior_gap=provisional("P0001", draw(st.sampled_from(OBSERVED))) if has_description else None,
            relevant_entities=draw(st.permutations(entities)),
            unknowns=many(KNOWN),
        )
    )


@given(valid_interpretations())
def test_random_interpretations_that_hold_are_accepted(answer):
    assert said(findings_of_judge(PROTOCOL, answer, CONTEXT)) == []


def _selected(answer):
    return next(one for one in answer["relevant_entities"] if one["entity_id"] == "N0001")


MUTATIONS = {
    SOURCE: lambda answer: answer["summary"]["source_ids"].append("S0004"),
    OBSERVATION: lambda answer: answer["observed_behavior"].append(statement("F0004")),
    EXPECTATION: lambda answer: answer.update(expected_behavior=[statement("P0001")]),
    DESCRIPTION: lambda answer: answer["described_behavior"].append(described("S0001")),
    GAP: lambda answer: answer.update(provisional_behavior_gap=provisional("S0001")),
    ENTITY: lambda answer: answer["relevant_entities"].append(_selected(answer)),
    MISSING: lambda answer: answer["relevant_entities"].remove(_selected(answer)),
    PROVENANCE: lambda answer: _selected(answer).update(source_ids=["S0005", "F0005"]),
    BINDING: lambda answer: answer["relevant_entities"].append(entity("E0001", "S0001")),
}


@given(valid_interpretations(), st.sampled_from(sorted(MUTATIONS)))
def test_random_interpretations_with_one_mutation_are_refused_for_it(answer, code):
    MUTATIONS[code](answer)
    assert f"INTERPRETATION_{code}" in {found for found, _ in said(findings_of_rules(PROTOCOL, answer, CONTEXT))}
    assert findings_of_judge(PROTOCOL, answer, CONTEXT)


@pytest.mark.parametrize("situation", sorted(set(SITUATIONS) - {"plain"}))
def test_the_model_of_the_tests_answers_validly(situation):
    context = PROTOCOL.context(facts_of(situation))
    answer = interpretation_reply(message_of_context(PROTOCOL, context))
    assert said(findings_of_judge(PROTOCOL, answer, context)) == []


# --- the plain prompt -----------------------------------------------------------------------------------------------

PLAIN = v0.PROTOCOL.context(facts_of("plain"))


def plain(**changes):
    answer = {**reply(relevant_entities=[entity("E0001", "S0001")]), **changes}
    return {key: value for key, value in answer.items() if key in v0.PROTOCOL.response_schema(PLAIN)["properties"]}


@pytest.mark.parametrize(
    ("answer", "code", "path"),
    [
        (plain(), None, None),
        (plain(relevant_entities=[]), None, None),
        (plain(summary=statement("V0001")), SOURCE, "/summary/source_ids/0"),
        (plain(observed_behavior=[statement("P0001")]), OBSERVATION, "/observed_behavior/0/source_ids"),
        (plain(expected_behavior=[statement("P0001")]), EXPECTATION, "/expected_behavior/0/source_ids"),
        (plain(relevant_entities=[entity("E0002", "S0001")]), ENTITY, "/relevant_entities/0/entity_id"),
    ],
)
def test_the_rules_of_the_plain_prompt(answer, code, path):
    expected = [(f"INTERPRETATION_{code}", path)] if code else []
    assert said(findings_of_rules(v0.PROTOCOL, answer, PLAIN)) == expected


@pytest.mark.spec("A-147a")
def test_each_contract_belongs_to_its_prompt():
    """The descriptive flow is unknown to the plain contract, and demanded by the other one."""
    answer = {**plain(), "described_behavior": []}
    assert said(findings_of_judge(v0.PROTOCOL, answer, PLAIN)) == [("LLM_OUTPUT_SCHEMA", "")]
    without = {key: value for key, value in reply().items() if key in plain()}
    assert said(findings_of_judge(PROTOCOL, without, CONTEXT)) == [("LLM_OUTPUT_SCHEMA", "")]
    assert v0.PROTOCOL.response_contract == "case-interpretation-output-v1"
    assert PROTOCOL.response_contract == "case-interpretation-quality-output-v1"
    assert SITUATIONS["plain"] == Situation(REPORT, plain=True)
