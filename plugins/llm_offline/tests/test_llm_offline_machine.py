"""Names as machines bear them: one word each, searched whole, and selected where one row bears exactly that name."""

from __future__ import annotations

import re

import pytest
from casebound.research.fold import fold, matches
from casebound.validators.assessment import VALIDATORS as ASSESSMENT_RULES
from casebound.validators.plan import VALIDATORS as PLAN_RULES
from casebound_llm_offline.assess import answer as assess
from casebound_llm_offline.machine import is_value, machine_weight
from casebound_llm_offline.plan import GENEROUS
from casebound_llm_offline.plan import answer as plan
from casebound_llm_offline.text import tokens
from hypothesis import given
from hypothesis import strategies as st

INVENTORY = (
    "db01.example.net",
    "db02",
    "db02.example.net",
    "web-front-1",
    "web-front-10",
    "edge-proxy",
    "edge-proxy-canary",
    "nightly_backup",
    "svc/billing",
    "PAY-2041",
    "night run",
    "Nightly Backup",
    "Billing Export",
    "Größenprüfung Dienst",
    "example.net",
)
ROLES = ["affected_subject", "participant", "context"]


def plan_context(title, text, limit=4, kinds=("host",)):
    return {
        "sources": [
            {"id": "S0001", "kind": "title", "text": title},
            {"id": "S0002", "kind": "observation", "text": text},
        ],
        "entities": [],
        "known_names": [],
        "catalogs": [{"name": f"inventory.{kind}", "entity_type": kind, "locale": False} for kind in kinds],
        "roles": ROLES,
        "limits": {"max_searches": limit},
    }


def searches(title, text, limit=4):
    asked = plan_context(title, text, limit)
    reply = plan({"task": "plan", **asked})
    assert [finding for rule in PLAN_RULES for finding in rule.check(reply, asked)] == []
    return reply["searches"]


def terms(text, title="", limit=4):
    return [search["term"] for search in searches(title, text, limit)]


def outcomes(text, title="", names=INVENTORY, limit=4):
    """Return what becomes of each search in a catalog whose ids are the places in `names`, by term."""
    planned = searches(title, text, limit)
    asked = plan_context(title, text, limit)
    asked["candidates"] = [
        {
            "search_index": index,
            "capture": f"V{index + 1:04}",
            "catalog": search["catalog"],
            "entity_type": "host",
            "term": search["term"],
            "role": search["role"],
            "mentions": search["source_ids"],
            "truncated": False,
            "columns": ["id", "name"],
            "rows": [[str(place), name] for place, name in enumerate(names) if matches(search["term"], name)],
        }
        for index, search in enumerate(planned)
    ]
    reply = assess({"task": "assessment", **asked})
    assert [finding for rule in ASSESSMENT_RULES for finding in rule.check(reply, asked)] == []
    return {
        search["term"]: names[int(each["entity"]["id"])] if each["entity"] else each["status"]
        for search, each in zip(planned, reply["resolutions"], strict=True)
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The rack db01.example.net is slow since monday.", "db01.example.net"),
        ("Since monday `db01.example.net` is slow.", "db01.example.net"),
        ("host db01.example.net answers late", "db01.example.net"),
        ("host:db01.example.net answers late", "db01.example.net"),
        ("db01.example.net:5432 refuses", "db01.example.net"),
        ("It is the disk of DB01.Example.NET.", "db01.example.net"),
        ("db01.example.net's disk is full", "db01.example.net"),
        ("web-front-1 gives 502", "web-front-1"),
        ("Web-Front-1 gives 502", "web-front-1"),
        ("l'hôte web-front-10 est lent", "web-front-10"),
        ("Our host named db02 is down", "db02"),
        ("and edge-proxy-canary hangs", "edge-proxy-canary"),
        ("the edge-proxy hangs", "edge-proxy"),
        ("nightly_backup hangs", "nightly_backup"),
        ("_nightly_backup_ hangs", "nightly_backup"),
        ("svc/billing hangs", "svc/billing"),
        ("see PAY-2041 for more", "PAY-2041"),
        ("the job 'night run' hangs", "night run"),
        ('the job "night run" hangs', "night run"),
        ("the job `night run` hangs", "night run"),
        ("主机db01.example.net没有反应", "db01.example.net"),
        ("主机db02没有反应", "db02"),
        ("db02没有反应", "db02"),
    ],
)
def test_a_name_of_any_shape_is_searched_whole_and_selected(text, name):
    found = outcomes(text)
    assert name in found.values()
    assert all(fold(term) == fold(name) for term, outcome in found.items() if outcome == name)


def test_the_name_in_title_and_text_is_the_subject():
    found = searches("db01.example.net is slow", "Since monday `db01.example.net` is slow.")
    assert [(each["term"], each["role"], each["source_ids"]) for each in found] == [
        ("db01.example.net", "affected_subject", ["S0001", "S0002"])
    ]


def test_an_exact_name_of_two_ids_is_ambiguous():
    assert outcomes("web-front-1 gives 502", names=("web-front-1", "web-front-1")) == {"web-front-1": "ambiguous"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("web-front-1 gives 502", ("web-front-10",)),
        ("db02 is down", ("db02.example.net", "db02 spare")),
        ("db03.example.net is down, is `example.net` too?", ("db03.example.net.old",)),
    ],
)
def test_a_longer_or_near_name_is_not_the_one_that_is_named(text, names):
    assert not set(outcomes(text, names=names).values()) & set(names)


@pytest.mark.parametrize(
    ("named", "near"),
    [
        ("db01.example.net", "db02.example.net"),
        ("dba.example.net", "dbb.example.net"),
        ("edge-proxy-a", "edge-proxy-b"),
    ],
)
def test_a_machine_that_differs_by_one_sign_is_another_one(named, near):
    text = f"`{named.split('-a')[0]}` and {named} hang"
    asked = plan_context("Down", text)
    rows = [["7", near]]
    asked["candidates"] = [
        {
            "search_index": 0,
            "capture": "V0001",
            "catalog": "inventory.host",
            "entity_type": "host",
            "term": named[-5:],
            "role": "participant",
            "mentions": ["S0002"],
            "truncated": False,
            "columns": ["id", "name"],
            "rows": rows,
        }
    ]
    assert assess({"task": "assessment", **asked})["resolutions"][0]["status"] == "no_match"


def test_what_stands_inside_a_machine_name_is_not_named():
    found = outcomes("The edge-proxy-canary and db01.example.net hang. What is edge-proxy? And example.net?", limit=2)
    assert found == {"edge-proxy-canary": "edge-proxy-canary", "db01.example.net": "db01.example.net"}
    inside = outcomes("The svc/billing hangs. Who owns `billing`?", names=("svc/billing", "svc"))
    assert "svc" not in inside.values()


VALUES = [
    *("09", "502", "3.5GB", "10ms", "5th", "2x", "40%", "$5", "3.50€", "1,000", "10-20", "16:9"),
    *("3.3.5a", "v2", "v2.1", "1.0-rc1", "2.4.0-SNAPSHOT", "release 7.1", "3.3.5.12340"),
    *("09:00", "09:00:12", "9am", "20:15h", "14h30", "2026-11-01", "2026-11-01T09:00:00Z", "1/11/2026"),
    *("1-Nov-2026", "Nov 2026", "Monday", "Freitag", "12 May 2026", "Monday 09:00"),
    *("https://example.net/a-b/c_d?e=1", "http://db01.example.net:80/", "www.example.net"),
]
NAMES = [
    *("db01.example.net", "web-front-1", "edge-proxy-canary", "nightly_backup", "svc/billing", "PAY-2041", "db02"),
    *("std::vector", "backup.log", "Nginx-1.25.3", "R2D2", "host:db02", "_private_key", "größe-dienst-1"),
]
WORDS = [
    "well-known",
    "e-mail",
    "self-made",
    "read-only",
    "25-man",
    "level60",
    "and/or",
    "Red/Blue",
    "e.g",
    "z.B",
    "over.He",
]


@pytest.mark.parametrize("value", VALUES)
def test_what_only_measures_or_dates_is_no_name(value):
    assert is_value(value)
    found = terms(f"It broke {value} ago, or “{value}”, or `{value}`. [{value}] again", title=value, limit=40)
    assert [term for term in found if term in value] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_name_is_one_word(name):
    assert machine_weight(name) > 0
    assert not is_value(name)
    assert [token.text for token in tokens(f"see {name}, or ({name})")] == ["see", name, "or", name]


@pytest.mark.parametrize("word", WORDS)
def test_an_ordinary_compound_is_no_machine_name(word):
    assert machine_weight(word) == 0
    assert word not in terms(f"This is a {word} thing of ours, and it is not good.", limit=40)


def test_ordinary_compounds_and_paths_come_after_better_names():
    text = "See /var/log/apps/error.log for the sea-giant and --dry-run, then Copper Relay and web-front-1 hang."
    assert set(terms(text)[:2]) == {"web-front-1", "Copper Relay"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Der Größenprüfung Dienst hängt seit 09:00 Uhr, und ich weiß nicht warum.", "Größenprüfung Dienst"),
        ("The Nightly Backups failed at 09:00, and it is the third time.", "Nightly Backup"),
        ("The Billing Exports are late, and it is the third time.", "Billing Export"),
    ],
)
def test_four_searches_are_whole_words_and_find_an_inflected_name_by_them(text, name):
    found = outcomes(text)
    assert name in found.values()
    assert all(is_whole(term, text) for term in found)


def test_a_cut_word_is_the_last_resort():
    text = "I think that the Nightly Backups failed, and Copper Relays are gone."
    few, many = terms(text, limit=GENEROUS - 1), terms(text, limit=GENEROUS)
    assert "Nightly Backup" not in few
    assert "Nightly Backup" in many
    cut = [not is_whole(term, text) for term in many]
    assert cut == sorted(cut)


def is_whole(term, text):
    """Tell whether the term stands somewhere without a letter or digit of the same word beside it."""
    return re.search(rf"(?<![^\W_]){re.escape(term)}(?![^\W_])", text) is not None


PIECES = st.sampled_from(
    [
        *NAMES,
        *VALUES,
        *WORDS,
        *("Größenprüfung", "Dienst", "Nightly", "Backups", "Œil-de-verre", "Tal’morrow", "l'hôte", "Медноголова"),
        *("host", "Our", "named", "the", "of", "and", "Copper", "Relay's", "ist", "не", "failed", "e\u0301t"),
    ]
)
GAPS = st.sampled_from(
    [*(" " * 12), ", ", ". ", "\n", ": ", "/", ".", "-", "_", "`", ' "', '" ', "'", " [", "] ", "(", "’s "]
)
TEXTS = st.lists(st.tuples(PIECES, GAPS), max_size=14).map(lambda pairs: "".join(map("".join, pairs)))


@given(TEXTS, TEXTS, st.integers(1, GENEROUS - 1))
def test_with_few_searches_every_term_is_whole_words(title, text, limit):
    for search in searches(title, text, limit):
        assert is_whole(search["term"], title) or is_whole(search["term"], text)


@given(TEXTS, TEXTS, st.sampled_from([4, 40]))
def test_no_plain_value_is_ever_searched(title, text, limit):
    for search in searches(title, text, limit):
        assert not is_value(search["term"])
        assert search["term"] not in VALUES
        assert "://" not in search["term"]


@given(TEXTS, st.sampled_from(NAMES), TEXTS)
def test_a_machine_name_between_blanks_is_never_split(before, name, after):
    whole = [token.text for token in tokens(f"{before} {name} {after}")]
    assert name in whole


def test_long_compounds_are_read_once():
    for sign in ("a.", "a/", "a-", "a_", "a:", "a@", "e.g.", "a.b/", "http://", "'", "1.", "a.A", "a::"):
        assert len(terms(sign * 60_000, limit=40)) <= 40
