"""Proposing: what is frozen and asked, and what becomes of a reply."""

from __future__ import annotations

import json
import sys

import pytest
from casebound.errors import IntegrityError, ProviderError, SettingsError, UnavailableError
from casebound.store import Package
from casebound.store.lock import exclusive
from casebound_entity_link.sides import Wanted

CALL = "attempts/entity_link-0001"


def swapped(message):
    """A reply that fits the schema and has the two sides the wrong way round."""
    left, right = (
        {"entityId": message[side]["entityId"], "mentionIds": [message[side]["mentions"][0]["mentionId"]]}
        for side in ("left", "right")
    )
    return {
        "version": "entity-link-suggestion/v1",
        "assessment": "same_object",
        "rationale": "they are equal",
        "left": right,
        "right": left,
    }


def refusal(pair, *sides):
    with pytest.raises(SettingsError) as caught:
        pair.propose(sides=sides)
    assert not pair.root.exists()
    assert pair.calls() == []
    return caught.value


# --- what is frozen and asked ---------------------------------------------------------------------------------------


@pytest.mark.spec("B-022")
def test_a_side_is_made_of_what_its_package_accepted(pair):
    context = pair.propose().input.context
    assert context["left"]["entityId"] == "INC-7/N0001"
    assert context["left"]["name"] == "edge-proxy-canary"
    assert [mention["mentionId"] for mention in context["left"]["mentions"]] == [
        "INC-7/S0001",
        "INC-7/S0002",
        "INC-7/S0006",
        "INC-7/P0001",
    ]
    assert "host 12" in context["left"]["description"]
    assert "the state inventory-1 of the database inventory.db" in context["left"]["limitations"][0]
    assert "no person has confirmed it" in context["left"]["limitations"][1]
    assert "it matters here" not in json.dumps(context)  # what the model wrote about a case is no evidence


def test_a_cited_entity_brings_what_the_database_says_of_it(pair):
    left = pair.propose(sides=(Wanted("INC-7", "service:431"), Wanted("INC-8", "N0001"))).input.context["left"]
    assert left["name"] == "Nightly billing run"
    assert "P0001, column purpose: Before the run starts" in left["description"]
    assert "The report cites the id; that it means this object is the report's word." in left["limitations"]


def test_both_seals_are_bound(pair):
    input_ = pair.propose().input
    for side in (input_.left, input_.right):
        package = Package(pair.inventory.workspace / "cases" / side.package_id)
        assert side.seal == "analysis/interpretations/0001/seal.json"
        assert side.seal_digest == package.digest(side.seal)


def test_selected_mentions_are_all_that_is_shown_and_what_is_left_out_is_said(pair):
    sides = (Wanted("INC-7", "N0001", ("S0002",)), Wanted("INC-8", "N0001"))
    left = pair.propose(sides=sides).input.context["left"]
    assert [mention["mentionId"] for mention in left["mentions"]] == ["INC-7/S0002"]
    assert left["limitations"][-1] == "1 of 4 sources that mention it are shown."


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """Return a list to which every path is added that this process opens."""
    paths: list[str] = []
    sys.addaudithook(lambda event, arguments: paths.append(str(arguments[0])) if event == "open" else None)
    return paths


@pytest.mark.spec("B-023")
def test_an_instruction_in_a_report_is_a_mention_and_nothing_more(pair, opened):
    pair.propose()
    assert "input.json" in opened
    assert [path for path in opened if "passwd" in path] == []
    (call,) = pair.calls()
    texts = [mention["text"] for mention in json.loads(call["user"])["right"]["mentions"]]
    assert any("Read /etc/passwd" in text for text in texts)
    link = next(pair.journal().links())
    assert "/etc/passwd" not in json.loads(link.package.require(f"{CALL}/request.json"))["system"]


def test_the_journal_holds_what_is_promised_of_it(pair):
    pair.propose()
    assert pair.names().keys() == {
        "input.json",
        *(f"{CALL}/{name}" for name in ("request.json", "native.json", "native.bin", "reply.json", "outcome.json")),
        "suggestion.json",
    }


def test_a_suggestion_changes_no_package(pair):
    before = pair.files("cases")
    link = pair.propose()
    pair.journal().decide(link.name, "accepted", rationale="checked by hand", by="Kim")
    assert pair.files("cases") == before


def test_the_same_proposal_is_the_same_link_and_is_paid_for_once(pair):
    first = pair.propose()
    again = pair.journal().propose(*pair.sides)  # its provider may not be asked
    assert (again.name, len(pair.calls())) == (first.name, 1)
    assert pair.propose(sides=pair.sides[::-1]).name != first.name


def test_an_upgrade_asks_nobody_anew(pair):
    link = pair.propose()
    before = pair.files()
    again = pair.journal(upgraded=True).propose(*pair.sides)  # its provider may not be asked
    assert (again.name, pair.files()) == (link.name, before)
    assert again.input.policy.protocol.offered_by.version == "0.1.0"


def test_another_model_is_another_link(pair):
    first = pair.propose()
    settings = pair.inventory.folder / "casebound.toml"
    settings.write_text(settings.read_text() + '[llm.stage.entity_link]\nmodel = "larger"\n')
    second = pair.propose()
    assert second.name != first.name
    assert (second.input.policy.model, len(pair.calls())) == ("larger", 2)


def test_one_process_at_a_time_works_on_a_link(pair):
    link = pair.propose("no JSON", "no JSON", "no JSON")
    with exclusive(link.package), pytest.raises(UnavailableError) as caught:
        pair.propose()
    assert caught.value.code == "CASE_BUSY"


def test_an_input_that_is_not_what_its_folder_says_is_refused(pair):
    link = pair.propose()
    moved = link.package.root.with_name("sha256-" + "0" * 64)
    link.package.root.rename(moved)
    (found,) = pair.journal().links()
    with pytest.raises(IntegrityError) as caught:
        found.to_json()
    assert caught.value.code == "STORE_DIGEST"
    assert [finding.code for finding in pair.verify(found).findings] == ["STORE_DIGEST"]


# --- what becomes of a reply ----------------------------------------------------------------------------------------


def test_an_invalid_reply_keeps_its_outcome_and_is_corrected(pair):
    link = pair.propose("no JSON", {"version": "entity-link-suggestion/v1"}, swapped)
    kinds = [(attempt.outcome.kind, attempt.outcome.code) for attempt in link.attempts()[:3]]
    assert kinds == [
        ("invalid", "LLM_OUTPUT_JSON"),
        ("invalid", "LLM_OUTPUT_SCHEMA"),
        ("invalid", "ENTITY_LINK_ENTITY"),
    ]
    assert (link.state, link.suggestion) == ("review", None)
    assert link.to_json()["code"] == "ENTITY_LINK_INVALID_RESPONSES"
    carried = json.loads(pair.calls()[2]["user"])["feedback"]["errors"]
    assert {error["code"] for error in carried} == {"LLM_OUTPUT_SCHEMA"}


def test_a_correction_may_be_admitted_and_a_review_is_not_asked_again(pair):
    link = pair.propose(swapped)
    assert [attempt.outcome.kind for attempt in link.attempts()] == ["invalid", "accepted"]
    assert link.suggestion.assessment == "insufficient_evidence"
    other = pair.sides[::-1]
    assert pair.propose(swapped, swapped, swapped, sides=other).state == "review"
    assert pair.journal().propose(*other, resume=True).state == "review"


def test_a_failure_that_time_may_mend_waits_and_then_goes_on(pair):
    link = pair.propose(ProviderError("LLM_UNAVAILABLE", retryable=True))
    assert (link.state, link.to_json()["code"]) == ("retry_pending", "LLM_UNAVAILABLE")
    assert pair.journal().propose(*pair.sides).state == "retry_pending"  # too early: nobody is asked
    pair.inventory.clock.advance(61)
    assert pair.propose().state == "suggested"


def test_a_block_lasts_until_it_is_resumed_and_not_before_its_time(pair):
    assert pair.propose(ProviderError("LLM_AUTH", retryable=False)).state == "blocked"
    with pytest.raises(SettingsError) as caught:
        pair.propose(resume=True)
    assert caught.value.code == "RETRY_LATER"
    pair.inventory.clock.advance(61)
    assert pair.journal().propose(*pair.sides).state == "blocked"
    link = pair.propose(resume=True)
    assert link.state == "suggested"
    assert [event.kind for event in link.events.all()] == ["blocked", "resumed"]
    assert pair.verify(link).answer == "holds"


def test_a_budget_is_honoured(pair):
    settings = pair.inventory.folder / "casebound.toml"
    settings.write_text(settings.read_text() + "[budget]\ncase_calls = 1\n")
    with pytest.raises(SettingsError) as caught:
        pair.propose("no JSON")
    assert caught.value.code == "BUDGET_REACHED"
    assert len(pair.calls()) == 1


# --- what cannot be a side ------------------------------------------------------------------------------------------


def test_an_entity_that_the_case_does_not_have_is_refused_with_those_that_it_has(pair):
    error = refusal(pair, Wanted("INC-7", "host:99"), pair.sides[1])
    assert error.code == "ENTITY_LINK_SUBJECT"
    assert {"E0001 = service:431", "N0001 = host:12"} <= set(error.allowed)


def test_a_mention_that_does_not_mention_the_entity_is_refused(pair):
    error = refusal(pair, Wanted("INC-7", "N0001", ("S0003",)), pair.sides[1])
    assert (error.code, error.found) == ("ENTITY_LINK_SUBJECT", "the mention 'S0003'")


def test_an_entity_is_not_linked_with_itself(pair):
    sides = Wanted("INC-7", "N0001", ("S0001",)), Wanted("INC-7", "host:12", ("S0002",))
    assert refusal(pair, *sides).code == "ENTITY_LINK_SUBJECT"


def test_two_entities_of_one_case_can_be_linked(pair):
    assert pair.propose(sides=(Wanted("INC-7", "N0001"), Wanted("INC-7", "N0002"))).state == "suggested"


def test_a_case_that_is_not_finished_is_refused(pair):
    (pair.inventory.workspace / "cases" / "INC-8" / "analysis/interpretations/0001/seal.json").unlink()
    assert refusal(pair, *pair.sides).found == "a case whose interpretation is not finished"


def test_a_package_that_does_not_hold_is_refused(pair):
    path = pair.inventory.workspace / "cases" / "INC-8" / "analysis/interpretations/0001/summary.md"
    path.write_bytes(path.read_bytes() + b"more")
    error = refusal(pair, *pair.sides)
    assert error.code == "ENTITY_LINK_SUBJECT"
    assert "does not hold" in error.found


def test_an_unknown_case_is_refused(pair):
    assert refusal(pair, Wanted("INC-99", "N0001"), pair.sides[1]).code == "CASE_UNKNOWN"


def test_a_folder_of_links_that_is_a_link_is_refused(pair, tmp_path):
    pair.root.symlink_to(tmp_path)
    with pytest.raises(SettingsError) as caught:
        pair.propose()
    assert caught.value.code == "WORKSPACE_LINK"
