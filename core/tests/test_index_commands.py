"""A command that works on one case, and `reindex`, beside the index of many."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from casebound.errors import ProviderError, UnavailableError
from casebound.project import Project
from casebound.result import Result
from casebound.testing.distributions import run_casebound
from casebound.testing.index_place import IndexPlace, claim, dead_owner
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_command import install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.place import own_file
from casebound.workspace.row import CaseRow, derive_row

Run = Callable[..., subprocess.CompletedProcess[str]]
QUOTA = ProviderError("LLM_QUOTA", retryable=False)


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path)


@pytest.fixture
def place(tmp_path: Path) -> IndexPlace:
    """The same workspace; it has an index as soon as this opens one."""
    return IndexPlace.write(tmp_path)


def only_row(index: Index) -> CaseRow:
    (row,) = index.rows()
    return row


def test_a_command_makes_no_index_of_its_own(inventory: Inventory, place: IndexPlace) -> None:
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    assert not own_file(place.workspace).exists()


def test_each_command_leaves_the_row_that_follows_from_the_files(inventory: Inventory, place: IndexPlace) -> None:
    def is_told(result: Result, state: str) -> None:
        assert result.state == state
        assert only_row(index).state == state
        row = only_row(index)
        assert (row.lease_owner, row.stopped, row.last_run) == (None, None, None)
        assert row.calls == derive_row(inventory.package()).calls

    with place.open() as index:
        is_told(inventory.resolve(InventoryModel(), stop_after="construction"), "built")
        is_told(inventory.resolve(InventoryModel(scripted={"assessment": [QUOTA]})), "blocked")
        inventory.clock.advance(61)
        is_told(inventory.project(InventoryModel()).resume("INC-7"), "interpreted")
        is_told(inventory.project(InventoryModel()).revise("INC-7", stop_after="construction"), "researched")


def test_the_case_is_leased_while_a_command_works_on_it(inventory: Inventory, place: IndexPlace) -> None:
    seen = []

    class Looking(InventoryModel):
        async def send(self, request):
            seen.append((only_row(index).lease_owner is not None, claim(index)))
            return await super().send(request)

    with place.open() as index:
        assert inventory.resolve(Looking()).state == "interpreted"
        assert only_row(index).lease_owner is None
    assert seen == [(True, [])] * 3


def test_an_index_that_appears_meanwhile_gets_the_row_at_the_end(inventory: Inventory, place: IndexPlace) -> None:
    class Appearing(InventoryModel):
        async def send(self, request):
            with place.open():
                return await super().send(request)

    assert inventory.resolve(Appearing()).state == "interpreted"
    with place.open() as index:
        assert only_row(index).state == "interpreted"


COMMANDS: dict[str, Callable[[Project], object]] = {
    "resume": lambda project: project.resume("INC-7"),
    "revise": lambda project: project.revise("INC-7"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_case_that_a_run_has_leased_is_busy(inventory: Inventory, place: IndexPlace, command: str) -> None:
    inventory.resolve(InventoryModel(), stop_after="research")
    with place.open() as index:
        index.hold(new_owner(), CaseRow("INC-7"))
        with pytest.raises(UnavailableError) as caught:
            COMMANDS[command](inventory.project(RaisingProvider()))
        assert (caught.value.code, caught.value.found) == ("CASE_BUSY", "a run that has leased it")
        result = inventory.resolve(RaisingProvider())
        assert (result.state, result.code) == ("refused", "CASE_BUSY")
        place.clock.advance(place.settings.workspace.lease_s)
        inventory.clock.advance(place.settings.workspace.lease_s)
        assert inventory.resolve(InventoryModel()).state == "interpreted"


def test_the_lease_of_a_command_that_was_killed_is_nobodys(inventory: Inventory, place: IndexPlace) -> None:
    inventory.resolve(InventoryModel(), stop_after="research")
    with place.open() as index:
        index.hold(dead_owner(), CaseRow("INC-7"))
        assert inventory.resolve(InventoryModel()).state == "interpreted"
        assert only_row(index).finished


def test_a_command_that_is_cut_off_frees_the_lease(inventory: Inventory, place: IndexPlace) -> None:
    class CutOff(Exception):
        pass

    def interrupt(package: object, step: str) -> None:
        if step == "research":
            raise CutOff

    with place.open() as index:
        project = inventory.project(InventoryModel())
        project.on_step = interrupt
        with pytest.raises(CutOff):
            list(project.resolve([inventory.report]))
        assert (only_row(index).state, only_row(index).lease_owner) == ("built", None)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_an_index_that_fails_is_told_once_and_costs_no_result(
    inventory: Inventory, place: IndexPlace, when: str
) -> None:
    class Breaking(InventoryModel):
        async def send(self, request):
            own_file(place.workspace).write_bytes(b"broken")
            return await super().send(request)

    if when == "before":
        own_file(place.workspace).write_bytes(b"broken")
    project = inventory.project(Breaking())
    (result,) = project.resolve([inventory.report])
    assert (result.state, result.code) == ("interpreted", None)
    assert [note.partition(":")[0] for note in project.notes] == ["INDEX_BROKEN"]
    assert "casebound reindex" in project.notes[0]
    assert project.reindex() == {"interpreted": 1}


# --- casebound reindex ----------------------------------------------------------------------------------------------


@pytest.fixture
def run(inventory: Inventory, tmp_path: Path) -> Run:
    """Run the program on the project."""
    plugins = install_inventory(tmp_path / "plugins")
    where = ["--project-config", str(inventory.folder / "casebound.toml"), "--workspace", str(inventory.workspace)]
    return lambda *words: run_casebound([*words, *where], plugins=plugins, cwd=tmp_path)


def test_reindex_tells_how_many_cases_stand_where(inventory: Inventory, run: Run) -> None:
    assert run("reindex").stdout == "0 cases\n"
    inventory.resolve(InventoryModel(), stop_after="construction")
    assert run("reindex").stdout == "1 case: 1 built\n"
    inventory.resolve(InventoryModel(), stop_after="admission", package_id="other")
    done = run("reindex", "--format", "json")
    assert json.loads(done.stdout) == {"cases": 2, "states": {"admitted": 1, "built": 1}}


def test_a_command_beside_a_broken_index_names_the_command_that_mends_it(
    inventory: Inventory, place: IndexPlace, run: Run
) -> None:
    own_file(place.workspace).write_bytes(b"broken")
    first = run("resolve", "--stop-after", "construction", str(inventory.report))
    assert first.returncode == 0
    assert first.stderr.count("INDEX_BROKEN") == 1
    assert "casebound reindex" in first.stderr
    assert run("reindex").stdout == "1 case: 1 built\n"
    again = run("resolve", "--stop-after", "construction", str(inventory.report))
    assert (again.returncode, "INDEX" in again.stderr) == (0, False)


def test_reindex_that_cannot_reach_the_index_ends_with_status_3(inventory: Inventory, run: Run) -> None:
    url = '[workspace]\nindex_url = "postgresql://nobody@127.0.0.1:9/cases"\n'
    settings = inventory.folder / "casebound.toml"
    settings.write_text(settings.read_text() + url)
    done = run("reindex")
    assert (done.returncode, done.stdout) == (3, "")
    assert "INDEX_UNAVAILABLE" in done.stderr
    assert "nobody" not in done.stderr
