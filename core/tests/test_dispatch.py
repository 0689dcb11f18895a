"""A run over many cases: who is worked on when, how often, and what one case has to do with another."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing

import pytest
from casebound.errors import ProviderError
from casebound.progress import derive_progress
from casebound.runs import Run, RunOptions
from casebound.store.lock import exclusive
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel, message_of
from casebound.testing.runs import HeldModel, execute, rows_of, until
from casebound.testing.scripted import RaisingProvider
from casebound.workspace.index import Index

LASTING = ProviderError("LLM_REQUEST", retryable=False, found="a test")


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def states(inventory, names):
    return [derive_progress(inventory.package(name)).state for name in names]


# --- the whole job --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 3, None])
def test_every_case_is_taken_to_its_end_and_asked_for_once(inventory, jobs):
    names = inventory.admit(5)
    model, ended = InventoryModel(), []
    summary = execute(inventory, model, tell=ended.append, jobs=jobs)
    assert states(inventory, names) == ["interpreted"] * 5
    assert model.counts() == {"plan": 5, "assessment": 5, "interpretation": 5}
    assert sorted(one.row.package_id for one in ended) == names
    assert summary.to_json() == {
        "cases": {"interpreted": 5},
        "had": 5,
        "left": 0,
        "dispatches": 15,
        "tokens": {"input": 1500, "output": 150, "unreported_calls": 0},
        "stopped": None,
        "retry_at": None,
        "refused": [],
        "refused_total": 0,
    }
    assert summary.exit_status == 0
    assert all(row.finished and row.lease_owner is None for row in rows_of(inventory).values())


def test_a_workspace_that_is_done_is_left_alone(inventory):
    inventory.admit(2)
    execute(inventory, InventoryModel())
    summary = execute(inventory, RaisingProvider())
    assert (summary.had, summary.dispatches, summary.exit_status) == (0, 0, 0)
    assert summary.cases == {"interpreted": 2}


def test_an_empty_workspace_is_done(inventory):
    (inventory.folder / "workspace").mkdir()
    summary = execute(inventory, RaisingProvider())
    assert (summary.cases, summary.exit_status) == ({}, 0)


def test_as_many_cases_as_asked_for_are_under_way_and_never_more(inventory):
    inventory.admit(6)
    model = HeldModel()

    async def watch(run):
        await until(lambda: model.in_flight == 3)
        assert len(run.dispatch.under_way) == 3
        assert run.tally.in_flight == 3
        model.go.set()

    summary = execute(inventory, model, watch, jobs=3)
    assert model.most == 3
    assert summary.cases == {"interpreted": 6}


def test_what_a_run_holds_does_not_grow_with_the_number_of_cases(inventory):
    inventory.admit(12)
    seen = []

    class Counting(InventoryModel):
        async def send(self, request):
            seen.append(len(asyncio.all_tasks()))
            return await super().send(request)

    execute(inventory, Counting(), jobs=2)
    assert max(seen) <= 2 + 6  # the cases, the run, what renews its leases, what waits for the next case


def test_two_runs_on_one_workspace_share_its_cases(inventory):
    """Each in a process's place: a project, an index and an owner of its own."""
    names = inventory.admit(6)
    models = [HeldModel(), HeldModel()]

    async def both():
        projects = [inventory.project(model) for model in models]
        runs = [Run(project, RunOptions(jobs=2)) for project in projects]
        for model in models:
            model.go.set()
        await asyncio.gather(*(asyncio.to_thread(run.execute) for run in runs))
        for project in projects:
            await asyncio.to_thread(project.close)

    asyncio.run(both())
    asked = Counter(message_of(call)["sources"][0]["text"] for model in models for call in model.calls)
    assert states(inventory, names) == ["interpreted"] * 6
    assert sum(model.counts()["plan"] for model in models) == 6
    assert sum(asked.values()) == 18


# --- one case and the others ----------------------------------------------------------------------------------------


@pytest.mark.spec("A-100")
def test_a_blocked_case_holds_no_worker(inventory):
    names = inventory.admit(3)
    summary = execute(inventory, InventoryModel(scripted={"plan": [LASTING]}), jobs=1)
    assert sorted(states(inventory, names)) == ["blocked", "interpreted", "interpreted"]
    assert summary.cases == {"blocked": 1, "interpreted": 2}
    assert (summary.left, summary.exit_status, summary.retry_at) == (1, 1, "2026-11-01T08:01:00.000Z")


@pytest.mark.spec("A-101")
def test_a_run_never_picks_a_blocked_case_up_nor_one_in_review(inventory):
    inventory.admit(2)
    execute(inventory, InventoryModel(scripted={"plan": [LASTING, "x", "x", "x"]}), jobs=1)
    assert sorted(row.state for row in rows_of(inventory).values()) == ["blocked", "review"]
    inventory.clock.advance(3600)
    summary = execute(inventory, RaisingProvider(), wait=True)
    assert (summary.had, summary.left, summary.exit_status) == (0, 2, 1)


def test_a_case_that_is_refused_ends_no_other_and_is_told(inventory):
    names = inventory.admit(3)
    execute(inventory, InventoryModel(), package_id="INC-1", max_dispatches=1)
    inventory.configure(settings_text(model="other"))
    ended = []
    summary = execute(inventory, InventoryModel(), tell=ended.append)
    assert states(inventory, names) == ["interpreted", "looked_up", "interpreted"]
    [refused] = summary.refused
    assert (refused["package"], refused["code"], summary.refused_total) == ("INC-1", "BINDING_CHANGED", 1)
    assert "it asked scripted test-model" in refused["error"]
    assert "casebound revise INC-1" in refused["error"]
    assert [one.row.package_id for one in ended if one.refused] == ["INC-1"]
    assert rows_of(inventory)["INC-1"].stopped == "BINDING_CHANGED"
    assert summary.exit_status == 1


def test_a_bug_in_one_case_ends_no_other_and_is_told_as_ours(inventory, monkeypatch):
    names = inventory.admit(3)
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-1234")

    class Broken(InventoryModel):
        async def send(self, request):
            if not self.calls:
                self.calls.append(request)
                raise ZeroDivisionError("of all things, sk-canary-1234")
            return await super().send(request)

    summary = execute(inventory, Broken(), jobs=1)
    assert Counter(states(inventory, names)) == {"interpreted": 2, "researched": 1}
    [refused] = summary.refused
    assert refused["code"] == "CONTRACT_BROKEN"
    assert "ZeroDivisionError: of all things" in refused["error"]
    assert "canary" not in refused["error"]


def test_a_package_that_cannot_be_read_is_refused_and_ends_no_other(inventory):
    names = inventory.admit(3)
    (inventory.workspace / "cases" / "INC-1" / "admission.json").write_bytes(b"{}")
    summary = execute(inventory, InventoryModel())
    assert summary.cases == {"broken": 1, "interpreted": 2}
    assert (summary.left, summary.exit_status) == (1, 1)
    assert states(inventory, [names[0], names[2]]) == ["interpreted"] * 2


def test_a_case_that_another_process_holds_is_passed_over_and_not_refused(inventory):
    inventory.admit(2)
    with exclusive(inventory.package("INC-0")):
        summary = execute(inventory, InventoryModel())
    assert (summary.refused_total, summary.left, summary.exit_status) == (0, 1, 1)
    assert rows_of(inventory)["INC-1"].finished
    summary = execute(inventory, InventoryModel())
    assert summary.exit_status == 0


def test_a_lease_is_renewed_as_long_as_its_case_is_under_way(inventory):
    inventory.admit(1)
    model = HeldModel()

    async def watch(run):
        await until(lambda: model.in_flight == 1)
        with closing(Index.open(run.project.workspace, run.project.settings, inventory.clock)) as index:
            for _ in range(5):
                before = index.get("INC-0").lease_until
                await until(lambda: inventory.clock.is_awaited(20))  # for a third of a lease
                inventory.clock.advance(20)
                await until(lambda before=before: index.get("INC-0").lease_until > before)
        model.go.set()

    assert execute(inventory, model, watch).exit_status == 0
    assert rows_of(inventory)["INC-0"].lease_owner is None
