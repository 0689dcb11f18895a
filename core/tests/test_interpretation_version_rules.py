"""The rules of interpretation protocols 1 to 6: what one version refuses and another accepts, what is told of it, and
random replies."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.protocols.registry import built_in_protocols
from casebound.resolution.assess import derive_assessment
from casebound.testing.inventory_cases import SITUATIONS, facts_of
from casebound.testing.inventory_model import interpretation_reply
from casebound.testing.rules import findings_of_judge, findings_of_rules, message_of_context, said
from hypothesis import given, settings
from hypothesis import strategies as st

PROTOCOLS = {one.version: one for one in built_in_protocols() if one.stage == "interpretation" and one.version}
SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
VERSIONS = sorted(PROTOCOLS)
RESOLVED = sorted(set(SITUATIONS) - {"plain"})
CONTEXTS = {(version, name): PROTOCOLS[version].context(facts_of(name)) for version in VERSIONS for name in RESOLVED}

NOT_RETAINED, PROVENANCE, MISSING = "ENTITY_NOT_RETAINED", "ENTITY_PROVENANCE", "ENTITY_MISSING"
ENTITIES, SECOND = "/relevant_entities", "/relevant_entities/1/source_ids"
FIRST_REASON, FIRST_SOURCES = "/relevant_entities/0/reason", "/relevant_entities/0/source_ids"


def statement(*source_ids, **labels):
    return {"text": "it is so", "source_ids": list(source_ids), **labels}


def entity(name, *source_ids, reason="it matters"):
    return {"entity_id": name, "reason": reason, "source_ids": list(source_ids)}


def described(*source_ids):
    return statement(*source_ids, basis="local_description", verification="not_independently_verified")


def provisional(*source_ids):
    return statement(*source_ids, basis="local_description", status="provisional")


def valid(version, situation, **changes):
    """Return a reply that holds, with some fields replaced."""
    context = CONTEXTS[version, situation]
    return {**interpretation_reply(message_of_context(PROTOCOLS[version], context)), **changes}


def found_in(version, situation, answer):
    return said(findings_of_rules(PROTOCOLS[version], answer, CONTEXTS[version, situation]))


def named(code, path):
    return [(f"INTERPRETATION_{code}", path)]


# --- identity and mention -------------------------------------------------------------------------------------------

# In `selected`, N0001 was found in V0001 (fact F0004), and N0002 in V0002 (F0005), where only S0002 mentions it.
KEPT = entity("N0001", "S0001", "N0001")


@pytest.mark.spec("A-134", "A-135", "A-136", "A-137", "A-138")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("source_ids", "first", "later"),
    [
        (["S0002", "N0002"], None, None),
        (["S0002", "N0002", "F0005", "F0004"], None, None),
        (["S0002", "F0005"], (NOT_RETAINED, SECOND), None),  # a fact of its capture instead of its alias
        (["F0005"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),
        (["N0002"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),
        (["N0002", "S0003"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),  # no mention of it
        (["S0002"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),
        (["S0002", "F0004"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),  # the fact of another capture
        (["S0002", "F0001"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),  # a fact of enrichment
        (["S0002", "N0001"], (NOT_RETAINED, SECOND), (PROVENANCE, SECOND)),  # the alias of another entity
        (None, (NOT_RETAINED, ENTITIES), (MISSING, ENTITIES)),
    ],
)
def test_what_shows_a_selected_identity(version, source_ids, first, later):
    entities = [KEPT, *([] if source_ids is None else [entity("N0002", *source_ids)])]
    answer = valid(version, "selected", relevant_entities=entities)
    broken = first if version == 1 else later
    expected = named(*broken) if broken else []
    assert found_in(version, "selected", answer) == expected
    assert said(findings_of_judge(PROTOCOLS[version], answer, CONTEXTS[version, "selected"])) == expected


@pytest.mark.spec("A-133")
def test_version_1_knows_no_capture_that_could_be_cited():
    answer = valid(1, "selected", summary=statement("V0001"))
    assert found_in(1, "selected", answer) == named("UNKNOWN_SOURCE", "/summary/source_ids/0")
    assert found_in(2, "selected", answer) == []


def twice(first, second):
    """Return the two entities of `grouped` before version 3, each with a mention and what shows it."""
    return [entity("N0001", "S0002", first), entity("N0002", "S0002", second)]


def once(evidence):
    """Return the one entity of `grouped` from version 3 on, with a mention and what shows it."""
    return [entity("N0001", "S0002", evidence)]


# F0001 and F0003 are the rows of the two captures; before grouping each belongs to its own selection only.
GROUPED = [
    ((1, 2), twice("N0001", "N0002"), None, ()),
    ((1,), twice("F0001", "F0003"), NOT_RETAINED, (0, 1)),
    ((2,), twice("F0001", "F0003"), None, ()),
    ((1,), twice("F0003", "N0002"), NOT_RETAINED, (0,)),
    ((2,), twice("F0003", "N0002"), PROVENANCE, (0,)),
    ((1,), once("N0001"), NOT_RETAINED, (None,)),
    ((2,), once("N0001"), MISSING, (None,)),
    ((3, 4, 5, 6), once("N0001"), None, ()),
    ((3, 4, 5, 6), once("F0001"), None, ()),
    ((3, 4, 5, 6), once("F0003"), None, ()),
    ((3, 4, 5, 6), once("F0002"), PROVENANCE, (0,)),  # another row of the same capture
]


@pytest.mark.spec("A-135", "A-137", "A-144n")
@pytest.mark.parametrize(
    ("version", "entities", "code", "places"),
    [(version, *row) for versions, *row in GROUPED for version in versions],
)
def test_what_shows_an_identity_that_two_searches_selected(version, entities, code, places):
    answer = valid(version, "grouped", relevant_entities=entities)
    assert found_in(version, "grouped", answer) == [
        (f"INTERPRETATION_{code}", ENTITIES if place is None else f"/relevant_entities/{place}/source_ids")
        for place in places
    ]


@pytest.mark.spec("A-142")
@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_a_broad_search_that_stays_open_takes_nothing_from_a_specific_subject(version):
    facts = facts_of("nested")
    answered = copy.deepcopy(facts.assessment.reply)
    answered["resolutions"][1].update(status="ambiguous", entity=None)
    context = PROTOCOLS[version].context(replace(facts, assessment=derive_assessment(facts, answered)))
    answer = interpretation_reply(message_of_context(PROTOCOLS[version], context))
    assert ["D0001"] in [one["source_ids"] for one in answer["unknowns"]]
    assert "N0001" in [one["entity_id"] for one in answer["relevant_entities"]]
    assert said(findings_of_judge(PROTOCOLS[version], answer, context)) == []


# --- contracts, kinds, names ----------------------------------------------------------------------------------------


@pytest.mark.spec("A-147a")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_reply_of_the_other_contract_is_refused(version):
    other = valid(2 if version > 2 else 3, "expected")
    assert found_in(2 if version > 2 else 3, "expected", other) == []
    found = findings_of_judge(PROTOCOLS[version], other, CONTEXTS[version, "expected"])
    assert said(found) == [("LLM_OUTPUT_SCHEMA", "")]


@pytest.mark.spec("A-141", "A-145b", "A-145f", "A-145g", "A-146a", "A-146d", "A-146e", "A-147d")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("since", "changes", "code", "path"),
    [
        (1, {"summary": statement("S0099")}, "UNKNOWN_SOURCE", "/summary/source_ids/0"),
        (1, {"observed_behavior": [statement("F0004")]}, "OBSERVATION_SOURCE", "/observed_behavior/0/source_ids"),
        (1, {"observed_behavior": [statement("P0001")]}, "OBSERVATION_SOURCE", "/observed_behavior/0/source_ids"),
        (1, {"expected_behavior": [statement("P0001")]}, "EXPECTATION_SOURCE", "/expected_behavior/0/source_ids"),
        (1, {"behavior_gap": statement("S0002", "P0001")}, "EXPECTATION_SOURCE", "/behavior_gap/source_ids"),
        (1, {"first_known_divergence": statement("S0005")}, "EXPECTATION_SOURCE", "/first_known_divergence/source_ids"),
        (3, {"described_behavior": [], "provisional_behavior_gap": None}, None, None),
        (3, {"provisional_behavior_gap": None}, None, None),
        (
            3,
            {"described_behavior": [described("P0001"), described("S0002")]},
            "DESCRIPTION_SOURCE",
            "/described_behavior/1/source_ids",
        ),
        (3, {"described_behavior": []}, "PROVISIONAL_GAP", "/provisional_behavior_gap/source_ids"),
        (
            3,
            {"provisional_behavior_gap": provisional("P0001")},
            "PROVISIONAL_GAP",
            "/provisional_behavior_gap/source_ids",
        ),
        (
            3,
            {"provisional_behavior_gap": provisional("S0002")},
            "PROVISIONAL_GAP",
            "/provisional_behavior_gap/source_ids",
        ),
    ],
)
def test_no_kind_stands_for_another(version, since, changes, code, path):
    if version < since:
        assert not changes.keys() & valid(version, "selected").keys()  # there is no such field yet
        return
    expected = named(code, path) if code else []
    assert found_in(version, "selected", valid(version, "selected", **changes)) == expected


@pytest.mark.spec("A-150d", "A-150e", "A-150f", "A-150j", "A-151b")
@pytest.mark.parametrize("version", VERSIONS)
def test_from_version_4_on_a_reason_without_a_name_is_fixed_by_schema_and_rule(version):
    answer = valid(version, "unnamed")
    answer["relevant_entities"][0]["reason"] = "the scheduler"
    answer["summary"]["text"] = "Service 440 is the scheduler."  # the prompt's affair, and no program's
    context, protocol = CONTEXTS[version, "unnamed"], PROTOCOLS[version]
    broken = version >= 4
    assert found_in(version, "unnamed", answer) == (named("UNBOUND_REASON", FIRST_REASON) if broken else [])
    judged = findings_of_judge(protocol, answer, context)
    assert said(judged) == ([("LLM_OUTPUT_SCHEMA", FIRST_REASON)] if broken else [])
    for found in (findings_of_rules(protocol, answer, context), judged):
        permitted = [error["permitted"] for error in protocol.feedback(found, context)["errors"]]
        assert permitted == ([["Entity of type service with id 440."]] if broken else [])
    answer = valid(version, "expected")
    answer["relevant_entities"][0]["reason"] = "the batch machine, which a search named"
    assert said(findings_of_judge(protocol, answer, CONTEXTS[version, "expected"])) == []


@pytest.mark.spec("A-154e", "A-154f", "A-154h")
@pytest.mark.parametrize("version", VERSIONS)
def test_from_version_5_on_a_bound_name_is_cited_by_schema_and_rule(version):
    answer = valid(version, "named")
    answer["relevant_entities"][0]["source_ids"] = ["S0001", "E0001", "F0001"]
    context, protocol = CONTEXTS[version, "named"], PROTOCOLS[version]
    broken = version >= 5
    assert found_in(version, "named", answer) == (named("NAME_BINDING", FIRST_SOURCES) if broken else [])
    judged = findings_of_judge(protocol, answer, context)
    assert said(judged) == ([("LLM_OUTPUT_SCHEMA", FIRST_SOURCES)] if broken else [])
    for found in (findings_of_rules(protocol, answer, context), judged):
        permitted = [error["permitted"] for error in protocol.feedback(found, context)["errors"]]
        assert permitted == ([["F0002"]] if broken else [])


@pytest.mark.spec("A-041", "A-083")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("situation", ["ambiguous", "truncated", "no_match"])
def test_every_version_keeps_what_stayed_open(version, situation):
    answer = valid(version, situation, unknowns=[statement("Q0001")])
    assert found_in(version, situation, answer) == named("IDENTITY_MISSING", "/unknowns")


# --- feedback -------------------------------------------------------------------------------------------------------

OBSERVATION = {
    "code": "INTERPRETATION_OBSERVATION_SOURCE",
    "path": "/observed_behavior/0/source_ids",
    "message": "F0004 can not support this: observed behaviour rests on report sources",
    "permitted": ["S0001", "S0002", "S0003", "S0005", "S0006"],
}
INSTRUCTION = "Your last reply was refused for the errors above. Return one complete corrected reply."
# N0002 is missing, and N0001 cites the mention and the fact of the other.
BOTH_FAULTS = {"observed_behavior": [statement("F0004")], "relevant_entities": [entity("N0001", "S0005", "F0005")]}


def feedback(version, **changes):
    context, protocol = CONTEXTS[version, "selected"], PROTOCOLS[version]
    return protocol.feedback(findings_of_judge(protocol, valid(version, "selected", **changes), context), context)


@pytest.mark.spec("A-133")
def test_version_1_tells_wrong_kinds_of_sources_first_and_entities_once_those_are_right():
    assert feedback(1, **BOTH_FAULTS) == {"errors": [OBSERVATION], "instruction": INSTRUCTION}
    mentions = ["P0001", "S0001", "S0002", "S0006"]
    assert feedback(1, relevant_entities=BOTH_FAULTS["relevant_entities"]) == {
        "errors": [
            {
                "code": "INTERPRETATION_ENTITY_NOT_RETAINED",
                "path": "/relevant_entities/0/source_ids",
                "message": "the selected entity N0001 does not cite both its own id and one of its mentions",
                "permitted": ["N0001", *mentions],
                "entity_id": "N0001",
                "mentions": mentions,
            },
            {
                "code": "INTERPRETATION_ENTITY_NOT_RETAINED",
                "path": "/relevant_entities",
                "message": "the selected entity N0002 is missing",
                "permitted": ["N0002", "S0002"],
                "entity_id": "N0002",
                "mentions": ["S0002"],
            },
        ],
        "instruction": INSTRUCTION,
    }


@pytest.mark.spec("A-133")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"summary": statement("S0099")}, "INTERPRETATION_UNKNOWN_SOURCE"),
        ({"expected_behavior": [statement("P0001")]}, "INTERPRETATION_EXPECTATION_SOURCE"),
    ],
)
def test_version_1_holds_every_kind_of_source_before_entities(changes, code):
    told = feedback(1, relevant_entities=[], **changes)["errors"]
    assert {error["code"] for error in told} == {code}


@pytest.mark.parametrize(
    ("source_ids", "permitted"),
    [(["S0002"], ["N0002"]), (["N0002"], ["S0002"]), (["F0005"], ["N0002", "S0002"])],
)
def test_version_1_permits_what_is_lacking(source_ids, permitted):
    (error,) = feedback(1, relevant_entities=[KEPT, entity("N0002", *source_ids)])["errors"]
    assert error["permitted"] == permitted


@pytest.mark.spec("A-138", "A-139", "A-140")
@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_later_versions_tell_every_error_in_one_round(version):
    mentions = ["P0001", "S0001", "S0002", "S0006"]
    provenance = {
        "code": "INTERPRETATION_ENTITY_PROVENANCE",
        "path": "/relevant_entities/0/source_ids",
        "entity_id": "N0001",
    }
    assert feedback(version, **BOTH_FAULTS) == {
        "errors": [
            OBSERVATION,
            {
                "code": "INTERPRETATION_ENTITY_MISSING",
                "path": "/relevant_entities",
                "message": "the selected entity N0002 is missing",
                "permitted": ["N0002"],
                "entity_id": "N0002",
                "mentions": ["S0002"],
                "evidence": ["N0002", "F0005"],
            },
            {
                **provenance,
                "message": "no mention of N0001 is cited",
                "permitted": mentions,
                "missing": "mention",
            },
            {
                **provenance,
                "message": "no evidence of N0001 is cited",
                "permitted": ["N0001", "F0004"],
                "missing": "evidence",
            },
        ],
        "instruction": INSTRUCTION,
    }


# --- random replies -------------------------------------------------------------------------------------------------


def kinds_in(context):
    """Return the sources of a context as reports, formal expectations and descriptions."""
    kinds = {source["id"]: source["kind"] for source in context["sources"]}
    formal = [name for name, kind in kinds.items() if kind == "expectation"]
    local = [name for name, kind in kinds.items() if kind == "project_description"]
    return [name for name in kinds if name not in formal + local], formal, local


def evidence_in(version, context, one):
    captures = {link.get("capture") for link in one["lookup_associations"]}
    rows = [
        fact["id"]
        for fact in context["facts"]
        if fact["kind"] == "entity_name_lookup"
        and fact.get("capture") in captures
        and (fact["type"], fact["entity_id"]) == (one["type"], one["canonical_id"])
    ]
    return [one["id"], *(rows if version > 1 else [])]


class Draw:
    """Draws the parts of a valid reply to one context."""

    def __init__(self, draw, version, situation):
        self.draw, self.version, self.context = draw, version, CONTEXTS[version, situation]
        self.reported, self.formal, self.local = kinds_in(self.context)
        listed = [one["id"] for key in ("sources", "entities", "facts", "unknowns") for one in self.context[key]]
        self.known = [*listed, *self.context["captures"]]

    def some(self, names, least=1):
        return self.draw(st.lists(st.sampled_from(names), min_size=least, max_size=3)) if names else []

    def many(self, names):
        return [statement(*self.some(names)) for _ in range(self.draw(st.integers(0, 2)))] if names else []

    def maybe(self, value):
        return value if self.draw(st.booleans()) else None

    def entity(self, one):
        mention = self.draw(st.sampled_from(one["mentions"]))
        evidence = self.draw(st.sampled_from(evidence_in(self.version, self.context, one)))
        bound = [self.draw(st.sampled_from(one["name_bindings"]))["fact"]] if one.get("name_bindings") else []
        reason = one.get("required_reason") or self.draw(st.sampled_from(["it matters", "it is named"]))
        return entity(one["id"], mention, evidence, *bound, *self.some(self.known, 0), reason=reason)

    def reply(self):
        kept = [one for one in self.context["entities"] if one["selected"] or self.draw(st.booleans())]
        open_ = [statement(one["id"]) for one in self.context["unknowns"] if one["id"][0] == "D"]
        gap = statement(*self.some(self.formal), *self.some(self.reported, 0)) if self.formal else None
        answer = {
            "summary": statement(*self.some(self.known)),
            "observed_behavior": self.many(self.reported),
            "expected_behavior": self.many(self.formal),
            "behavior_gap": self.maybe(gap),
            "first_known_divergence": self.maybe(copy.deepcopy(gap)),
            "relevant_entities": [self.entity(one) for one in self.draw(st.permutations(kept))],
            "unknowns": [*open_, *self.many(self.known)],
        }
        if self.version >= 3:
            told = self.some(self.local)
            both = provisional(told[0], *self.some(self.reported)) if told else None
            answer |= {
                "described_behavior": [described(name) for name in told],
                "provisional_behavior_gap": self.maybe(both),
            }
        return answer


@st.composite
def valid_replies(draw):
    version, situation = draw(st.sampled_from(VERSIONS)), draw(st.sampled_from(RESOLVED))
    return version, situation, Draw(draw, version, situation).reply()


@given(valid_replies())
def test_random_replies_that_hold_are_accepted_by_every_version(drawn):
    version, situation, answer = drawn
    assert said(findings_of_judge(PROTOCOLS[version], answer, CONTEXTS[version, situation])) == []


def given_for(answer, wanted):
    """Return the first entity of the reply that `wanted` names, None where there is none."""
    return next((one for one in answer["relevant_entities"] if one["entity_id"] in wanted), None)


def without(one, names):
    """Take citations away from an entity of the reply; one that is never permitted there takes their place."""
    one["source_ids"] = [name for name in one["source_ids"] if name not in names] or ["Q0001"]


def drop_selected(answer, context):
    answer["relevant_entities"].remove(given_for(answer, [one["id"] for one in context["entities"] if one["selected"]]))


def drop_evidence(answer, context, version):
    chosen = {one["id"]: one for one in context["entities"] if one["selected"]}
    given_one = given_for(answer, chosen)
    without(given_one, evidence_in(version, context, chosen[given_one["entity_id"]]))


def drop_mentions(answer, context):
    chosen = {one["id"]: one for one in context["entities"] if one["selected"]}
    given_one = given_for(answer, chosen)
    without(given_one, chosen[given_one["entity_id"]]["mentions"])


def drop_binding(answer, context):
    bound = {one["id"]: [each["fact"] for each in one["name_bindings"]] for one in context["entities"]}
    given_one = given_for(answer, [name for name, facts in bound.items() if facts])
    without(given_one, bound[given_one["entity_id"]])


def change_reason(answer, context):
    given_for(answer, [one["id"] for one in context["entities"] if one["required_reason"]])["reason"] += " "


def drop_open(answer, context):
    answer["unknowns"] = [one for one in answer["unknowns"] if "D0001" not in one["source_ids"]]


# Each breaks one thing: the code, and a change of a reply to a context.
MUTATIONS = {
    "a source that does not exist": ("UNKNOWN_SOURCE", lambda a, c, v: a["summary"]["source_ids"].append("S0099")),
    "an open question as observation": (
        "OBSERVATION_SOURCE",
        lambda a, c, v: a["observed_behavior"].append(statement("Q0001")),
    ),
    "an observation as expectation": (
        "EXPECTATION_SOURCE",
        lambda a, c, v: a["expected_behavior"].append(statement("S0001")),
    ),
    "a gap without an expectation": ("EXPECTATION_SOURCE", lambda a, c, v: a.update(behavior_gap=statement("S0001"))),
    "an observation as description": (
        "DESCRIPTION_SOURCE",
        lambda a, c, v: a["described_behavior"].append(described("S0001")),
    ),
    "a gap with one side": (
        "PROVISIONAL_GAP",
        lambda a, c, v: a.update(provisional_behavior_gap=provisional("S0001")),
    ),
    "a strange entity": ("UNKNOWN_ENTITY", lambda a, c, v: a["relevant_entities"].append(entity("N0099", "S0001"))),
    "a selected entity left out": (None, lambda a, c, v: drop_selected(a, c)),
    "identity not shown": (None, drop_evidence),
    "no mention": (None, lambda a, c, v: drop_mentions(a, c)),
    "a bound name not cited": ("NAME_BINDING", lambda a, c, v: drop_binding(a, c)),
    "a reason of its own": ("UNBOUND_REASON", lambda a, c, v: change_reason(a, c)),
    "an open identity left out": ("IDENTITY_MISSING", lambda a, c, v: drop_open(a, c)),
}
# Where a mutation finds what it breaks.
PLACES = {
    "an open question as observation": "selected",
    "a selected entity left out": "selected",
    "identity not shown": "grouped",
    "no mention": "grouped",
    "a bound name not cited": "selected",
    "a reason of its own": "unnamed",
    "an open identity left out": "ambiguous",
}
RETAINING = {"a selected entity left out": MISSING, "identity not shown": PROVENANCE, "no mention": PROVENANCE}


def code_of(name, version):
    code = MUTATIONS[name][0] or (NOT_RETAINED if version == 1 else RETAINING[name])
    return f"INTERPRETATION_{code}"


CASES = [
    (version, name)
    for version in VERSIONS
    for name in sorted(MUTATIONS)
    if code_of(name, version) in {rule.code for rule in PROTOCOLS[version].rules}
]


@pytest.mark.parametrize(("version", "name"), CASES)
@settings(max_examples=25)  # of each of the many pairs
@given(st.data())
def test_random_replies_with_one_mutation_are_refused_for_exactly_it(version, name, data):
    situation = PLACES.get(name) or data.draw(st.sampled_from(RESOLVED))
    context = CONTEXTS[version, situation]
    answer = Draw(data.draw, version, situation).reply()
    if name in ("a bound name not cited", "a reason of its own") and not answer["relevant_entities"]:
        answer = valid(version, situation)
    if name == "a bound name not cited" and not given_for(answer, ["E0001"]):
        answer = valid(version, situation)
    MUTATIONS[name][1](answer, context, version)
    found = said(findings_of_rules(PROTOCOLS[version], answer, context))
    assert {code for code, _ in found} == {code_of(name, version)}
    assert findings_of_judge(PROTOCOLS[version], answer, context)


def test_every_rule_of_every_version_is_broken_by_a_mutation():
    broken = {(version, code_of(name, version)) for version, name in CASES}
    assert broken == {(version, rule.code) for version, one in PROTOCOLS.items() for rule in one.rules}
