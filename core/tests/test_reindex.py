"""The index is made to agree with the packages: after anything that happened, and whatever was left of it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.errors import ProviderError, SettingsError, UnavailableError
from casebound.progress import derive_progress
from casebound.project import Project
from casebound.testing.index_place import IndexPlace, cases, claim, dead_owner
from casebound.testing.inventory import REPORT, Inventory, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_phases import set_budget
from casebound.workspace import reindex as module
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.place import own_file
from casebound.workspace.reindex import reconcile, reindex
from casebound.workspace.row import DERIVED, CaseRow, derive_row
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

QUOTA = ProviderError("LLM_QUOTA", retryable=False)
BUSY = ProviderError("LLM_RATE_LIMITED", retryable=True)
IDS = ("INC-1", "INC-2", "INC-3")


@pytest.fixture
def place(tmp_path: Path) -> IndexPlace:
    """A workspace with three admitted cases and no index."""
    found = IndexPlace.write(tmp_path)
    inventory = write_inventory(tmp_path)
    for report in reports(inventory):
        list(inventory.project(InventoryModel()).resolve([report], stop_after="admission"))
    return found


def reports(inventory: Inventory) -> list[Path]:
    paths = [inventory.folder / f"{name}.md" for name in IDS]
    for path in paths:
        path.write_text(REPORT.replace("INC-7", path.stem))
    return paths


@contextmanager
def reindexed(place: IndexPlace, phases: tuple[str, ...] = ()) -> Iterator[Index]:
    with closing(reindex(place.workspace, place.settings, place.clock, phases)) as index:
        yield index


def derived(index: Index) -> list[tuple[object, ...]]:
    return [tuple(getattr(row, name) for name in DERIVED) for row in index.rows()]


def ids(index: Index) -> list[str]:
    return [row.package_id for row in index.rows()]


# --- reconcile ------------------------------------------------------------------------------------------------------


def test_packages_without_a_row_get_one_and_rows_without_a_package_go(place: IndexPlace) -> None:
    with place.open(CaseRow("gone", state="planned"), CaseRow("INC-2", state="planned")) as index:
        shutil.rmtree(place.workspace.cases / "INC-3")
        reconcile(index, place.workspace, ())
        assert [(row.package_id, row.state) for row in index.rows()] == [("INC-1", "admitted"), ("INC-2", "planned")]


@pytest.mark.parametrize("name", ["..", ".", "/", "../reports", "INC-1/source", ""])
def test_a_row_whose_name_no_package_has_goes_wherever_it_leads(place: IndexPlace, name: str) -> None:
    for again in (reconcile, lambda index, workspace, phases: reindexed(place).__enter__().close()):
        with place.open(CaseRow(name, state="broken", code="STORE_JSON")) as index:
            again(index, place.workspace, ())
            assert ids(index) == list(IDS)


def test_a_case_that_appears_meanwhile_keeps_its_row(place: IndexPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.open() as index:
        known = place.workspace.package_ids()
        place.workspace.admit(place.workspace.package("INC-4"))
        index.upsert([CaseRow("INC-4", state="built")])
        monkeypatch.setattr(type(place.workspace), "package_ids", lambda self: known)  # as they were a moment ago
        reconcile(index, place.workspace, ())
        assert ids(index) == [*IDS, "INC-4"]


def test_what_may_be_out_of_date_is_derived_again(place: IndexPlace) -> None:
    dead, alive = dead_owner(), new_owner()
    with place.open(CaseRow("INC-1", state="broken", code="STORE_JSON"), CaseRow("INC-2", state="planned")) as index:
        index.hold(dead, CaseRow("INC-2"))
        index.hold(alive, CaseRow("INC-3", state="planned"))
        reconcile(index, place.workspace, ())
        assert [(row.state, row.lease_owner) for row in index.rows()] == [
            ("admitted", None),
            ("admitted", None),
            ("planned", alive),
        ]


def test_a_row_that_somebody_claims_meanwhile_is_left_to_him(
    place: IndexPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = new_owner()
    with place.open(*(CaseRow(name, state="new") for name in IDS)) as index:

        def derive_slowly(package: object, phases: object) -> CaseRow:
            row = derive_row(package, phases)  # type: ignore[arg-type]  # as it is called
            if row.package_id == "INC-2":
                claim(index, owner, limit=2)
                index.release(owner, CaseRow("INC-1", state="planned"))
            return row

        monkeypatch.setattr(module, "derive_row", derive_slowly)
        reconcile(index, place.workspace, ())
        assert [(row.state, row.lease_owner) for row in index.rows()] == [
            ("planned", None),
            ("new", owner),
            ("admitted", None),
        ]


def test_a_plugin_that_is_installed_later_makes_finished_cases_unfinished(tmp_path: Path) -> None:
    place, inventory = IndexPlace.write(tmp_path), write_inventory(tmp_path)
    inventory.resolve(InventoryModel())
    with place.open() as index:
        for phases, finished in (((), True), (("hypothesis",), False), (("hypothesis",), False), ((), True)):
            reconcile(index, place.workspace, phases)
            assert [row.finished for row in index.rows()] == [finished]


# --- reindex --------------------------------------------------------------------------------------------------------


def test_reindex_makes_an_index_where_there_is_none(place: IndexPlace) -> None:
    with reindexed(place) as index:
        assert [(row.package_id, row.state) for row in index.rows()] == [(name, "admitted") for name in IDS]


def test_reindex_derives_every_row_again_and_keeps_the_order_of_admission(place: IndexPlace) -> None:
    owner = new_owner()
    with place.open() as index:
        for name in reversed(IDS):
            index.upsert([CaseRow(name, state="looked_up", calls=5)])
        claim(index, owner, limit=2)
        index.release_all(owner, [(CaseRow(name, state="planned"), "BUDGET_REACHED") for name in IDS[1:]])
        index.hold(owner, CaseRow("INC-3"))
    with reindexed(place) as index:
        rows = {row.package_id: row for row in index.rows()}
        assert rows["INC-1"] == replace(derive_row(place.workspace.package("INC-1")), changes=rows["INC-1"].changes)
        assert (rows["INC-2"].state, rows["INC-2"].stopped, rows["INC-2"].last_run) == ("admitted", None, None)
        assert (rows["INC-3"].state, rows["INC-3"].lease_owner) == ("planned", owner)  # he writes it when he is done
        index.drop(owner)
        assert claim(index) == ["INC-3", "INC-2", "INC-1"]


@pytest.mark.parametrize(
    "left",
    [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 9000, None],
    ids=["empty", "text", "garbage", "other tables"],
)
def test_reindex_mends_a_file_that_cannot_be_used(place: IndexPlace, left: bytes | None) -> None:
    file = own_file(place.workspace)
    if left is None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE casebound_case (something TEXT)")
    else:
        file.write_bytes(left)
    with reindexed(place) as index:
        assert ids(index) == list(IDS)
    with place.open() as index:
        assert claim(index) == list(IDS)


def test_reindex_is_not_misled_by_the_log_of_the_file_that_it_replaces(place: IndexPlace) -> None:
    file = own_file(place.workspace)
    with place.open() as index:
        with index.database.writing() as connection:
            connection.exec_driver_sql("UPDATE casebound_meta SET value='0' WHERE key='version'")
        log = file.with_name("index.sqlite-wal").read_bytes()
    file.write_bytes(b"no database")
    file.with_name("index.sqlite-wal").write_bytes(log)
    with reindexed(place) as index:
        assert ids(index) == list(IDS)


def test_reindex_meets_damage_that_no_question_has_met(place: IndexPlace) -> None:
    file = own_file(place.workspace)
    with place.open(*cases(2000)):
        pass
    with closing(sqlite3.connect(file)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name LIKE '%case_id'").fetchone()[0]
    data = bytearray(file.read_bytes())
    data[(page - 1) * 4096 + 20 : page * 4096] = bytes(4076)
    file.write_bytes(data)
    with place.open() as index:
        assert len(index.rows()) == 500
    with reindexed(place) as index:
        assert ids(index) == list(IDS)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_reindex_takes_an_index_of_another_release_or_another_workspace_over(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/named.db"
    first, second = (IndexPlace.write(tmp_path / name, url) for name in ("one", "two"))
    with first.open(CaseRow("p")):
        pass
    with reindexed(second) as index:
        assert ids(index) == []
        with index.database.writing() as connection:
            connection.exec_driver_sql("UPDATE casebound_meta SET value='0' WHERE key='version'")
    with reindexed(second), second.open():
        pass


def test_a_file_that_is_replaced_may_not_be_open_elsewhere(place: IndexPlace) -> None:
    with place.open(*cases(3)) as index:
        with index.database.writing() as connection:
            connection.exec_driver_sql("UPDATE casebound_meta SET value='0' WHERE key='version'")
        with pytest.raises(UnavailableError) as caught, reindexed(place):
            pass
        assert caught.value.code == "INDEX_UNAVAILABLE"
        assert caught.value.found == "another process that has it open"
        assert len(index.rows()) == 3
    with reindexed(place) as index:
        assert ids(index) == list(IDS)


@pytest.mark.parametrize("content", [b"a report of somebody", b""])
def test_a_file_that_the_settings_name_by_mistake_is_never_touched(tmp_path: Path, content: bytes) -> None:
    named = tmp_path / "precious.md"
    named.write_bytes(content)
    place = IndexPlace.write(tmp_path, f"sqlite:///{named}")
    with pytest.raises(SettingsError) as caught, reindexed(place):
        pass
    assert caught.value.code == "INDEX_NOT_OURS"
    assert named.read_bytes() == content


# --- the running index and the packages -----------------------------------------------------------------------------


def project(inventory: Inventory, **scripted: ProviderError) -> Project:
    model = InventoryModel(scripted={stage: [error] for stage, error in scripted.items()})
    return inventory.project(model, phases=True)


def go_on(inventory: Inventory, case: str, stop_after: str | None = None, **scripted: ProviderError) -> None:
    list(project(inventory, **scripted).resolve([inventory.folder / f"{case}.md"], stop_after=stop_after))


def take_up(inventory: Inventory, case: str, how: str) -> None:
    with suppress(SettingsError):  # where the case is in no state for that
        getattr(project(inventory), how)(case, stop_after="research")


STEPS: dict[str, Callable[[Inventory, str], None]] = {
    "admit": lambda inventory, case: go_on(inventory, case, "admission"),
    "build": lambda inventory, case: go_on(inventory, case, "construction"),
    "finish": go_on,
    "fail for good": lambda inventory, case: go_on(inventory, case, assessment=QUOTA),
    "fail for now": lambda inventory, case: go_on(inventory, case, "interpretation", plan=BUSY),
    "resume": lambda inventory, case: take_up(inventory, case, "resume"),
    "revise": lambda inventory, case: take_up(inventory, case, "revise"),
    "wait": lambda inventory, case: inventory.clock.advance(61),
}


@examples(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(IDS)), min_size=4, max_size=10))
def test_the_running_index_is_what_reindex_makes_after_any_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    place, inventory = IndexPlace.write(folder), write_inventory(folder)
    set_budget(inventory.workspace, 100)
    reports(inventory)
    phases = tuple(inventory.host(phases=True).phases)
    with place.open() as index:
        index.note_phases(phases)
        for step, case in history:
            STEPS[step](inventory, case)
        running = derived(index)
    own_file(place.workspace).unlink()
    with reindexed(place, phases) as index:
        assert derived(index) == running
        for row in index.rows():
            assert row.state == derive_progress(place.workspace.package(row.package_id)).state
