"""How a run stops before its time, what it waits for, and what it leaves behind."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from contextlib import closing

import pytest
from casebound.errors import CaseboundError, ProviderError, SettingsError
from casebound.progress import derive_progress
from casebound.result import derive_result
from casebound.runs import Run, RunOptions
from casebound.store.write import unwritable
from casebound.testing import inventory_phases
from casebound.testing.faults import watch
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_phases import budget_left, set_budget
from casebound.testing.runs import HeldModel, execute, rows_of, until
from casebound.testing.scripted import RaisingProvider

PASSING = ProviderError("LLM_UNAVAILABLE", retryable=True, found="a test")


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def calls_on_disk(inventory, names):
    return sum(sum(derive_result(inventory.package(name)).calls.values()) for name in names)


def unknown_calls(inventory):
    return sum(row.unknown_calls for row in rows_of(inventory).values())


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-121")
def test_with_one_dispatch_the_second_call_is_not_made_and_the_case_goes_on_later(inventory):
    [name] = inventory.admit(1)
    model = InventoryModel()
    summary = execute(inventory, model, max_dispatches=1)
    assert model.counts() == {"plan": 1, "assessment": 0, "interpretation": 0}
    assert (summary.dispatches, summary.stopped, summary.exit_status) == (1, "max_dispatches", 1)
    assert derive_progress(inventory.package(name)).state == "looked_up"
    attempts = inventory.package(name).names("analysis/interpretations/0001/entity-resolution/attempts")
    assert attempts == ["plan-0001"]  # nothing is frozen of the call that was not made
    model = InventoryModel()
    assert execute(inventory, model).exit_status == 0
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 1}


@pytest.mark.parametrize("most", [0, 1, 4, 7])
def test_never_one_call_more_is_sent_however_many_are_in_flight(inventory, most):
    names = inventory.admit(5)
    model = HeldModel(scripted={"plan": ["no JSON", PASSING]})  # corrections and retries are calls too

    async def let_go(run):
        await until(lambda: run.tally.in_flight == min(most, 5))
        model.go.set()

    summary = execute(inventory, model, let_go, jobs=5, max_dispatches=most)
    assert len(model.calls) == summary.dispatches == most == calls_on_disk(inventory, names)
    assert summary.stopped == "max_dispatches"
    assert unknown_calls(inventory) == 0


def test_a_limit_that_just_suffices_stops_nothing(inventory):
    inventory.admit(1)
    summary = execute(inventory, InventoryModel(), max_dispatches=3)
    assert (summary.dispatches, summary.stopped, summary.exit_status) == (3, None, 0)


def test_the_budget_of_a_run_ends_the_whole_run_and_says_so(inventory):
    names = inventory.admit(4)
    inventory.configure(settings_text(more="[budget]\nrun_calls = 4\n"))
    model = InventoryModel()
    summary = execute(inventory, model, jobs=2)
    assert len(model.calls) == 4 == calls_on_disk(inventory, names)
    assert (summary.stopped, summary.exit_status, summary.refused_total) == ("BUDGET_REACHED", 1, 0)


def test_the_budget_of_a_case_ends_that_case_alone(inventory):
    names = inventory.admit(2)
    execute(inventory, InventoryModel(scripted={"plan": ["x"]}), package_id="INC-0", max_dispatches=2)
    inventory.configure(settings_text(more="[budget]\ncase_calls = 3\n"))
    summary = execute(inventory, InventoryModel())
    assert [derive_progress(inventory.package(name)).state for name in names] == ["assessed", "interpreted"]
    assert [(one["package"], one["code"]) for one in summary.refused] == [("INC-0", "BUDGET_REACHED")]
    assert (summary.stopped, summary.exit_status) == (None, 1)


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-113j", "A-122")
def test_the_same_command_after_a_pending_retry_goes_on_and_before_its_time_it_does_nothing(inventory):
    [name] = inventory.admit(1)
    summary = execute(inventory, InventoryModel(scripted={"assessment": [PASSING]}))
    assert (summary.cases, summary.exit_status) == ({"retry_pending": 1}, 1)
    assert summary.retry_at == "2026-11-01T08:01:00.000Z"
    inventory.clock.advance(59)
    assert execute(inventory, RaisingProvider()).had == 0
    inventory.clock.advance(1)
    model = InventoryModel()
    assert execute(inventory, model).exit_status == 0
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 1}
    assert derive_progress(inventory.package(name)).state == "interpreted"
    assert execute(inventory, RaisingProvider()).had == 0


def test_a_retry_whose_time_comes_while_the_run_still_works_goes_on_in_the_same_run(inventory):
    names = inventory.admit(2)
    model = HeldModel(scripted={"plan": [PASSING]})

    async def meanwhile(run):
        await until(lambda: model.in_flight == 2)
        model.go.set()
        await until(lambda: run.outcomes.states["retry_pending"] == 1)
        model.go.clear()
        await until(lambda: model.in_flight == 1)
        while model.in_flight == 1:  # until it is asked again, while the other one is still in flight
            inventory.clock.advance(1)
            await asyncio.sleep(0.001)
        assert run.outcomes.states["interpreted"] == 0
        model.go.set()

    summary = execute(inventory, model, meanwhile, jobs=2)
    assert [derive_progress(inventory.package(name)).state for name in names] == ["interpreted"] * 2
    assert (summary.cases, summary.exit_status) == ({"interpreted": 2}, 0)


def test_a_run_that_waits_stays_until_the_time_of_a_retry_has_come(inventory):
    inventory.admit(1)
    model = InventoryModel(scripted={"plan": [PASSING], "interpretation": [PASSING]})

    waited = set()

    async def pass_time(run):
        while not run.outcomes.states["interpreted"]:
            await asyncio.sleep(0.001)
            if run.dispatch.waits_until is not None:
                waited.add(run.dispatch.waits_until)
                inventory.clock.advance(1)

    summary = execute(inventory, model, pass_time, wait=True)
    assert (summary.exit_status, summary.dispatches, len(waited)) == (0, 5, 2)


def test_waiting_for_a_retry_ends_when_the_run_is_interrupted(inventory):
    inventory.admit(1)

    async def interrupt(run):
        await until(lambda: run.dispatch is not None and run.dispatch.waits_until is not None)
        run.gate.close("interrupted")

    summary = execute(inventory, InventoryModel(scripted={"plan": [PASSING]}), interrupt, wait=True)
    assert (summary.stopped, summary.exit_status, summary.dispatches) == ("interrupted", 130, 1)


# --- interruptions ----------------------------------------------------------------------------------------------------


def test_when_the_gate_closes_calls_in_flight_are_recorded_and_nothing_new_begins(inventory):
    names = inventory.admit(5)
    model = HeldModel()

    async def interrupt(run):
        await until(lambda: model.in_flight == 2)
        run.gate.close("interrupted")
        model.go.set()

    summary = execute(inventory, model, interrupt, jobs=2)
    assert (summary.stopped, summary.exit_status) == ("interrupted", 130)
    assert model.counts() == {"plan": 2, "assessment": 0, "interpretation": 0}
    progress = [derive_progress(inventory.package(name)).state for name in names]
    assert sorted(progress) == ["admitted"] * 3 + ["looked_up"] * 2
    assert unknown_calls(inventory) == 0
    assert all(row.lease_owner is None for row in rows_of(inventory).values())
    assert execute(inventory, InventoryModel()).exit_status == 0


def test_a_run_that_is_cancelled_ends_at_once_and_keeps_no_lease(inventory):
    names = inventory.admit(4)
    model = HeldModel()
    project = inventory.project(model)
    run = Run(project, RunOptions(jobs=2))

    def began(task):
        async def cancel():
            await until(lambda: model.in_flight == 2)
            task.cancel()

        run.beside = asyncio.ensure_future(cancel())

    with pytest.raises(asyncio.CancelledError):
        run.execute(began)
    project.close()
    rows = rows_of(inventory)
    assert all(row.lease_owner is None for row in rows.values())
    assert [rows[name].state for name in names] == [derive_progress(inventory.package(name)).state for name in names]
    model = InventoryModel()
    assert execute(inventory, model).exit_status == 0
    assert [derive_progress(inventory.package(name)).state for name in names] == ["interpreted"] * 4
    assert unknown_calls(inventory) == 2  # sent, and nobody waited for the reply
    assert model.counts()["plan"] == 4


def test_an_output_that_is_closed_ends_the_run_in_order(inventory):
    inventory.admit(6)
    model = HeldModel()

    def tell(ended):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    async def let_go(run):
        await until(lambda: model.in_flight == 2)
        model.go.set()

    with pytest.raises(BrokenPipeError):
        execute(inventory, model, let_go, jobs=2, tell=tell)
    assert unknown_calls(inventory) == 0
    assert model.counts()["plan"] < 6


# --- what goes away ---------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_ends_the_run_and_no_case_pays_for_another_call(inventory):
    inventory.admit(5)
    model, full = InventoryModel(), []

    def write(name):
        if full or name.endswith("plan.json"):
            full.append(name)
            raise unwritable(inventory.workspace, OSError(errno.ENOSPC, ""))

    with watch(write):
        summary = execute(inventory, model, jobs=1)
    assert (summary.stopped, summary.exit_status) == ("WORKSPACE_WRITE", 1)
    assert "WORKSPACE_WRITE" in summary.error
    assert len(model.calls) == 1


def test_an_index_that_goes_away_ends_the_run_and_what_is_in_flight_is_recorded(inventory):
    inventory.admit(4)
    model = HeldModel()

    async def break_index(run):
        await until(lambda: model.in_flight == 2)
        with closing(sqlite3.connect(inventory.workspace / "index.sqlite")) as connection:
            connection.execute("drop table casebound_case")
        model.go.set()

    with pytest.raises(CaseboundError) as caught:
        execute(inventory, model, break_index, jobs=2)
    assert caught.value.code == "INDEX_BROKEN"
    assert 2 <= len(model.calls) < 12
    inventory.project(RaisingProvider()).reindex()
    assert unknown_calls(inventory) == 0
    assert execute(inventory, InventoryModel()).exit_status == 0


# --- phases -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-119")
@pytest.mark.parametrize(
    ("phase", "state"), [("admission", "admitted"), ("construction", "built"), ("research", "researched")]
)
def test_preparing_asks_no_model_and_is_done_when_every_case_is_prepared(inventory, phase, state):
    inventory.admit(3)
    summary = execute(inventory, RaisingProvider(), stop_after=phase)
    assert (summary.cases, summary.dispatches, summary.exit_status) == ({state: 3}, 0, 0)
    assert execute(inventory, RaisingProvider(), stop_after=phase).had == 0


def test_phases_of_plugins_follow_and_a_run_may_stop_before_them(inventory):
    set_budget(inventory.workspace, 9)
    inventory.admit(2)
    summary = execute(inventory, InventoryModel(), phases=True, jobs=1, stop_after="interpretation")
    assert (budget_left(inventory.workspace), summary.exit_status) == (9, 0)
    summary = execute(inventory, RaisingProvider(), phases=True, jobs=1, stop_after="hypothesis")
    assert (budget_left(inventory.workspace), summary.exit_status) == (7, 0)
    summary = execute(inventory, RaisingProvider(), phases=True, jobs=1)
    assert (budget_left(inventory.workspace), summary.exit_status) == (5, 0)
    assert all(row.finished for row in rows_of(inventory).values())


def test_what_a_phase_does_to_its_case_is_seen_at_once(inventory, monkeypatch):
    def damage(package):
        (package / "admission.json").write_bytes(b"{}")

    inventory.admit(1)
    monkeypatch.setattr(inventory_phases, "hypothesis", damage)
    execute(inventory, InventoryModel(), phases=True, stop_after="hypothesis")
    (row,) = rows_of(inventory).values()
    assert (row.state, row.code) == ("broken", "STORE_JSON")


# --- before anything is written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "settings", "code", "said"),
    [
        ({"stop_after": "later"}, {}, "USAGE", "--stop-after"),
        ({"package_id": "INC-9"}, {}, "CASE_UNKNOWN", "INC-9"),
        ({"case_id": "INC-9"}, {}, "CASE_UNKNOWN", "INC-9"),
        ({"case_id": "INC-1", "package_id": "INC-0"}, {}, "CASE_UNKNOWN", "INC-0 of case INC-1"),
        ({"package_id": "../INC-0"}, {}, "CASE_ID", "../INC-0"),
        ({"jobs": 0}, {}, "USAGE", "--jobs"),
        ({"jobs": 5000}, {}, "USAGE", "--jobs"),
        ({"max_dispatches": -1}, {}, "USAGE", "--max-dispatches"),
        ({}, {"more": '[workspace]\nrunner = "nobody"\n'}, "SETTINGS_NAME", "workspace.runner"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(inventory, options, settings, code, said):
    inventory.admit(2)
    inventory.configure(settings_text(**settings))
    with pytest.raises(SettingsError) as caught:
        execute(inventory, RaisingProvider(), **options)
    assert (caught.value.code, caught.value.exit_status) == (code, 2)
    assert said in str(caught.value)
    assert not (inventory.workspace / "index.sqlite").exists()


def test_a_run_may_be_for_one_case_or_one_package(inventory):
    names = inventory.admit(3)
    assert execute(inventory, InventoryModel(), case_id="INC-0").cases == {"interpreted": 1}
    assert execute(inventory, InventoryModel(), package_id="INC-1", case_id="INC-1").cases == {"interpreted": 1}
    assert derive_progress(inventory.package(names[2])).state == "admitted"
