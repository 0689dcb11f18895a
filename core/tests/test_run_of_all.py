"""What is wrong with every case ends the run: it is told once, nothing more is sent, and the cases stay as they are."""

from __future__ import annotations

import pytest
from casebound.errors import ProviderError, SettingsError
from casebound.progress import derive_progress
from casebound.render.run import run_nodes
from casebound.render.tree import plain
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.runs import HeldModel, execute, rows_of, until
from casebound.testing.scripted import RaisingProvider

REFUSALS = ["LLM_AUTH", "LLM_QUOTA"]


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def refusal(code):
    return ProviderError(code, retryable=False, found="a test")


def states(inventory, names):
    return sorted(derive_progress(inventory.package(name)).state for name in names)


@pytest.mark.parametrize("code", REFUSALS)
def test_a_key_that_is_refused_ends_the_run_and_calls_in_flight_are_recorded(inventory, code):
    names = inventory.admit(20)
    model = HeldModel(scripted={"plan": [refusal(code)]})

    async def let_go(run):
        await until(lambda: model.in_flight == 3)
        model.go.set()

    told = []
    summary = execute(inventory, model, let_go, jobs=3, tell=told.append)
    assert model.counts() == {"plan": 3, "assessment": 0, "interpretation": 0}
    assert states(inventory, names) == ["admitted"] * 17 + ["blocked"] + ["looked_up"] * 2
    assert (summary.stopped, summary.exit_status, summary.dispatches) == (code, 1, 3)
    assert code in summary.error
    assert (summary.refused_total, [ended.message for ended in told]) == (0, [None] * 3)
    assert all(row.lease_owner is None for row in rows_of(inventory).values())
    inventory.clock.advance(61)
    assert execute(inventory, InventoryModel()).cases == {"blocked": 1, "interpreted": 19}
    assert execute(inventory, InventoryModel(), resumes=True).stopped is None
    assert states(inventory, names) == ["interpreted"] * 20


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refused_key_ends_a_resumption_of_all_too(inventory, code):
    inventory.admit(6)
    for name in range(6):
        execute(inventory, InventoryModel(scripted={"plan": [refusal(code)]}), package_id=f"INC-{name}")
    inventory.clock.advance(61)
    model = InventoryModel(scripted={"plan": [refusal(code)] * 6})
    summary = execute(inventory, model, resumes=True, jobs=1)
    assert (summary.stopped, len(model.calls)) == (code, 1)


MORE = '\n[llm.profile.other]\nprovider = "scripted"\nmodel = "other"\n'


def test_a_refused_key_ends_nothing_where_somebody_else_answers(inventory):
    names = inventory.admit(3)
    llm = 'fallback = ["other"]\nfallback_codes = ["LLM_AUTH"]\n'
    inventory.configure(settings_text(llm=llm, more=MORE))
    summary = execute(inventory, InventoryModel(scripted={"plan": [refusal("LLM_AUTH")]}))
    assert (summary.stopped, summary.exit_status) == (None, 0)
    assert states(inventory, names) == ["interpreted"] * 3


def test_a_refused_key_ends_the_run_where_nobody_else_is_asked_because_of_it(inventory):
    inventory.admit(3)
    llm = 'fallback = ["other"]\nfallback_codes = ["LLM_QUOTA"]\n'
    inventory.configure(settings_text(llm=llm, more=MORE))
    model = InventoryModel(scripted={"plan": [refusal("LLM_AUTH")]})
    summary = execute(inventory, model, jobs=1)
    assert (summary.stopped, len(model.calls)) == ("LLM_AUTH", 1)


def test_what_is_refused_for_one_request_is_that_case_s_alone(inventory):
    inventory.admit(3)
    summary = execute(inventory, InventoryModel(scripted={"plan": [refusal("LLM_REQUEST")]}), jobs=1)
    assert (summary.stopped, summary.cases) == (None, {"blocked": 1, "interpreted": 2})


# --- settings ---------------------------------------------------------------------------------------------------------


def test_a_database_that_the_settings_name_wrongly_ends_the_run_and_is_told_once(inventory):
    names = inventory.admit(30)
    inventory.database.rename(inventory.database.with_name("elsewhere"))
    told = []
    summary = execute(inventory, RaisingProvider(), jobs=2, tell=told.append)
    assert (summary.stopped, summary.exit_status, summary.dispatches) == ("SETTINGS_DATABASE", 2, 0)
    assert summary.error.startswith("SETTINGS_DATABASE: ")
    assert (summary.refused_total, [ended.refused for ended in told]) == (0, [False] * len(told))
    assert len(told) <= 4
    inventory.database.with_name("elsewhere").rename(inventory.database)
    assert execute(inventory, InventoryModel()).exit_status == 0
    assert states(inventory, names) == ["interpreted"] * 30


def test_settings_that_differ_from_what_a_case_froze_are_that_case_s_alone(inventory):
    inventory.admit(2)
    execute(inventory, InventoryModel(), package_id="INC-0", max_dispatches=1)
    inventory.configure(settings_text().replace("test-model", "other"))
    summary = execute(inventory, InventoryModel(), jobs=1)
    assert (summary.stopped, summary.exit_status) == (None, 1)
    assert [(one["package"], one["code"]) for one in summary.refused] == [("INC-0", "BINDING_CHANGED")]


# --- why a case was left ----------------------------------------------------------------------------------------------


def test_cases_that_were_leased_and_not_begun_are_left_for_the_reason_of_the_run(inventory):
    inventory.admit(40)
    execute(inventory, InventoryModel(), jobs=16, max_dispatches=1)
    assert {row.stopped for row in rows_of(inventory).values()} <= {"max_dispatches", None}


# --- what is said -----------------------------------------------------------------------------------------------------

WAITS = {"cases": {"retry_pending": 2}, "had": 2, "left": 2, "dispatches": 3, "stopped": None, "refused_total": 0}
WAITS |= {"tokens": {"input": 7, "output": 3, "unreported_calls": 1}, "refused": [], "retry_at": "2026-11-01T08:01:00Z"}


def test_a_time_that_has_come_is_no_advice():
    assert "or after 2026-11-01T08:01:00Z" in plain(run_nodes(WAITS, "2026-11-01T08:00:59Z"))
    assert "after" not in plain(run_nodes(WAITS, "2026-11-01T08:01:00Z"))


def test_calls_that_did_not_report_are_counted_beside_the_tokens():
    assert "tokens 7 in, 3 out (1 call did not say)" in plain(run_nodes(WAITS, ""))


def test_what_ended_the_run_keeps_its_lines():
    drawn = plain(run_nodes({**WAITS, "error": "WORKSPACE_WRITE: full\n  where: here\n  what to do: make room"}, ""))
    assert ["where: here" in line for line in drawn.splitlines()].count(True) == 1
    assert not any("where: here" in line and "WORKSPACE_WRITE" in line for line in drawn.splitlines())


def test_a_workspace_that_is_not_there_is_refused_and_not_made(inventory):
    assert not inventory.workspace.exists()
    with pytest.raises(SettingsError) as caught:
        execute(inventory, RaisingProvider())
    assert (caught.value.code, caught.value.exit_status) == ("USAGE", 2)
    assert not inventory.workspace.exists()
    inventory.workspace.mkdir()
    assert execute(inventory, RaisingProvider()).exit_status == 0
