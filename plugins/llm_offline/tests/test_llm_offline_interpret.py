"""Interpretations: slices of the sources only, every selected and unresolved identity kept with its evidence."""

from __future__ import annotations

import copy

import pytest
from casebound.protocols.interpretation import v0, v6
from casebound.protocols.registry import built_in_protocols
from casebound.testing.inventory_cases import SITUATIONS, facts_of
from casebound.validators.interpretation import VALIDATORS
from casebound_llm_offline.interpret import answer, opening
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

PROTOCOLS = {one.version: one for one in built_in_protocols() if one.stage == "interpretation" and one.version}
KINDS = ("title", "observation", "expectation", "reproduction", "environment", "reference", "comment", "text")


def context(sources, descriptions=(), entities=(), unknowns=()):
    listed = [{"id": f"S{n:04}", "kind": kind, "text": text} for n, (kind, text) in enumerate(sources, 1)]
    listed += [
        {"id": f"P{n:04}", "kind": "project_description", "text": text, "entity": "E0001"}
        for n, text in enumerate(descriptions, 1)
    ]
    facts, given_entities = [], []
    for number, (origin, names, bound) in enumerate(entities, 1):
        prefix = "E" if origin == "cited" else "N"
        entity = {
            "id": f"{prefix}{number:04}",
            "type": "host",
            "canonical_id": str(number),
            "origin": origin,
            "selected": bool(names),
            "mentions": [listed[0]["id"]],
            "lookup_associations": [],
            "name_bindings": [],
        }
        for name in names:
            fact = _fact(facts, "entity_name_lookup", number, name, f"V{number:04}")
            entity["lookup_associations"].append(
                {
                    "search_index": number,
                    "name": name,
                    "role": "participant",
                    "role_basis": "model_contextual_selection_not_causation",
                    "reason": "r",
                    "mentions": [listed[0]["id"]],
                    "capture": f"V{number:04}",
                    "fact": fact,
                }
            )
        for name in bound:
            entity["name_bindings"].append(
                {"fact": _fact(facts, "project_entity_name", number, name, None), "name": name}
            )
        named = entity["name_bindings"] or any(each["name"] for each in entity["lookup_associations"])
        entity["required_reason"] = None if named else f"Entity of type host with id {number}."
        given_entities.append(entity)
    return {
        "sources": listed,
        "expected_behavior": {"completeness": "missing", "provenance": None},
        "entities": given_entities,
        "facts": facts,
        "captures": [f"V{n:04}" for n in range(1, len(given_entities) + 1)],
        "unknowns": [
            {"id": "Q0001", "text": "formally expected behaviour is not established"},
            *(
                {
                    "id": f"D{n:04}",
                    "status": status,
                    "term": term,
                    "catalog": "inv.host",
                    "snapshot": "s",
                    "truncated": False,
                    "mentions": [listed[0]["id"]],
                    "capture": "V0001",
                }
                for n, (status, term) in enumerate(unknowns, 1)
            ),
        ],
    }


def _fact(facts, kind, number, value, capture):
    facts.append(
        {
            "id": f"F{len(facts) + 1:04}",
            "kind": kind,
            "type": "host",
            "entity_id": str(number),
            "column": "name",
            "value": value,
            "capture": capture,
        }
    )
    return facts[-1]["id"]


def as_built_by(version, asked):
    """Return a context of version 6 with the keys that `version` has, and no others."""
    older = copy.deepcopy(asked)
    markers = ("capture", "fact") if version == 1 else ()
    for item in (*older["facts"], *older["unknowns"], *older["entities"]):
        for part in (item, *item.get("lookup_associations", ())):
            for key in markers:
                part.pop(key, None)
    older["captures"] = [] if version == 1 else older["captures"]
    for entity in older["entities"]:
        if version < 5:
            entity.pop("name_bindings")
            named = any(each["name"] for each in entity["lookup_associations"])
            entity["required_reason"] = None if named else f"Entity of type host with id {entity['canonical_id']}."
        if version < 4:
            entity.pop("required_reason")
    return older


def interpreted(asked, protocol=v6.PROTOCOL):
    """Return the reply, once the protocol's own schema and rules have nothing against it."""
    reply = answer(protocol.request(asked, None).user)
    assert list(Draft202012Validator(protocol.response_schema(asked)).iter_errors(reply)) == []
    names = {(rule.code, rule.revision) for rule in protocol.rules}
    checks = [rule.check for rule in VALIDATORS if (rule.code, rule.revision) in names]
    assert len(checks) == len(names)
    assert [finding for check in checks for finding in check(reply, asked)] == []
    return reply


def test_statements_are_the_words_of_their_sources():
    reply = interpreted(
        context(
            [("title", "Relay hums"), ("observation", "It hums. Loudly."), ("expectation", "It is silent.")],
            ["A relay switches."],
        )
    )
    assert reply["summary"] == {"text": "Relay hums", "source_ids": ["S0001"]}
    assert reply["observed_behavior"] == [{"text": "It hums. Loudly.", "source_ids": ["S0002"]}]
    assert reply["expected_behavior"] == [{"text": "It is silent.", "source_ids": ["S0003"]}]
    assert reply["behavior_gap"] == {"text": "It hums. Loudly.", "source_ids": ["S0002", "S0003"]}
    assert reply["described_behavior"][0]["text"] == "A relay switches."
    assert reply["provisional_behavior_gap"] is None


def test_a_description_never_becomes_an_expectation():
    reply = interpreted(context([("title", "Relay hums")], ["A relay is silent."]))
    assert reply["expected_behavior"] == []
    assert reply["behavior_gap"] is None


def test_selected_cited_and_unresolved_identities_are_kept():
    reply = interpreted(
        context(
            [("title", "Relay hums")],
            entities=[("cited", [], ["Gold Relay"]), ("resolved", ["Copper Relay"], []), ("cited", [], [])],
            unknowns=[
                ("ambiguous", "Relay"),
                ("no_match", "Old Relay"),
                ("ambiguous", "Relay"),
                ("no_match", "Relais"),
            ],
        )
    )
    reasons = {each["entity_id"]: each["reason"] for each in reply["relevant_entities"]}
    assert set(reasons) == {"E0001", "N0002", "E0003"}
    assert "Copper Relay" in reasons["N0002"]
    assert reasons["E0003"] == "Entity of type host with id 3."
    assert [each["source_ids"] for each in reply["unknowns"]] == [
        ["Q0001"],
        ["D0001", "D0003", "S0001"],
        ["D0002", "D0004", "S0001"],
    ]


def test_a_required_reason_is_taken_word_for_word():
    asked = context([("title", "Relay hums")], entities=[("resolved", ["Copper Relay"], [])])
    asked["entities"][0]["required_reason"] = "Exactly this."
    assert interpreted(asked)["relevant_entities"][0]["reason"] == "Exactly this."


def test_the_plain_prompt_gets_only_the_fields_that_it_asks_for():
    reply = interpreted(context([("title", "Relay hums")], ["A relay is silent."]), v0.PROTOCOL)
    assert "described_behavior" not in reply
    assert reply["summary"]["text"] == "Relay hums"


def test_a_blank_report_is_summed_up_by_itself():
    assert interpreted(context([("title", " ")]))["summary"]["text"] == " "


def test_a_long_source_is_cited_up_to_a_sentence_end():
    text = "It hums loudly. " * 100
    part = opening(text, 100)
    assert text.startswith(part)
    assert part.endswith("loudly.")
    assert len(part) <= 100


@given(st.text(max_size=200), st.integers(1, 50))
def test_an_opening_is_a_slice_within_its_limit(text, longest):
    part = opening(text, longest)
    assert part in text
    assert len(part) <= longest
    assert bool(part) == bool(text.strip())


LINES = st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
NAMES = st.one_of(st.none(), LINES)


@pytest.mark.parametrize("version", sorted(PROTOCOLS))
@pytest.mark.parametrize("situation", sorted(set(SITUATIONS) - {"plain"}))
def test_a_case_of_any_version_is_interpreted_with_all_that_has_to_be_kept(version, situation):
    asked = PROTOCOLS[version].context(facts_of(situation))
    reply = interpreted(asked, PROTOCOLS[version])
    kept = {each["entity_id"] for each in reply["relevant_entities"]}
    assert {entity["id"] for entity in asked["entities"] if entity["selected"]} <= kept


@given(
    st.sampled_from(sorted(PROTOCOLS)),
    st.lists(st.tuples(st.sampled_from(KINDS), LINES), min_size=1, max_size=6),
    st.lists(LINES, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["cited", "resolved"]), st.lists(NAMES, max_size=3), st.lists(LINES, max_size=2)),
        max_size=4,
    ),
    st.lists(st.tuples(st.sampled_from(["ambiguous", "no_match"]), LINES), max_size=4),
)
def test_any_interpretation_follows_the_rules_and_paraphrases_nothing(
    version, sources, descriptions, entities, unknowns
):
    entities = [(origin, names or ["x"] if origin == "resolved" else names, bound) for origin, names, bound in entities]
    asked = as_built_by(version, context(sources, descriptions, entities, unknowns))
    kept = copy.deepcopy(asked)
    reply = interpreted(asked, PROTOCOLS[version])
    assert asked == kept
    texts = {source["id"]: source["text"] for source in asked["sources"]}
    stated = [reply["summary"], *reply["observed_behavior"], *reply["expected_behavior"]]
    stated += reply.get("described_behavior", [])
    stated += [reply["behavior_gap"]] if reply["behavior_gap"] else []
    assert all(each["text"] in texts[each["source_ids"][0]] for each in stated)
