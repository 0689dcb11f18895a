"""Plans: grounded, within the limit, without duplicates, the same each time, and about what the text names."""

from __future__ import annotations

import copy

import pytest
from casebound.protocols.registry import built_in_protocols
from casebound.testing.inventory_cases import facts_of
from casebound.validators.plan import VALIDATORS
from casebound_llm_offline.plan import answer
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

PROTOCOLS = {protocol.version: protocol for protocol in built_in_protocols() if protocol.stage == "plan"}
PROTOCOL = PROTOCOLS[4]
TELLS_NAMES = {version for version, one in PROTOCOLS.items() if one.context(facts_of("nested")).get("known_names")}
ROLES = ["affected_subject", "participant", "contributor", "location", "context", "task"]
HOSTS = {"name": "inv.host", "entity_type": "host", "locale": False}
TASKS = {"name": "desk.task", "entity_type": "task", "locale": False}
PEOPLE = {"name": "staff.person", "entity_type": "person", "locale": False}
LOCAL = {"name": "staff.person_locale", "entity_type": "person", "locale": True}


def context(*texts, catalogs=(HOSTS,), limit=40, known=(), described=()):
    sources = [
        {"id": f"S{number:04}", "kind": "title" if number == 1 else "observation", "text": text}
        for number, text in enumerate(texts, 1)
    ]
    sources += [
        {"id": f"P{number:04}", "kind": "project_description", "text": text, "entity": f"E{number:04}"}
        for number, text in enumerate(described, 1)
    ]
    return {
        "sources": sources,
        "entities": [],
        "known_names": [
            {"entity": f"E{number:04}", "type": "task", "id": str(number), "name": name, "fact": f"F{number:04}"}
            for number, name in enumerate(known, 1)
        ],
        "catalogs": list(catalogs),
        "roles": ROLES,
        "limits": {"max_searches": limit},
    }


def planned(asked):
    """Return the plan of protocol 4; the other ones give the same, unless what some are not told matters."""
    replies = {version: answered(version, asked) for version in PROTOCOLS}
    assert asked["known_names"] or all(reply == replies[4] for reply in replies.values())
    return replies[4]["searches"]


def answered(version, asked):
    """Return the reply, once the protocol's own schema and rules have nothing against it."""
    protocol = PROTOCOLS[version]
    told = asked if version in TELLS_NAMES else {key: value for key, value in asked.items() if key != "known_names"}
    reply = answer(protocol.request(told, None).user)
    assert not list(Draft202012Validator(protocol.response_schema(told)).iter_errors(reply))
    assert [finding for rule in VALIDATORS for finding in rule.check(reply, told)] == []
    return reply


def terms(*texts, **options):
    return list(dict.fromkeys(search["term"] for search in planned(context(*texts, **options))))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Since the move Bridge of the North never answers.", "Bridge of the North"),
        ("I rebooted Warden Ul'tamar twice.", "Warden Ul'tamar"),
        ("B-Ix 07 exists in two copies.", "B-Ix 07"),
        ("We saw FIRE! is red on the board.", "FIRE!"),
        ('Ask "Rusty" Edmund about it.', '"Rusty" Edmund'),
        ("The rack [lower shelf] is dark.", "lower shelf"),
        ("Es fehlt „kleiner Turm“ im Plan.", "kleiner Turm"),
        ("La tâche « les trois ponts » ne se valide pas et je ne peux pas continuer.", "les trois ponts"),
        ("Он ждёт, а Северный Мост так и не отвечает.", "Северный Мост"),
        ("机架【北桥主机】没有反应。", "北桥主机"),
    ],
)
def test_names_are_found_as_they_are_written(text, name):
    assert name in terms("Broken", text)


def test_the_specific_name_comes_before_what_it_holds():
    found = terms("Broken", "Nobody can reach Clock of Golden Harbor today.")
    assert found.index("Clock of Golden Harbor") < found.index("Golden Harbor")


def test_a_sentence_start_is_not_part_of_the_name():
    found = terms("Broken", "During Harbor Cleaning it stopped. In Golden Harbor as well.")
    assert "Harbor Cleaning" in found
    assert "During Harbor Cleaning" not in found


def test_two_names_beside_an_article_are_taken_apart():
    found = terms("Broken", "In Northgate the Copper Relay hums.")
    assert "Copper Relay" in found


def test_a_curly_apostrophe_does_not_hide_a_name():
    assert "morrow Relay" in terms("Broken", "The Tal’morrow Relay hums.")


def test_an_inflected_name_is_also_looked_up_without_its_ending():
    assert "Werkzeugsack" in terms("Kaputt", "Der Inhalt des Werkzeugsacks ist nicht da, und ich habe es gemeldet.")


def test_a_text_without_names_needs_no_search():
    assert terms("nothing works", "it is slow and i do not know why") == []


def test_the_word_for_a_type_chooses_its_catalog():
    first = planned(context("Broken", "The task Golden Harbor cannot be closed.", catalogs=[HOSTS, TASKS, PEOPLE]))[0]
    assert (first["catalog"], first["term"]) == ("desk.task", "Golden Harbor")


def test_english_names_are_looked_up_without_locales_and_others_with_them():
    english = planned(context("Gone", "I have seen that Anna Harbor is not in the list.", catalogs=[LOCAL, PEOPLE]))
    russian = planned(context("Пропал", "Я не вижу, что Анна Мостова есть в списке.", catalogs=[PEOPLE, LOCAL]))
    assert english[0]["catalog"] == "staff.person"
    assert russian[0]["catalog"] == "staff.person_locale"


def test_a_known_name_is_not_looked_up_but_what_it_holds_is():
    found = planned(
        context(
            "Nothing to count",
            "Gold Anker gave me the list, but it is empty.",
            known=["Count the Wild Relay!"],
            described=["Count the Wild Relay!"],
            limit=4,
        )
    )
    named = {search["term"]: search for search in found}
    assert not any(term.startswith("Count") for term in named)
    assert named["Wild Relay"]["source_ids"] == ["P0001"]
    assert named["Wild Relay"]["role"] == "affected_subject"
    assert named["Gold Anker"]["role"] != "affected_subject"


def test_every_source_that_holds_the_term_is_cited():
    found = planned(context("Copper Relay hums", "Today the Copper Relay hums.", "It is late.", "Copper Relay again."))
    cited = next(search["source_ids"] for search in found if search["term"] == "Copper Relay")
    assert cited == ["S0001", "S0002", "S0004"]


def test_without_catalogs_there_is_nothing_to_search():
    asked = context("Copper Relay hums", catalogs=[])
    assert answer({"task": "plan", **asked}) == {"searches": []}


PIECES = st.sampled_from(
    [
        *(
            "Copper",
            "Relay",
            "of",
            "the",
            "task",
            "host",
            "01",
            "и",
            "der",
            "I",
            "北桥",
            "的",
            "Мост",
            "Œil",
            "é",
            "e\u0301",
        ),
        *("!", " ", " ", "\n", '"', "[", "]", "'s", "’", ":", "...", "¡", "-", "\u200b", "\u202e", "\x00", "😀"),
    ]
)
TEXTS = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60), st.lists(PIECES, max_size=25).map("".join)
)


@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    st.lists(TEXTS, max_size=2),
    st.integers(0, 12),
    st.lists(st.sampled_from([HOSTS, TASKS, PEOPLE, LOCAL]), max_size=4, unique_by=lambda catalog: catalog["name"]),
)
def test_any_plan_is_grounded_within_the_limit_and_without_duplicates(texts, known, limit, catalogs):
    asked = context(*texts, known=known, described=known, limit=limit, catalogs=catalogs)
    kept = copy.deepcopy(asked)
    user = PROTOCOL.request(asked, None).user
    reply = answer(user)
    assert asked == kept
    assert answer(user) == reply
    assert [finding for rule in VALIDATORS for finding in rule.check(reply, asked)] == []
    for search in reply["searches"]:
        held = {source["id"]: source["text"] for source in asked["sources"]}
        assert all(search["term"] in held[alias] for alias in search["source_ids"])
        assert "\0" not in search["term"]
        assert search["term"].strip()


def test_a_text_that_cannot_be_looked_up_is_no_term():
    found = terms("Broken", "See [Copper\x00Relay] and “Gold\u202eRelay” there.")
    assert found
    assert all(term.isprintable() for term in found)


def test_a_long_run_of_one_sign_is_read_once():
    for sign in ("[", '"', "A", "的", "北", "A ", "A'", "\n"):
        assert len(planned(context("T", sign * 300_000))) <= 40
