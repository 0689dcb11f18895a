"""What the searches become: aliases, groups, provenance that resolves, hints, and the context of the interpretation."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from casebound.canonical import digest_of
from casebound.contracts.assessment import ROLE_BASIS
from casebound.contracts.case import Mention
from casebound.pointer import resolve_pointer
from casebound.protocols.assessment import v4 as assessment
from casebound.protocols.interpretation import v0, v6
from casebound.protocols.plan import v4 as plan
from casebound.resolution.assess import derive_assessment
from casebound.resolution.lookup import derive_candidates
from casebound.resolution.plan import derive_plan
from casebound.testing.inventory_cases import SITUATIONS, facts_of
from casebound.testing.rules import message_of_context

RESOLVED = sorted(set(SITUATIONS) - {"plain"})


def context_of(situation):
    return v6.PROTOCOL.context(facts_of(situation))


def document_of(facts):
    """Return what `/entity_resolution`, `/research` and the rest point into."""
    return {
        **facts.case.to_json(),
        "research": facts.facts.to_json(),
        "entity_resolution": {
            "input": facts.resolution.to_json(),
            "plan": facts.plan.to_json(),
            "captures": [capture.to_json() for capture in facts.captures],
            "candidates": facts.candidates.to_json(),
            "assessment": facts.assessment.to_json(),
        },
    }


# --- deriving -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-011", "A-077", "A-081")
@pytest.mark.parametrize("situation", RESOLVED)
def test_mentions_are_exactly_the_places_of_the_term_in_the_cited_sources(situation):
    facts = facts_of(situation)
    for search, grounding in zip(facts.plan.searches, facts.plan.groundings, strict=True):
        assert grounding.mentions
        for mention in grounding.mentions:
            assert text_at(facts, mention) == search["term"]
        assert {mention.source for mention in grounding.mentions} <= set(search["source_ids"])


def text_at(facts, mention):
    if mention.field is None:
        text = next(source.text for source in facts.facts.sources if source.id == mention.source)
    else:
        text = facts.case.fields.text(mention.field)
    return text[mention.start : mention.end]


@pytest.mark.spec("A-011")
def test_only_the_cited_source_that_holds_the_term_is_its_mention():
    facts = facts_of("selected")
    reply = {"searches": [{**facts.plan.searches[0], "source_ids": ["S0005", "S0002", "S0002"]}]}
    (grounding,) = derive_plan(facts, reply).groundings
    assert [mention.source for mention in grounding.mentions] == ["S0002"]
    assert derive_plan(facts, reply).reply == reply


def test_a_comment_of_the_report_is_never_a_mention():
    """No such plan passes the rules; should one ever, nothing is grounded there."""
    facts = facts_of("selected")
    assert any(source.id == "S0004" and "mail-relay" in facts.case.text_of(source) for source in facts.case.sources)
    reply = {"searches": [{**facts.plan.searches[0], "term": "mail-relay", "source_ids": ["S0004"]}]}
    assert derive_plan(facts, reply).groundings[0].mentions == ()


@pytest.mark.spec("A-070", "A-072")
@pytest.mark.parametrize("situation", RESOLVED)
def test_candidates_index_every_row_of_every_capture(situation):
    facts = facts_of(situation)
    candidates = facts.candidates
    assert candidates.plan_digest == digest_of(facts.plan.to_bytes())
    assert [listed.alias for listed in candidates.searches] == [f"V{n:04d}" for n in range(1, len(facts.captures) + 1)]
    for listed, capture in zip(candidates.searches, facts.captures, strict=True):
        assert listed.capture == digest_of(capture.to_bytes())
        assert listed.truncated == capture.truncated
        assert [candidate.row for candidate in listed.candidates] == [f"/rows/{n}" for n in range(len(capture.rows))]
        for candidate in listed.candidates:
            assert {candidate.id, candidate.name} <= set(resolve_pointer(capture.to_json(), candidate.row))
    assert derive_candidates(facts.plan, facts.captures) == candidates


@pytest.mark.spec("A-144h", "A-147d")
def test_a_locale_stands_where_the_catalog_has_one_and_nowhere_else():
    (listed,) = facts_of("locales").candidates.searches
    assert {candidate.locale for candidate in listed.candidates} == {"de"}
    assert [table["columns"] for table in assessment.PROTOCOL.context(facts_of("grouped"))["candidates"]] == [
        ["id", "name", "os"],
        ["id", "name", "locale"],
    ]
    associations = context_of("grouped")["entities"][0]["lookup_associations"]
    assert [link.get("locale") for link in associations] == [None, "de"]
    assert "locale" not in associations[0]


def test_a_locale_that_is_a_number_is_its_text():
    facts = facts_of("locales")
    capture = facts.captures[0]
    cell = {"t": "int", "v": "3"}
    rows = [[cell if value == "de" else value for value in row] for row in capture.to_json()["rows"]]
    odd = type(capture).from_json({**capture.to_json(), "rows": rows})
    (listed,) = derive_candidates(facts.plan, [odd]).searches
    assert {candidate.locale for candidate in listed.candidates} == {"3"}


@pytest.mark.spec("A-053", "A-113e")
def test_more_rows_than_the_limit_are_cut_and_said_to_be():
    (capture,) = facts_of("truncated").captures
    assert (len(capture.rows), capture.matched, capture.truncated, capture.limit_met) == (8, 9, True, "max_candidates")


# --- aliases and pointers -------------------------------------------------------------------------------------------


@pytest.mark.spec("A-078", "A-079", "A-080", "A-081", "A-082", "A-083", "A-084", "A-085", "A-144k", "A-154b")
@pytest.mark.parametrize("situation", RESOLVED)
def test_every_pointer_resolves_in_the_artifact_that_holds_the_thing(situation):
    facts, context = facts_of(situation), context_of(situation)
    document = document_of(facts)
    for key in ("sources", "entities", "facts", "unknowns"):
        for item in context[key]:
            thing = resolve_pointer(document, item["pointer"])
            if item["pointer"].startswith("/entity_resolution"):
                with pytest.raises(KeyError):
                    resolve_pointer(facts.case.to_json(), item["pointer"])
            if item["id"][0] == "N":
                assert thing == {"type": item["type"], "id": item["canonical_id"]}
            if item["id"][0] == "D":
                assert thing["status"] == item["status"]
            if item.get("kind") == "entity_name_lookup":
                assert {item["entity_id"], item["value"]} <= set(thing)
    for entity in context["entities"]:
        for link in entity["lookup_associations"]:
            row = resolve_pointer(document, link["row"])
            assert {entity["canonical_id"], link["name"]} <= set(row)
            decided = resolve_pointer(document, link["assessment"])
            assert (decided["status"], decided["role"], decided["reason"]) == ("selected", link["role"], link["reason"])
            capture = facts.captures[link["search_index"]]
            assert link["capture_digest"] == digest_of(capture.to_bytes())
            assert set(link["mentions"]) <= set(entity["mentions"])


@pytest.mark.spec("A-037", "A-038", "A-078", "A-086")
def test_look_up_facts_go_on_from_the_facts_of_enrichment_one_a_row():
    facts, context = facts_of("nested"), context_of("nested")
    own = len(facts.facts.facts)
    looked_up = [fact for fact in context["facts"] if fact["kind"] == "entity_name_lookup"]
    assert [fact["id"] for fact in looked_up] == [f"F{own + n:04d}" for n in (1, 2, 3)]
    assert [(fact["entity_id"], fact["value"], fact["capture"]) for fact in looked_up] == [
        ("12", "edge-proxy-canary", "V0001"),
        ("11", "edge-proxy", "V0002"),
        ("12", "edge-proxy-canary", "V0002"),
    ]


@pytest.mark.spec("A-071")
def test_equal_queries_share_a_file_and_keep_an_alias_each():
    facts = facts_of("selected")
    twice = replace(facts, captures=(facts.captures[0], facts.captures[0]))
    first, second = derive_candidates(facts.plan, twice.captures).searches
    assert first.capture == second.capture
    assert (first.alias, second.alias) == ("V0001", "V0002")


@pytest.mark.spec("A-077", "A-144f", "A-154c", "A-147d")
def test_a_cited_entity_that_is_selected_keeps_its_alias_and_gets_no_n():
    context = context_of("cited_and_selected")
    (entity,) = context["entities"]
    assert (entity["id"], entity["origin"], entity["pointer"], entity["selected"]) == (
        "E0001",
        "cited",
        "/entities/0",
        True,
    )
    assert [link["name"] for link in entity["lookup_associations"]] == ["edge-proxy"]
    facts = facts_of("selected")
    where = {mention.source for mention in facts.case.entities[0].mentions}
    named = copy.deepcopy(facts.assessment.reply)
    named["resolutions"][1]["entity"] = {"type": "service", "id": "431"}
    services = facts.captures[1].model_copy(
        update={
            "catalog": facts.captures[1].catalog.model_copy(update={"entity_type": "service"}),
            "rows": (("431", "batch-runner", "linux"),),
        }
    )
    captures = (facts.captures[0], services)
    changed = replace(facts, captures=captures, candidates=derive_candidates(facts.plan, captures))
    changed = replace(changed, assessment=derive_assessment(changed, named))
    service = v6.PROTOCOL.context(changed)["entities"][0]
    assert (service["id"], set(service["mentions"])) == ("E0001", where | {"S0002"})
    assert {"type": "host", "canonical_id": "11"}.items() <= entity.items()


@pytest.mark.spec("A-144d", "A-144g", "A-144i", "A-144j", "A-144l", "A-144m", "A-147d")
def test_selections_are_grouped_by_type_and_id_and_lose_nothing():
    context = context_of("grouped")
    (entity,) = context["entities"]
    links = entity["lookup_associations"]
    assert [(link["name"], link["capture"], link["search_index"]) for link in links] == [
        ("edge-proxy", "V0001", 0),
        ("Randvermittler (alt)", "V0002", 1),
    ]
    assert all(link["role"] and link["reason"] and link["mentions"] for link in links)
    rows = sum(len(capture.rows) for capture in facts_of("grouped").captures)
    assert sum(fact["kind"] == "entity_name_lookup" for fact in context["facts"]) == rows


@pytest.mark.spec("A-144m", "A-090", "A-147d")
def test_different_ids_and_different_types_never_merge():
    facts = facts_of("nested")
    by_id = copy.deepcopy(facts.assessment.reply)
    assert [one["entity"]["id"] for one in by_id["resolutions"]] == ["12", "11"]
    assert [entity["canonical_id"] for entity in context_of("nested")["entities"]] == ["431", "12", "11"]
    # The same number and name under another type is another entity.
    services = facts.captures[1].model_copy(
        update={"catalog": facts.captures[1].catalog.model_copy(update={"entity_type": "service"})}
    )
    captures = (facts.captures[0], services)
    by_id["resolutions"][1]["entity"] = {"type": "service", "id": "12"}
    changed = replace(facts, captures=captures, candidates=derive_candidates(facts.plan, captures))
    changed = replace(changed, assessment=derive_assessment(changed, by_id))
    found = [(one["id"], one["type"], one["canonical_id"]) for one in v6.PROTOCOL.context(changed)["entities"]]
    assert found == [("E0001", "service", "431"), ("N0001", "host", "12"), ("N0002", "service", "12")]


@pytest.mark.spec("A-087", "A-088")
@pytest.mark.parametrize("situation", RESOLVED)
def test_every_role_says_that_it_is_no_cause(situation):
    links = [link for entity in context_of(situation)["entities"] for link in entity["lookup_associations"]]
    assert all(link["role_basis"] == ROLE_BASIS == "model_contextual_selection_not_causation" for link in links)
    assert "cause" not in json.dumps(links).replace(ROLE_BASIS, "")


@pytest.mark.spec("A-041", "A-066", "A-083", "A-091")
@pytest.mark.parametrize(
    ("situation", "status"), [("ambiguous", "ambiguous"), ("truncated", "ambiguous"), ("no_match", "no_match")]
)
def test_what_stays_unresolved_is_an_unknown_within_its_scope(situation, status):
    facts, context = facts_of(situation), context_of(situation)
    (unknown,) = [one for one in context["unknowns"] if one["id"][0] == "D"]
    assert (unknown["id"], unknown["status"]) == ("D0001", status)
    assert (unknown["catalog"], unknown["term"]) == ("inventory.host", facts.captures[0].term)
    assert unknown["snapshot"] == "inventory-1"
    assert unknown["mentions"]
    assert context["entities"] == []


@pytest.mark.spec("A-067", "A-091")
def test_a_miss_says_what_it_covers_and_never_that_something_does_not_exist():
    """Fault 39."""
    (capture,) = facts_of("no_match").captures
    assert capture.rows == ()
    for part in ("inventory.host", "inventory-1", "quarantine-host"):
        assert part in capture.scope
    assert "does not exist" not in json.dumps(context_of("no_match"))


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-150g", "A-150h", "A-150k", "A-153d", "A-154a", "A-154h")
def test_a_number_or_a_name_nearby_binds_no_name():
    """Service 440 has an empty title and a `host_count` of 12, which is the number of a host with a name."""
    context = context_of("unnamed")
    assert all(entity["name_bindings"] == [] for entity in context["entities"])
    assert all(entity["required_reason"] for entity in context["entities"])
    numbers = [(fact["kind"], fact["column"], fact["value"]) for fact in context["facts"]]
    assert ("project_field", "host_count", "12") in numbers


@pytest.mark.spec("A-150l", "A-152a", "A-153a", "A-153b", "A-154a", "A-154b", "A-154g")
def test_a_typed_name_lifts_the_restriction_and_is_nothing_but_a_name():
    facts, context = facts_of("named"), context_of("named")
    (entity,) = context["entities"]
    (binding,) = entity["name_bindings"]
    assert entity["required_reason"] is None
    assert (binding["fact"], binding["name"]) == ("F0002", "Nightly billing run")
    fact = facts.facts.facts[1]
    assert (fact.kind, fact.type, fact.entity_id, fact.column) == ("project_entity_name", "service", "431", "title")
    assert binding["capture_digest"] == fact.capture
    assert binding["id_pointer"] != binding["name_pointer"]
    assert entity["lookup_associations"] == []
    assert not entity["selected"]


@pytest.mark.spec("A-154a", "A-154d")
def test_conflicting_names_all_stay_and_only_the_same_type_counts():
    facts = facts_of("named")
    name = facts.facts.facts[1]
    more = (
        name.model_copy(update={"id": "F0010", "value": "Billing"}),
        name.model_copy(update={"id": "F0011", "type": "host"}),
        name.model_copy(update={"id": "F0012", "entity_id": "432"}),
    )
    changed = replace(facts, facts=facts.facts.model_copy(update={"facts": (*facts.facts.facts, *more)}))
    (entity,) = v6.PROTOCOL.context(changed)["entities"]
    assert [binding["name"] for binding in entity["name_bindings"]] == ["Nightly billing run", "Billing"]


@pytest.mark.spec("A-150i", "A-154c")
@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_observations_and_descriptions_reach_the_model_unchanged(situation):
    facts = facts_of(situation)
    protocol = v0.PROTOCOL if situation == "plain" else v6.PROTOCOL
    shown = {
        source["id"]: source["text"] for source in message_of_context(protocol, protocol.context(facts))["sources"]
    }
    expected = {source.id: facts.case.text_of(source) for source in facts.case.sources if source.kind != "markup"}
    assert shown == {**expected, **{source.id: source.text for source in facts.facts.sources}}


@pytest.mark.spec("A-146b", "A-146c", "A-147d")
def test_a_description_promotes_nothing_and_expectations_keep_their_provenance():
    named, expected = context_of("named"), context_of("expected")
    assert any(source["kind"] == "project_description" for source in named["sources"])
    assert named["expected_behavior"] == {"completeness": "not_established", "provenance": []}
    assert [unknown["id"] for unknown in named["unknowns"]] == ["Q0001"]
    assert expected["expected_behavior"] == {"completeness": "declared", "provenance": ["tester_declaration"]}
    assert [source.get("provenance") for source in expected["sources"]] == [None, None, "tester_declaration"]


# --- what the model is shown ----------------------------------------------------------------------------------------


@pytest.mark.spec("A-030", "A-157e")
def test_the_plan_is_asked_with_known_names_and_the_assessment_with_text_and_rows():
    facts = facts_of("selected")
    asked = message_of_context(plan.PROTOCOL, plan.PROTOCOL.context(facts))
    assert asked["known_names"] == [
        {"entity": "E0001", "type": "service", "id": "431", "name": "Nightly billing run", "fact": "F0002"}
    ]
    assert asked["limits"] == {"max_searches": 4}
    assert [catalog["locale"] for catalog in asked["catalogs"]] == [False, True, False]
    judged = message_of_context(assessment.PROTOCOL, assessment.PROTOCOL.context(facts))
    assert judged["sources"] == asked["sources"]
    assert [table["rows"] for table in judged["candidates"]] == [
        [["12", "edge-proxy-canary", "linux"]],
        [["13", "batch-runner", "linux"]],
    ]


@pytest.mark.spec("A-158a", "A-158b", "A-158d")
def test_hints_say_which_names_stand_where_and_which_is_part_of_a_longer_one():
    context = assessment.PROTOCOL.context(facts_of("nested"))
    assert [(one["search_index"], one["id"], one["source_ids"]) for one in context["overlaps"]] == [
        (0, "12", ["S0001", "S0002", "S0006", "P0001"]),
        (1, "11", ["S0001", "S0002", "S0003", "S0006", "P0001"]),
        (1, "12", ["S0001", "S0002", "S0006", "P0001"]),
    ]
    assert context["specifics"] == [
        {
            "search_index": 1,
            "type": "host",
            "id": "11",
            "name": "edge-proxy",
            "inside": {"type": "host", "id": "12", "name": "edge-proxy-canary"},
        }
    ]


@pytest.mark.spec("A-158a")
def test_a_longer_name_of_the_same_identity_is_no_more_specific_thing():
    context = assessment.PROTOCOL.context(facts_of("grouped"))
    assert [hint["name"] for hint in context["overlaps"]] == ["edge-proxy", "Randvermittler (alt)"]
    assert context["specifics"] == []


def test_mentions_are_counted_in_code_points():
    facts = facts_of("hostile")
    text = facts.case.fields.body
    assert "\U0001f600" in text
    (mention,) = facts.plan.groundings[0].mentions
    assert isinstance(mention, Mention)
    assert text[mention.start : mention.end] == "batch-runner"
