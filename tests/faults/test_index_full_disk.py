"""No room for the index: named, nothing lost, and later it goes on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from casebound.errors import UnavailableError
from casebound.testing.index_place import IndexPlace, cases, claim
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.workspace.lease import new_owner
from casebound.workspace.reindex import reindex
from casebound.workspace.row import CaseRow

pytestmark = pytest.mark.faults


def fill(folder: Path) -> Path:
    """Leave no room at all."""
    ballast = folder / "ballast"
    state = os.statvfs(folder)
    with suppress(OSError), ballast.open("wb") as stream:
        stream.write(bytes(state.f_bavail * state.f_frsize + 4096))
    return ballast


def refused(error: pytest.ExceptionInfo[UnavailableError]) -> tuple[str, int]:
    return error.value.code, error.value.exit_status


def test_an_index_cannot_be_made_on_a_full_disk_and_nothing_is_left_of_it(small_disk: Path) -> None:
    place = IndexPlace.write(small_disk)
    before = sorted(small_disk.rglob("*"))
    ballast = fill(small_disk)
    with pytest.raises(UnavailableError) as caught, place.open():
        pass
    assert refused(caught) == ("INDEX_UNAVAILABLE", 3)
    assert "No space left" in str(caught.value)
    ballast.unlink()
    assert sorted(small_disk.rglob("*")) == before
    with place.open(*cases(1)) as index:
        assert claim(index) == ["p-00000"]


def test_what_cannot_be_written_for_lack_of_room_is_told_and_written_later(small_disk: Path) -> None:
    place, owner = IndexPlace.write(small_disk), new_owner()
    with place.open(*cases(1000)) as index:
        done = [(CaseRow(name, state="built"), None) for name in claim(index, owner)]
        ballast = fill(small_disk)
        with pytest.raises(UnavailableError) as caught:
            index.release_all(owner, done)
        assert refused(caught) == ("INDEX_UNAVAILABLE", 3)
        assert caught.value.found == "the disk is full"
        ballast.unlink()
        assert index.states() == {"admitted": 1000}
        index.release_all(owner, done)
        assert index.states() == {"built": 1000}


def test_a_case_is_finished_although_its_row_finds_no_room(small_disk: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{small_disk}/index.sqlite"
    inventory, place = write_inventory(tmp_path), IndexPlace.write(tmp_path, url)
    with (tmp_path / "casebound.toml").open("a") as settings:
        settings.write(f'[workspace]\nindex_url = "{url}"\n')
    with place.open():
        pass
    ballast = fill(small_disk)
    project = inventory.project(InventoryModel())
    (result,) = project.resolve([inventory.report])
    assert (result.state, result.code) == ("interpreted", None)
    assert [note.partition(":")[0] for note in project.notes] == ["INDEX_UNAVAILABLE"]
    ballast.unlink()
    index = reindex(place.workspace, place.settings, place.clock, ())
    assert [(row.package_id, row.finished) for row in index.rows()] == [("INC-7", True)]
    index.close()
