"""Failures of a provider and replies that break the rules: two counts, two policies, both frozen with the case."""

from __future__ import annotations

import pytest
from casebound.errors import ProviderError, SettingsError
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider

BAD = "no JSON"
BUSY = ProviderError("LLM_RATE_LIMITED", retryable=True)


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def go_on(inventory, model):
    """Repeat the same command, each time after the retry time, until the case waits for somebody or is finished."""
    while (result := inventory.resolve(model)).state == "retry_pending":
        inventory.clock.advance(60)
    return result


@pytest.mark.spec("A-113j", "A-104")
@pytest.mark.parametrize("stage", ["plan", "assessment", "interpretation"])
@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([BAD, BUSY, BAD, BUSY], "interpreted"),
        ([BUSY, BUSY, BAD, BAD], "interpreted"),
        ([BAD, BUSY, BAD, BUSY, BAD], "review"),
        ([BAD, BUSY, BAD, BUSY, BUSY], "blocked"),
        ([BUSY, BUSY, BUSY], "blocked"),
        ([BAD, BAD, BAD], "review"),
    ],
)
def test_a_failure_takes_nothing_from_the_replies_nor_a_reply_from_the_retries(inventory, stage, answers, state):
    model = InventoryModel(scripted={stage: answers})
    assert go_on(inventory, model).state == state
    assert model.left()[stage] == 0
    assert model.counts()[stage] == len(answers) + (state == "interpreted")


@pytest.mark.spec("A-102", "A-104")
@pytest.mark.parametrize(
    ("answers", "state"), [([BUSY, BUSY], "interpreted"), ([BUSY, BUSY, BUSY], "blocked"), ([BUSY, BAD], "review")]
)
def test_a_resume_begins_a_new_count_of_failures_and_none_of_replies(inventory, answers, state):
    before = [BAD, BUSY, BAD, BUSY, BUSY]
    assert go_on(inventory, InventoryModel(scripted={"plan": before})).state == "blocked"
    inventory.clock.advance(60)
    model = InventoryModel(scripted={"plan": answers})
    assert inventory.project(model).resume("INC-7").state == ("retry_pending")
    inventory.clock.advance(60)
    assert go_on(inventory, model).state == state
    assert model.left()["plan"] == 0


@pytest.mark.parametrize(("now", "resolution"), [(0, 1), (9, 9)])
def test_the_policies_of_today_change_nothing_for_a_case_that_has_begun(inventory, now, resolution):
    model = InventoryModel(scripted={"plan": [BUSY, BAD, BAD, BUSY, BUSY, BAD]})
    assert inventory.resolve(model).state == "retry_pending"
    inventory.clock.advance(60)
    changed = settings_text(
        resolution={"max_invalid_responses": resolution},
        llm=f"[llm.retry]\nmax_retries = {now}\n[llm.stage.plan.retry]\nmax_retries = {now}\n",
    )
    inventory.configure(changed)
    assert go_on(inventory, model).state == "blocked"  # after the second retry, and not before
    assert model.left()["plan"] == 1
    inventory.clock.advance(60)
    assert inventory.project(model).resume("INC-7").state == "review"  # at the third reply, and not before
    inventory.clock.advance(86_400)
    with pytest.raises(SettingsError, match="RESUME_REFUSED"):
        inventory.project(RaisingProvider()).resume("INC-7")


def test_a_revision_is_bounded_by_the_policies_of_its_own_beginning(inventory):
    assert inventory.resolve(InventoryModel(scripted={"plan": [BAD] * 3})).state == "review"
    inventory.configure(settings_text(resolution={"max_invalid_responses": 1}, llm="[llm.retry]\nmax_retries = 0\n"))
    assert inventory.project(InventoryModel(scripted={"plan": [BAD]})).revise("INC-7").state == "review"
    assert inventory.project(InventoryModel(scripted={"plan": [BUSY]})).revise("INC-7").state == "blocked"
