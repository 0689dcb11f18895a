"""Assessments: exact and most specific names are selected, what is shared or cut off is not."""

from __future__ import annotations

import copy

import pytest
from casebound.protocols.registry import built_in_protocols
from casebound.validators.assessment import VALIDATORS
from casebound_llm_offline.assess import answer
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

PROTOCOLS = {protocol.version: protocol for protocol in built_in_protocols() if protocol.stage == "assessment"}
PROTOCOL = PROTOCOLS[4]
ROLES = ["affected_subject", "participant", "contributor", "location", "context"]


def search(term, *rows, kind="host", locale=False, truncated=False, role="participant"):
    return {
        "term": term,
        "rows": [list(row) for row in rows],
        "kind": kind,
        "locale": locale,
        "truncated": truncated,
        "role": role,
    }


def context(texts, searches, known=(), cited=()):
    sources = [
        {"id": f"S{number:04}", "kind": "title" if number == 1 else "observation", "text": text}
        for number, text in enumerate(texts, 1)
    ]
    return {
        "sources": sources,
        "entities": [
            {"id": f"E{number:04}", "type": kind, "canonical_id": each, "source_ids": ["S0001"]}
            for number, (kind, each) in enumerate(cited, 1)
        ],
        "known_names": [
            {"entity": "E0001", "type": "task", "id": "1", "name": name, "fact": "F0001"} for name in known
        ],
        "candidates": [
            {
                "search_index": index,
                "capture": f"V{index + 1:04}",
                "catalog": f"inv.{each['kind']}",
                "entity_type": each["kind"],
                "term": each["term"],
                "role": each["role"],
                "mentions": [source["id"] for source in sources if each["term"] in source["text"]],
                "truncated": each["truncated"],
                "columns": ["id", "name", "locale"] if each["locale"] else ["id", "name"],
                "rows": each["rows"],
            }
            for index, each in enumerate(searches)
        ],
        "overlaps": [],
        "specifics": [],
        "roles": ROLES,
    }


def answered(protocol, asked):
    """Return the reply, once the protocol's own schema and rules have nothing against it."""
    reply = answer(protocol.request(asked, None).user)
    assert not list(Draft202012Validator(protocol.response_schema(asked)).iter_errors(reply))
    assert [finding for rule in VALIDATORS for finding in rule.check(reply, asked)] == []
    return reply


def judged(texts, *searches, known=(), cited=()):
    """Return the resolutions of protocol 4; the earlier ones give the same, unless what they are not told matters."""
    asked = context(texts, searches, known, cited)
    replies = [answered(protocol, asked) for protocol in PROTOCOLS.values()]
    assert known or all(reply == replies[-1] for reply in replies)
    return replies[-1]["resolutions"]


def outcome(texts, *searches, known=(), cited=()):
    return [
        each["entity"]["id"] if each["entity"] else each["status"]
        for each in judged(texts, *searches, known=known, cited=cited)
    ]


def test_the_exact_name_is_selected_among_longer_ones():
    rows = [("1", "Copper Relay"), ("2", "Copper Relay Spare")]
    assert outcome(["Down", "Since noon the Copper Relay hums."], search("Copper Relay", *rows)) == ["1"]


def test_the_longest_name_at_a_place_wins():
    text = ["Down", "Since noon the Copper Relay Spare hums."]
    found = outcome(
        text,
        search("Copper Relay Spare", ("2", "Copper Relay Spare")),
        search("Copper Relay", ("1", "Copper Relay"), ("2", "Copper Relay Spare")),
    )
    assert found == ["2", "ambiguous"]


def test_a_name_of_several_ids_is_ambiguous():
    rows = [("1", "Copper Relay"), ("2", "Copper Relay")]
    assert outcome(["Down", "The Copper Relay hums."], search("Copper Relay", *rows)) == ["ambiguous"]


def test_an_id_that_the_report_cites_settles_a_shared_name():
    rows = [("1", "Copper Relay"), ("2", "Copper Relay")]
    text = ["host 2 is down", "The Copper Relay hums."]
    assert outcome(text, search("Copper Relay", *rows), cited=[("host", "2")]) == ["2"]
    assert outcome(text, search("Copper Relay", *rows), cited=[("task", "2")]) == ["ambiguous"]


def test_only_one_entity_is_the_subject():
    text = ["Copper Relay", "The host Copper Relay hums, the task Copper Relays Cleaning is open."]
    found = judged(
        text,
        search("Copper Relay", ("1", "Copper Relay"), role="affected_subject"),
        search("Copper Relay", ("7", "Copper Relays Cleaning"), kind="task", role="affected_subject"),
    )
    assert [(each["entity"]["id"], each["role"]) for each in found] == [("1", "affected_subject"), ("7", "participant")]


def test_truncated_search_cannot_select():
    rows = [("1", "Copper Relay"), ("2", "Copper Relay Spare")]
    assert outcome(["Down", "The Copper Relay hums."], search("Copper Relay", *rows, truncated=True)) == ["ambiguous"]


def test_a_truncated_search_does_not_hinder_a_complete_one():
    text = ["Down", "The Copper Relay hums."]
    found = outcome(
        text,
        search("Copper", ("7", "Copper"), truncated=True),
        search("Copper Relay", ("1", "Copper Relay")),
    )
    assert found[1] == "1"


def test_a_similar_name_is_no_match():
    assert outcome(["Down", "The Copper Relay hums."], search("Copper", ("3", "Copper Door"))) == ["no_match"]


def test_an_empty_capture_is_no_match():
    assert outcome(["Down", "The Copper Relay hums."], search("Copper Relay")) == ["no_match"]


def test_the_word_for_a_type_decides_between_types():
    text = ["Down", "I cannot close the task Golden Harbor today."]
    found = outcome(
        text,
        search("Golden Harbor", ("1", "Golden Harbor")),
        search("Golden Harbor", ("9", "Golden Harbor"), kind="task"),
    )
    assert found == ["no_match", "9"]


def test_types_that_nothing_tells_apart_stay_ambiguous():
    text = ["Golden Harbor", "Something is odd with Golden Harbor."]
    found = outcome(
        text,
        search("Golden Harbor", ("1", "Golden Harbor")),
        search("Golden Harbor", ("9", "Golden Harbor"), kind="service"),
    )
    assert found == ["ambiguous", "ambiguous"]


@pytest.mark.parametrize(
    ("text", "term", "name"),
    [
        ("Yesterday Rusty Edmund left.", "Edmund", '"Rusty" Edmund'),
        ("Es liegt an Marc Œil-de-verre.", "il-de-verre", "Marc Oeil-de-Verre"),
        ("Yesterday Captain Aroona left.", "Captain", "Captain A'roona"),
        ("Yesterday Golden Carrige broke.", "Golden Carr", "Golden Carriage"),
        ("Er öffnete des Kupferkastens Deckel nicht.", "Kupferkasten", "Kupferkasten"),
        ("Yesterday Dra'mok left.", "Dra'mok", "Dra'Mok the Quiet"),
        ("Вчера видел Медноголова там.", "Медноголов", "Медноголов"),
    ],
)
def test_a_name_is_known_through_marks_inflection_and_misspelling(text, term, name):
    assert outcome(["Down", text], search(term, ("5", name))) == ["5"]


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("I walked around in Northgate today.", "Northgate", "object"),
        ("Ich war gestern in der Silberhafen Gegend.", "Silberhafen", "object"),
        ("My Warden is level nine.", "Warden", "person"),
        ("I have a Warden here.", "Warden", "person"),
        ("Nothing happens.", "Nothing", "person"),
        ("Missing from the list.", "Missing", "task"),
        ("the relay hums.", "Relay", "host"),
    ],
)
def test_places_generic_words_and_sentence_starts_are_not_names(text, name, kind):
    term = name if name in text else name.lower()
    assert outcome(["Down", text], search(term, ("4", name), kind=kind)) == ["no_match"]


def test_a_name_inside_a_settled_name_may_be_meant():
    text = ["Nothing to count", "See: Count the Wild Relay!"]
    found = outcome(
        text, search("Wild Relay", ("2", "Wild Relay"), ("1", "Wild Relay Old")), known=["Count the Wild Relay!"]
    )
    assert found == ["2"]


@pytest.mark.parametrize("version", PROTOCOLS)
def test_a_cited_name_is_settled_by_its_row_where_the_message_tells_no_names(version):
    """Before protocol 4 only a search that finds the cited entity says its name."""
    text = ["Task 7", "See: Count the Wild Relay!"]
    searches = [
        search("Wild Relay", ("7", "Count the Wild Relay!"), kind="task", role="affected_subject"),
        search("Wild Relay", ("2", "Wild Relay"), ("1", "Wild Relay Old")),
    ]
    asked = context(text, searches, ["Count the Wild Relay!"], [("task", "7")])
    found = [each["entity"] and each["entity"]["id"] for each in answered(PROTOCOLS[version], asked)["resolutions"]]
    assert found == ["7", "2"]


def test_what_a_cited_name_merely_holds_is_the_subject_and_the_cited_entity_is_not():
    found = judged(
        ["No Relay", "See task 7: Count the Wild Relay! The Wild Relay hums."],
        search("Relay", ("7", "Count the Wild Relay!"), kind="task", role="affected_subject"),
        search("Wild Relay", ("2", "Wild Relay")),
        cited=[("task", "7")],
    )
    assert [(each["entity"]["id"], each["role"]) for each in found] == [("7", "participant"), ("2", "affected_subject")]


def test_a_cited_entity_that_its_whole_name_found_may_be_the_subject():
    found = judged(
        ["Copper Relay (host 1)", "The Golden Clock shows it."],
        search("Copper Relay", ("1", "Copper Relay"), role="affected_subject"),
        search("Golden Clock", ("2", "Golden Clock")),
        cited=[("host", "1")],
    )
    assert [each["role"] for each in found] == ["affected_subject", "participant"]


def test_a_short_form_of_a_selected_name_is_not_another_entity():
    text = ["Relays gone", "There is no Wild Relay, only the Relay of others."]
    found = outcome(
        text,
        search("Wild Relay", ("2", "Wild Relay")),
        search("Relay", ("1", "Relay"), ("2", "Wild Relay")),
    )
    assert found == ["2", "ambiguous"]


def test_someone_is_the_subject_when_the_planned_subject_was_not_found():
    text = ["Odd Thing", "Since noon the Copper Relay hums."]
    roles = [
        each["role"]
        for each in judged(
            text, search("Odd Thing", role="affected_subject"), search("Copper Relay", ("1", "Copper Relay"))
        )
    ]
    assert roles == ["affected_subject", "affected_subject"]


WORDS = [
    "Copper",
    "Relay",
    "copper",
    "relays",
    "of",
    "the",
    "task",
    "host",
    "北桥",
    "Мост",
    "Œil",
    "e\u0301",
    "!",
    "A'",
    "01",
    "in",
    "\u200b",
]
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
IDS = st.sampled_from(["1", "2", "3"])


@st.composite
def tables(draw):
    texts = draw(st.lists(NAMES, min_size=1, max_size=3))
    searches = []
    for _ in range(draw(st.integers(1, 5))):
        text = draw(st.sampled_from(texts))
        start = draw(st.integers(0, len(text) - 1))
        term = text[start : draw(st.integers(start + 1, len(text)))]
        locale = draw(st.booleans())
        names = draw(st.lists(st.tuples(IDS, st.one_of(NAMES, st.just(term))), max_size=5))
        rows = [(number, name, "deDE") if locale else (number, name) for number, name in names]
        kind = draw(st.sampled_from(["host", "task", "person"]))
        role = draw(st.sampled_from(ROLES))
        searches.append(search(term, *rows, kind=kind, locale=locale, truncated=draw(st.booleans()), role=role))
    return texts, searches, draw(st.lists(NAMES, max_size=2))


@pytest.mark.parametrize("version", PROTOCOLS)
@given(drawn=tables())
def test_any_assessment_selects_real_rows_of_complete_captures_and_cites_them(version, drawn):
    texts, searches, known = drawn
    asked = context(texts, searches, known)
    kept = copy.deepcopy(asked)
    reply = answered(PROTOCOLS[version], asked)
    assert asked == kept
    assert answer(PROTOCOLS[version].request(asked, None).user) == reply


@given(tables())
def test_no_name_of_two_ids_is_ever_certain(drawn):
    texts, searches, _ = drawn
    doubled = [
        each | {"rows": [*each["rows"], *([str(10 + int(row[0])), *row[1:]] for row in each["rows"])]}
        for each in searches
    ]
    asked = context(texts, doubled)
    reply = answer(PROTOCOL.request(asked, None).user)
    assert all(each["status"] != "selected" for each in reply["resolutions"])
