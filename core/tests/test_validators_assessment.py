"""Every rule of stage `assessment` under every version: replies that pass or fail by exactly one rule, and random ones.

Before protocol 4 one schema serves all resolutions, so order and citations are found by the rules; from 4 on by the
schema, before the rules are asked.
"""

from __future__ import annotations

import copy

import pytest
from casebound.pointer import resolve_pointer
from casebound.protocols.registry import built_in_protocols
from casebound.testing.inventory_cases import facts_of
from casebound.testing.inventory_model import assessment_reply
from casebound.testing.rules import findings_of_judge, findings_of_rules, message_of_context, said
from hypothesis import given
from hypothesis import strategies as st

# Search 0 is the specific name (row 12), search 1 the broad one (rows 11 and 12).
VERSIONS = {protocol.version: protocol for protocol in built_in_protocols() if protocol.stage == "assessment"}
CONTEXTS = {version: protocol.context(facts_of("nested")) for version, protocol in VERSIONS.items()}
CONTEXT = CONTEXTS[4]
TRUNCATED = VERSIONS[4].context(facts_of("truncated"))
OF_ITS_OWN = 4  # from this version on each search has a schema of its own
CANARY, PROXY = {"type": "host", "id": "12"}, {"type": "host", "id": "11"}
ORDER, ROLE, UNREAD, STATUS = "RESOLUTION_ORDER", "UNKNOWN_ROLE", "UNREAD_SOURCE", "STATUS_ENTITY"
CANDIDATE, CUT_OFF, CAPTURE, MENTION = "UNKNOWN_CANDIDATE", "TRUNCATED_SELECTION", "CAPTURE_SOURCE", "MENTION_SOURCE"


each_version = pytest.mark.parametrize("version", VERSIONS)


def by_rules(version, answer, situation="nested"):
    protocol = VERSIONS[version]
    return said(findings_of_rules(protocol, answer, protocol.context(facts_of(situation))))


def judged(version, answer, situation="nested"):
    protocol = VERSIONS[version]
    return said(findings_of_judge(protocol, answer, protocol.context(facts_of(situation))))


def resolution(index, **facts):
    return {
        "search_index": index,
        "status": "selected",
        "entity": CANARY,
        "role": "affected_subject",
        "reason": "by its name",
        "source_ids": [f"V000{index + 1}", "S0002"],
        **facts,
    }


def undecided(index, status="ambiguous", **facts):
    return resolution(index, status=status, entity=None, **facts)


def reply(*resolutions):
    return {"resolutions": list(resolutions)}


BROAD = undecided(1)


def test_the_contexts_are_what_these_tests_believe():
    for context in CONTEXTS.values():
        assert (context["candidates"], context["sources"]) == (CONTEXT["candidates"], CONTEXT["sources"])
    told = {version: [name["fact"] for name in CONTEXTS[version]["known_names"]] for version in (1, 2, 3, 4)}
    assert told == {1: [], 2: [], 3: [], 4: ["F0002"]}
    tables = [(table["capture"], table["term"], table["rows"], table["truncated"]) for table in CONTEXT["candidates"]]
    assert tables == [
        ("V0001", "edge-proxy-canary", [["12", "edge-proxy-canary", "linux"]], False),
        ("V0002", "edge-proxy", [["11", "edge-proxy", "linux"], ["12", "edge-proxy-canary", "linux"]], False),
    ]
    assert CONTEXT["candidates"][1]["mentions"] == ["P0001", "S0001", "S0002", "S0003", "S0006"]
    assert TRUNCATED["candidates"][0]["truncated"]
    assert len(TRUNCATED["candidates"][0]["rows"]) == 8


@each_version
@pytest.mark.spec("A-031", "A-032", "A-089", "A-090", "A-142", "A-158c", "A-158f", "A-158g")
@pytest.mark.parametrize(
    "answer",
    [
        reply(resolution(0), BROAD),  # a broad ambiguity says nothing against the specific hit
        reply(resolution(0), resolution(1)),  # one identity, found by two searches
        reply(resolution(0), resolution(1, entity=PROXY)),  # two ids for one mention: two identities, never merged
        reply(resolution(0), undecided(1, "no_match")),
        reply(undecided(0), undecided(1, "no_match")),  # hints of overlap assign nothing
        reply(resolution(0, role="owner"), BROAD),
        reply(resolution(0, source_ids=["P0001", "V0001"]), BROAD),
        reply(resolution(0, source_ids=["V0002", "V0001", "E0001", "S0005", "S0001"]), BROAD),
    ],
)
def test_assessments_that_hold(version, answer):
    assert by_rules(version, answer) == []
    assert judged(version, answer) == []


@each_version
def test_a_known_name_may_be_cited_where_the_message_tells_it(version):
    answer = reply(resolution(0, source_ids=["V0001", "S0002", "F0002"]), BROAD)
    unread = [("ENTITY_RESOLUTION_UNREAD_SOURCE", "/resolutions/0/source_ids/2")]
    assert judged(version, answer) == ([] if CONTEXTS[version]["known_names"] else unread)


@each_version
@pytest.mark.spec(
    "A-031", "A-032", "A-033", "A-034", "A-148b", "A-148c", "A-148e", "A-148f", "A-158f", "A-158h", "A-158i", "A-158j"
)
@pytest.mark.parametrize(
    ("answer", "code", "path", "by_schema"),
    [
        (reply(resolution(0)), ORDER, "/resolutions", "/resolutions"),
        (reply(), ORDER, "/resolutions", "/resolutions"),
        (reply(resolution(0), BROAD, BROAD), ORDER, "/resolutions", "/resolutions"),
        (reply(BROAD, resolution(0)), ORDER, "/resolutions", None),
        (reply(resolution(0), resolution(0)), ORDER, "/resolutions", None),
        (reply(resolution(0, role="culprit"), BROAD), ROLE, "/resolutions/0/role", "/resolutions/0/role"),
        (
            reply(resolution(0, source_ids=["V0001", "S0002", "S0004"]), BROAD),
            UNREAD,
            "/resolutions/0/source_ids/2",
            None,
        ),
        (
            reply(resolution(0, source_ids=["V0001", "S0002", "V0003"]), BROAD),
            UNREAD,
            "/resolutions/0/source_ids/2",
            None,
        ),
        (
            reply(resolution(0, source_ids=["V0001", "S0002", "F0001"]), BROAD),
            UNREAD,
            "/resolutions/0/source_ids/2",
            None,
        ),
        (reply(resolution(0, entity=None), BROAD), STATUS, "/resolutions/0/entity", None),
        (reply(resolution(0), {**BROAD, "entity": PROXY}), STATUS, "/resolutions/1/entity", None),
        (reply(resolution(0, status="no_match"), BROAD), STATUS, "/resolutions/0/entity", None),
        (reply(resolution(0, entity=PROXY), BROAD), CANDIDATE, "/resolutions/0/entity", None),  # of another search
        (reply(resolution(0, entity={"type": "host", "id": "13"}), BROAD), CANDIDATE, "/resolutions/0/entity", None),
        (reply(resolution(0, entity={"type": "service", "id": "12"}), BROAD), CANDIDATE, "/resolutions/0/entity", None),
        (reply(resolution(0, entity={"type": "host", "id": "012"}), BROAD), CANDIDATE, "/resolutions/0/entity", None),
        (reply(resolution(0, source_ids=["S0002"]), BROAD), CAPTURE, "/resolutions/0/source_ids", "…"),
        (reply(resolution(0, source_ids=["V0002", "S0002"]), BROAD), CAPTURE, "/resolutions/0/source_ids", "…"),
        (
            reply(resolution(0, source_ids=["S0002"], reason="V0001 says so"), BROAD),
            CAPTURE,
            "/resolutions/0/source_ids",
            "…",
        ),
        (reply(resolution(0), undecided(1, source_ids=["S0002"])), CAPTURE, "/resolutions/1/source_ids", "…"),
        (reply(resolution(0, source_ids=["V0001"]), BROAD), MENTION, "/resolutions/0/source_ids", "…"),
        (reply(resolution(0, source_ids=["V0001", "S0003"]), BROAD), MENTION, "/resolutions/0/source_ids", "…"),
        (
            reply(resolution(0, source_ids=["V0001"], reason="S0002 names it"), BROAD),
            MENTION,
            "/resolutions/0/source_ids",
            "…",
        ),
        (reply(resolution(0), undecided(1, source_ids=["V0002", "S0005"])), MENTION, "/resolutions/1/source_ids", "…"),
    ],
)
def test_assessments_that_break_exactly_one_rule(version, answer, code, path, by_schema):
    """`…`: a schema of its own finds it at the same place, before the rules are asked."""
    assert by_rules(version, answer) == [(f"ENTITY_RESOLUTION_{code}", path)]
    found = judged(version, answer)
    if version < OF_ITS_OWN and code != ROLE:
        assert found == [(f"ENTITY_RESOLUTION_{code}", path)]
    elif by_schema is None and code == ORDER:
        assert {code for code, _ in found} == {"LLM_OUTPUT_SCHEMA"}  # each place has an index of its own
    elif by_schema is None:
        assert found == [(f"ENTITY_RESOLUTION_{code}", path)]
    else:
        assert found == [("LLM_OUTPUT_SCHEMA", path if by_schema == "…" else by_schema)]


@each_version
@pytest.mark.spec("A-035", "A-113e", "A-158i")
def test_nothing_is_selected_from_a_search_that_was_cut_off(version):
    entity = {"type": "host", "id": TRUNCATED["candidates"][0]["rows"][0][0]}
    answer = reply(resolution(0, entity=entity))
    expected = [("ENTITY_RESOLUTION_TRUNCATED_SELECTION", "/resolutions/0/status")]
    assert by_rules(version, answer, "truncated") == expected
    assert judged(version, answer, "truncated") == expected
    for status in ("ambiguous", "no_match"):
        assert judged(version, reply(undecided(0, status)), "truncated") == []


@each_version
@pytest.mark.spec("A-091")
def test_an_empty_search_has_nothing_to_select(version):
    assert judged(version, reply(undecided(0, "no_match")), "no_match") == []
    expected = [("ENTITY_RESOLUTION_UNKNOWN_CANDIDATE", "/resolutions/0/entity")]
    assert judged(version, reply(resolution(0)), "no_match") == expected


@each_version
@pytest.mark.parametrize("status", ["Selected", "unsure", None, ""])
@pytest.mark.spec("A-031")
def test_there_are_three_answers(version, status):
    assert judged(version, reply(undecided(0, status), BROAD)) == [("LLM_OUTPUT_SCHEMA", "/resolutions/0/status")]


@each_version
@pytest.mark.parametrize("key", [*resolution(0)])
@pytest.mark.spec("A-148f")
def test_no_key_of_a_resolution_may_be_missing(version, key):
    broken = resolution(0)
    del broken[key]
    assert ("LLM_OUTPUT_SCHEMA", "/resolutions/0") in judged(version, reply(broken, BROAD))


@each_version
@pytest.mark.parametrize("extra", [{"cause": "x"}, {"fix": "x"}, {"confidence": 1}, {"entities": []}])
@pytest.mark.spec("A-006")
def test_the_schema_has_no_room_for_causes_and_fixes(version, extra):
    assert judged(version, reply(resolution(0, **extra), BROAD)) == [("LLM_OUTPUT_SCHEMA", "/resolutions/0")]


@each_version
@pytest.mark.spec("A-148a", "A-148b", "A-148c", "A-148d", "A-158j")
def test_the_feedback_on_a_missing_capture_lists_all_that_is_needed(version):
    protocol, context = VERSIONS[version], CONTEXTS[version]
    answer = reply(resolution(0, source_ids=["S0002"]), undecided(1, source_ids=["S0001"], reason="V0002 is empty"))
    find = findings_of_judge if version < OF_ITS_OWN else findings_of_rules  # what the next attempt is told of
    errors = protocol.feedback(find(protocol, answer, context), context)["errors"]
    assert [(error["missing_capture"], error["search_index"], error["path"]) for error in errors] == [
        ("V0001", 0, "/resolutions/0/source_ids"),
        ("V0002", 1, "/resolutions/1/source_ids"),
    ]
    assert errors[0]["mentions"] == ["P0001", "S0001", "S0002", "S0006"]
    assert errors[0]["permitted"] == ["V0001"]
    for error in errors:
        assert error["missing_capture"] not in resolve_pointer(answer, error["path"])


@pytest.mark.spec("A-158h")
def test_what_the_schema_finds_missing_is_told_with_what_is_permitted():
    answer = reply(resolution(0, source_ids=["S0003"]), BROAD)
    errors = VERSIONS[4].feedback(findings_of_judge(VERSIONS[4], answer, CONTEXT), CONTEXT)["errors"]
    assert [(error["path"], error["permitted"]) for error in errors] == [
        ("/resolutions/0/source_ids", ["V0001"]),
        ("/resolutions/0/source_ids", ["P0001", "S0001", "S0002", "S0006"]),
    ]


@each_version
def test_findings_say_what_is_permitted(version):
    answer = reply(
        resolution(0, entity=PROXY, role="x", source_ids=["V0009"]),
        resolution(1, entity=None),
    )
    found = findings_of_rules(VERSIONS[version], answer, CONTEXTS[version])
    permitted = {finding.code: finding.allowed for finding in found}
    assert permitted["ENTITY_RESOLUTION_UNKNOWN_CANDIDATE"] == ("host 12",)
    assert permitted["ENTITY_RESOLUTION_STATUS_ENTITY"] == ("host 11", "host 12")
    assert permitted["ENTITY_RESOLUTION_UNREAD_SOURCE"] == ("V0001", "P0001", "S0001", "S0002", "S0006")
    assert permitted["ENTITY_RESOLUTION_MENTION_SOURCE"] == ("P0001", "S0001", "S0002", "S0006")
    assert all(permitted.values())


# --- random replies -------------------------------------------------------------------------------------------------


@st.composite
def valid_assessments(draw):
    resolutions = []
    for table in CONTEXT["candidates"]:
        status = draw(st.sampled_from(["selected", "ambiguous", "no_match"]))
        entity = {"type": table["entity_type"], "id": draw(st.sampled_from(table["rows"]))[0]}
        more = draw(st.lists(st.sampled_from(["S0001", "S0005", "P0001", "V0001", "V0002", "E0001"]), max_size=2))
        cited = [table["capture"], draw(st.sampled_from(table["mentions"])), *more]
        resolutions.append(
            resolution(
                table["search_index"],
                status=status,
                entity=entity if status == "selected" else None,
                role=draw(st.sampled_from(CONTEXT["roles"])),
                reason=draw(st.text(st.characters(codec="utf-8"), min_size=1, max_size=10)),
                source_ids=draw(st.permutations(cited)),
            )
        )
    return reply(*resolutions)


@each_version
@given(answer=valid_assessments())
def test_random_assessments_that_hold_are_accepted(version, answer):
    assert judged(version, answer) == []


def _without(names):
    return lambda one: one.update(source_ids=[name for name in one["source_ids"] if name not in names] or ["S0005"])


MUTATIONS = {
    ROLE: lambda one: one.update(role="culprit"),
    UNREAD: lambda one: one["source_ids"].append("S0004"),
    STATUS: lambda one: one.update(entity=None if one["entity"] else CANARY),
    CANDIDATE: lambda one: one.update(status="selected", entity={"type": "host", "id": "21"}),
    CAPTURE: lambda one: _without({f"V000{one['search_index'] + 1}"})(one),
    MENTION: _without({"S0001", "S0002", "S0003", "S0006", "P0001"}),
    ORDER: lambda one: one.update(search_index=1 - one["search_index"]),
}


@each_version
@given(answer=valid_assessments(), index=st.integers(0, 1), code=st.sampled_from(sorted(MUTATIONS)))
def test_random_assessments_with_one_mutation_are_refused_for_it(version, answer, index, code):
    mutated = copy.deepcopy(answer)
    MUTATIONS[code](mutated["resolutions"][index])
    assert f"ENTITY_RESOLUTION_{code}" in {found for found, _ in by_rules(version, mutated)}
    assert judged(version, mutated)


@each_version
@pytest.mark.parametrize(
    "situation", ["selected", "nested", "locales", "grouped", "ambiguous", "truncated", "no_match"]
)
def test_the_model_of_the_tests_answers_validly(version, situation):
    protocol = VERSIONS[version]
    message = message_of_context(protocol, protocol.context(facts_of(situation)))
    assert judged(version, assessment_reply(message), situation) == []
