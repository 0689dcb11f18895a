"""Decisions are appended by people; a suggestion, a decision and a reviewed quality are three different things."""

from __future__ import annotations

import json

import pytest
from casebound.clock import format_time
from casebound.contracts.model_call import Outcome
from casebound.errors import ProviderError, SettingsError
from casebound.testing.scripted import FixedClock
from casebound_entity_link.figures import admission_of, derive_figures


def decide(pair, link, verdict, rationale="checked by hand", by="Kim"):
    return pair.journal().decide(link.name, verdict, rationale=rationale, by=by)


def test_a_later_decision_supersedes_and_the_earlier_one_stays(pair):
    link = pair.propose()
    decide(pair, link, "accepted")
    first = pair.files()[f"{link.name}/decisions/0001.json"]
    pair.inventory.clock.advance(5)
    line = decide(pair, link, "rejected", "the namespace differs", "Ana").to_json()
    assert pair.files()[f"{link.name}/decisions/0001.json"] == first
    assert (line["decisions"], line["decision"]["decision"], line["decision"]["decided_by"]) == (2, "rejected", "Ana")
    digests = [link.package.digest(f"decisions/000{number}.json") for number in (1, 2)]
    decisions = link.decisions()
    assert [each.supersedes for each in decisions] == [None, digests[0]]
    assert {each.suggestion for each in decisions} == {link.package.digest("suggestion.json")}
    assert pair.verify(link).answer == "holds"


def test_without_a_suggestion_there_is_nothing_to_decide_about(pair):
    link = pair.propose(ProviderError("LLM_AUTH", retryable=False))
    with pytest.raises(SettingsError) as caught:
        decide(pair, link, "accepted")
    assert caught.value.code == "ENTITY_LINK_NO_SUGGESTION"
    assert link.decisions() == []


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "x" * 20_001, "\udc80"])
@pytest.mark.parametrize("option", ["rationale", "by"])
def test_a_decision_needs_words_and_a_name(pair, option, text):
    link = pair.propose()
    with pytest.raises(SettingsError) as caught:
        decide(pair, link, "accepted", **{option: text})
    assert (caught.value.code, caught.value.pointer) == ("USAGE", f"--{option}")
    assert link.decisions() == []


@pytest.mark.parametrize("name", ["", "sha256-", "12345", "sha256-" + "0" * 64, "../../cases/INC-7"])
def test_a_link_is_found_by_six_digits_at_least(pair, name):
    link = pair.propose()
    journal = pair.journal()
    assert journal.find(link.name[7:13]).name == journal.find("sha256:" + link.name[7:]).name == link.name
    with pytest.raises(SettingsError) as caught:
        journal.find(name)
    assert caught.value.code == "ENTITY_LINK_UNKNOWN"


@pytest.mark.spec("B-008")
def test_a_suggestion_a_decision_and_a_reviewed_quality_are_never_derived_from_each_other(pair):
    link = pair.propose()
    before = link.to_json()
    assert (before["suggestion"]["assessment"], before["decision"]) == ("insufficient_evidence", None)
    assert before["semantic_review"] == "pending"
    for verdict in ("accepted", "rejected"):
        after = decide(pair, link, verdict).to_json()
        assert after["decision"]["decision"] == verdict
        assert (after["suggestion"], after["semantic_review"]) == (before["suggestion"], "pending")
    assert json.loads(link.package.require("suggestion.json")).keys() == {
        "format",
        "prompt_id",
        "contract",
        "input_digest",
        "reply",
        "files",
    }


@pytest.mark.spec("B-065")
def test_reviews_calls_outputs_and_decisions_are_counted_over_wholes_of_their_own(pair):
    left, right = pair.sides
    invalid = {"version": "entity-link-suggestion/v1"}
    first = pair.propose("no JSON", invalid)  # 3 calls, 3 outputs, suggested
    second = pair.propose(ProviderError("LLM_AUTH", retryable=False), sides=(right, left))  # 1 call, blocked
    third = pair.propose("{", "{", "{", sides=(left, type(right)("INC-7", "N0002")))  # 3 calls, in review
    decide(pair, first, "rejected")
    decide(pair, first, "accepted")
    assert (second.state, third.state) == ("blocked", "review")
    assert derive_figures(pair.journal().links()) == {
        "reviews": {"links": 3, "suggested": 1, "proposed": 0, "retry_pending": 0, "blocked": 1, "review": 1},
        "invocations": {"calls": 7, "answered": 6, "provider_errors": 1, "unknown": 0, "undecided": 0},
        "admissions": {
            "outputs": 6,
            "admitted": 1,
            "parse_failures": 4,
            "schema_rejections": 1,
            "binding_rejections": 0,
        },
        "decisions": {"suggestions": 1, "accepted": 1, "rejected": 0, "undecided": 0, "superseded": 1},
        "semantic_review": "pending",
    }


@pytest.mark.spec("B-047")
@pytest.mark.parametrize(
    ("code", "admission"),
    [
        (None, "admitted"),
        ("LLM_OUTPUT_JSON", "parse_failures"),
        ("LLM_INCOMPLETE_OUTPUT", "parse_failures"),
        ("LLM_REFUSED", "parse_failures"),
        ("LLM_OUTPUT_SCHEMA", "schema_rejections"),
        ("ENTITY_LINK_ENTITY", "binding_rejections"),
        ("ENTITY_LINK_MENTION_UNKNOWN", "binding_rejections"),
        ("A_RULE_OF_ANOTHER_PLUGIN", "binding_rejections"),
    ],
)
def test_a_reply_ends_at_one_layer_and_behind_the_schema_it_is_bound_or_admitted(code, admission):
    digest, kind = "sha256:" + "0" * 64, "invalid" if code else "accepted"
    outcome = Outcome(kind=kind, code=code, request=digest, native=digest, at=format_time(FixedClock().now()))
    assert admission_of(outcome) == admission


@pytest.mark.spec("B-065")
def test_nothing_is_counted_in_an_empty_workspace(pair):
    figures = derive_figures(pair.journal().links())
    assert all(count == 0 for group in figures.values() if isinstance(group, dict) for count in group.values())
