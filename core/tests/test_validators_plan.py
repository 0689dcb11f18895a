"""Every rule of stage `plan` under every version: replies that pass or fail by exactly one rule, and random ones."""

from __future__ import annotations

import copy
import unicodedata

import pytest
from casebound.protocols.registry import built_in_protocols
from casebound.testing.inventory_cases import facts_of
from casebound.testing.inventory_model import plan_reply
from casebound.testing.rules import findings_of_judge, findings_of_rules, message_of_context, said
from hypothesis import given
from hypothesis import strategies as st

VERSIONS = {protocol.version: protocol for protocol in built_in_protocols() if protocol.stage == "plan"}
CONTEXTS = {version: protocol.context(facts_of("selected")) for version, protocol in VERSIONS.items()}
CONTEXT = CONTEXTS[4]
TEXTS = {source["id"]: source["text"] for source in CONTEXT["sources"]}
TITLE, OBSERVED, OTHERS, STEP, DESCRIBED = "S0001", "S0002", "S0003", "S0006", "P0001"
MARKUP = "S0004"  # the comment of the report, which no model is shown


each_version = pytest.mark.parametrize("version", VERSIONS)


def by_rules(version, reply, **changes):
    return said(findings_of_rules(VERSIONS[version], reply, {**CONTEXTS[version], **changes}))


def judged(version, reply, **changes):
    return said(findings_of_judge(VERSIONS[version], reply, {**CONTEXTS[version], **changes}))


def search(**facts):
    return {
        "catalog": "inventory.host",
        "term": "edge-proxy-canary",
        "role": "affected_subject",
        "source_ids": [OBSERVED],
        "reason": "it is named",
        **facts,
    }


def plan(*searches):
    return {"searches": list(searches)}


def test_the_contexts_are_what_these_tests_believe():
    assert VERSIONS.keys() >= {1, 2, 3, 4}
    for context in CONTEXTS.values():
        assert {source["id"]: source["text"] for source in context["sources"]} == TEXTS
    assert list(TEXTS) == [TITLE, OBSERVED, OTHERS, "S0005", STEP, DESCRIBED]
    assert [source.kind for source in facts_of("selected").case.sources if source.id == MARKUP] == ["markup"]


@each_version
@pytest.mark.spec("A-010", "A-011", "A-012", "A-013", "A-113d", "A-157f", "A-157g")
@pytest.mark.parametrize(
    "reply",
    [
        plan(),  # nothing to look up; what is known by name needs no search either
        plan(search()),
        plan(search(source_ids=[DESCRIBED])),
        plan(search(source_ids=["S0005", OBSERVED])),  # one of two sources holds it, the other is context
        plan(search(source_ids=[OBSERVED, OBSERVED])),
        plan(search(term="proxy-can")),  # a piece of a word stands there all the same
        plan(search(term="The")),
        plan(search(), search(role="context"), search(catalog="inventory.host_locale"), search(term="edge-proxy")),
        plan(search(role="owner")),  # a role of the plugin
    ],
)
def test_plans_that_hold(version, reply):
    assert by_rules(version, reply) == []
    assert judged(version, reply) == []


LIMIT, CATALOG, ROLE = "SEARCH_LIMIT", "UNKNOWN_CATALOG", "UNKNOWN_ROLE"
UNREAD, UNGROUNDED, TWICE = "UNREAD_SOURCE", "UNGROUNDED_TERM", "DUPLICATE_SEARCH"
FIVE = [search(term=term) for term in ("edge-proxy-canary", "edge", "proxy", "canary", "batch-runner")]


@each_version
@pytest.mark.spec("A-011", "A-012", "A-013", "A-014", "A-015", "A-052", "A-113d", "A-113e", "A-157g", "A-157h")
@pytest.mark.parametrize(
    ("reply", "code", "path", "by_schema"),
    [
        (plan(*FIVE), LIMIT, "/searches", None),
        (plan(search(catalog="inventory.user")), CATALOG, "/searches/0/catalog", "/searches/0/catalog"),
        (plan(search(catalog="hosts")), CATALOG, "/searches/0/catalog", "/searches/0/catalog"),
        (plan(search(), search(role="culprit")), ROLE, "/searches/1/role", "/searches/1/role"),
        (plan(search(source_ids=[OBSERVED, "S0099"])), UNREAD, "/searches/0/source_ids/1", None),
        (plan(search(source_ids=[MARKUP, OBSERVED])), UNREAD, "/searches/0/source_ids/0", None),
        (plan(search(source_ids=[OBSERVED, "E0001"])), UNREAD, "/searches/0/source_ids/1", None),
        (plan(search(source_ids=[OBSERVED, "F0002"])), UNREAD, "/searches/0/source_ids/1", None),
        (plan(search(term="edge-proxy-canaries")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(term="Edge-proxy-canary")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(term="edge-proxy-canary  stopped")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(term="edge\u2010proxy\u2010canary")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(term="edge-proxy-machine-canary")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(term="edge.proxy")), UNGROUNDED, "/searches/0/term", None),  # no expression
        (plan(search(term="edge%canary")), UNGROUNDED, "/searches/0/term", None),  # no wildcard
        (plan(search(term="quarantine")), UNGROUNDED, "/searches/0/term", None),
        (plan(search(source_ids=["S0005"])), UNGROUNDED, "/searches/0/term", None),  # it stands in another one only
        (
            plan(search(term="during service 431While", source_ids=[TITLE, OBSERVED])),
            UNGROUNDED,
            "/searches/0/term",
            None,
        ),
        (plan(search(), search(source_ids=[TITLE], reason="again")), TWICE, "/searches/1", None),
        (plan(search(), search(term="edge"), search()), TWICE, "/searches/2", None),
    ],
)
def test_plans_that_break_exactly_one_rule(version, reply, code, path, by_schema):
    assert by_rules(version, reply) == [(f"ENTITY_RESOLUTION_{code}", path)]
    expected = ("LLM_OUTPUT_SCHEMA", by_schema) if by_schema else (f"ENTITY_RESOLUTION_{code}", path)
    assert judged(version, reply) == [expected]


@each_version
@pytest.mark.spec("A-015")
@pytest.mark.parametrize(("term", "source"), [("mail-relay", MARKUP), ("edge-proxy-canary", "S0099")])
def test_a_term_that_only_an_unread_or_unknown_source_holds_is_neither_read_nor_grounded(version, term, source):
    assert by_rules(version, plan(search(term=term, source_ids=[source]))) == [
        ("ENTITY_RESOLUTION_UNGROUNDED_TERM", "/searches/0/term"),
        ("ENTITY_RESOLUTION_UNREAD_SOURCE", "/searches/0/source_ids/0"),
    ]


@each_version
@pytest.mark.spec("A-009", "A-010", "A-016", "A-017", "A-018", "A-019", "A-058", "A-061")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"table": "hosts"}, "/searches/0"),
        ({"column": "os"}, "/searches/0"),
        ({"columns": ["os"]}, "/searches/0"),
        ({"url": "sqlite:///other.db"}, "/searches/0"),
        ({"host": "10.0.0.1", "password": "x"}, "/searches/0"),
        ({"sql": "select 1"}, "/searches/0"),
        ({"regex": True}, "/searches/0"),
        ({"role": None}, "/searches/0/role"),
        ({"source_ids": []}, "/searches/0/source_ids"),
        ({"source_ids": ["the title"]}, "/searches/0/source_ids/0"),
        ({"term": ""}, "/searches/0/term"),
        ({"reason": ""}, "/searches/0/reason"),
    ],
)
def test_the_schema_leaves_no_room_for_anything_else(version, change, path):
    assert judged(version, plan(search(**change))) == [("LLM_OUTPUT_SCHEMA", path)]


@each_version
@pytest.mark.parametrize("key", ["catalog", "term", "role", "source_ids", "reason"])
@pytest.mark.spec("A-009", "A-010")
def test_no_key_of_a_search_may_be_missing(version, key):
    broken = search()
    del broken[key]
    assert judged(version, plan(broken)) == [("LLM_OUTPUT_SCHEMA", "/searches/0")]


@each_version
@pytest.mark.spec("A-052")
def test_the_limit_is_that_of_the_frozen_input(version):
    assert judged(version, plan(*FIVE), limits={"max_searches": 5}) == []
    one = {**CONTEXTS[version], "limits": {"max_searches": 1}}
    (finding,) = findings_of_judge(VERSIONS[version], plan(*FIVE), one)
    assert finding.allowed == ("1",)


@each_version
def test_findings_say_what_is_permitted(version):
    reply = plan(search(catalog="x", role="y", source_ids=["S0099"]))
    found = findings_of_rules(VERSIONS[version], reply, CONTEXTS[version])
    permitted = {finding.code: finding for finding in found}
    assert permitted["ENTITY_RESOLUTION_UNKNOWN_CATALOG"].allowed == (
        "inventory.host",
        "inventory.host_locale",
        "inventory.service",
    )
    assert "owner" in permitted["ENTITY_RESOLUTION_UNKNOWN_ROLE"].allowed
    assert permitted["ENTITY_RESOLUTION_UNREAD_SOURCE"].allowed == tuple(TEXTS)
    assert permitted["ENTITY_RESOLUTION_UNGROUNDED_TERM"].details == {
        "sources_that_hold_it": [TITLE, OBSERVED, STEP, DESCRIBED]
    }


# --- random replies -------------------------------------------------------------------------------------------------


@st.composite
def valid_plans(draw):
    searches = {}
    for _ in range(draw(st.integers(0, 4))):
        source = draw(st.sampled_from(sorted(TEXTS)))
        text = TEXTS[source]
        start = draw(st.integers(0, len(text) - 1))
        term = text[start : draw(st.integers(start + 1, len(text)))]
        catalog = draw(st.sampled_from(CONTEXT["catalogs"]))["name"]
        role = draw(st.sampled_from(CONTEXT["roles"]))
        others = draw(st.lists(st.sampled_from(sorted(TEXTS)), max_size=2))
        one = search(catalog=catalog, term=term, role=role, source_ids=draw(st.permutations([source, *others])))
        searches[catalog, term, role] = one
    return plan(*searches.values())


@each_version
@given(reply=valid_plans())
def test_random_plans_that_hold_are_accepted(version, reply):
    assert judged(version, reply) == []


def _without_case(reply):
    """Return the term of the first search in another case, if it has one that then stands nowhere."""
    term = reply["searches"][0]["term"].swapcase()
    return term if all(term not in text for text in TEXTS.values()) else "\u2603"


MUTATIONS = {
    LIMIT: lambda reply: reply["searches"].extend(FIVE),
    CATALOG: lambda reply: reply["searches"][0].update(catalog="inventory.other"),
    ROLE: lambda reply: reply["searches"][0].update(role="culprit"),
    UNREAD: lambda reply: reply["searches"][0]["source_ids"].append(MARKUP),
    UNGROUNDED: lambda reply: reply["searches"][0].update(term=_without_case(reply)),
    TWICE: lambda reply: reply["searches"].append({**reply["searches"][0], "source_ids": [*TEXTS]}),
}


@each_version
@given(reply=valid_plans().filter(lambda reply: reply["searches"]), code=st.sampled_from(sorted(MUTATIONS)))
def test_random_plans_with_one_mutation_are_refused_for_it(version, reply, code):
    mutated = copy.deepcopy(reply)
    MUTATIONS[code](mutated)
    assert f"ENTITY_RESOLUTION_{code}" in {found for found, _ in by_rules(version, mutated)}
    assert judged(version, mutated)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20), st.text(max_size=5))
def test_a_term_is_grounded_exactly_where_python_finds_it(text, around):
    """Code point for code point: no case, no normal form, no script makes a difference."""
    sources = [{"id": "S0001", "kind": "text", "text": around + text + around}]
    assert by_rules(4, plan(search(term=text, source_ids=["S0001"])), sources=sources) == []
    for form in ("NFC", "NFD", "NFKC"):
        other = unicodedata.normalize(form, text.swapcase())
        found = by_rules(4, plan(search(term=other, source_ids=["S0001"])), sources=sources)
        assert (not found) == (other in sources[0]["text"])


@each_version
def test_the_model_of_the_tests_answers_validly(version):
    message = message_of_context(VERSIONS[version], CONTEXTS[version])
    assert judged(version, plan_reply(message)) == []
