"""What a case costs where no clock can tell: reads, flushes, and who waits for them. Each bound has some room."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.store import Package
from casebound.store import disk as disk_module
from casebound.store import package as package_module
from casebound.store import write as write_module
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.runs import execute

CALLS = 3


class Disk:
    """Watches the file system: what is read, how often something is flushed and by whom, and what is not flushed.

    Attributes:
        unflushed_files: by their numbers; what a power cut would take.
        unflushed_names: by the number of the folder, with the count of flushes when the first one came.
        named_early: how often a file got its name before its bytes were flushed, or before the names of an earlier
            flush were.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: Counter[str] = Counter()
        self.flushes = 0
        self.flushed_on_a_loop = 0
        self.unflushed_files: set[int] = set()
        self.unflushed_names: dict[int, int] = {}
        self.named_early = 0
        self._real = {name: getattr(os, name) for name in ("fsync", "link", "mkdir")}
        for name in self._real:
            monkeypatch.setattr(os, name, getattr(self, name))
        for module in (package_module, write_module):
            monkeypatch.setattr(module, "read_at", self.read_at(module.read_at))
        monkeypatch.setattr(write_module, "_fill", self.fill(write_module._fill))
        monkeypatch.setattr(disk_module, "_flush_file_system", self.flush_all(disk_module._flush_file_system))

    def read_at(self, real):
        def read_at(folder: int, name: str, shown: str) -> bytes:
            self.read[shown] += 1
            return real(folder, name, shown)

        return read_at

    def fill(self, real):
        def fill(path: str, data: bytes, folder: int, name: str, mode: int) -> None:
            real(path, data, folder, name, mode)
            self.unflushed_files.add(os.stat(name, dir_fd=folder).st_ino)

        return fill

    def flush_all(self, real):
        def flush_all(descriptor: int) -> None:
            self._count()
            real(descriptor)
            self.unflushed_files.clear()
            self.unflushed_names.clear()

        return flush_all

    def fsync(self, descriptor: int) -> None:
        self._count()
        self._real["fsync"](descriptor)
        number = os.fstat(descriptor).st_ino
        self.unflushed_files.discard(number)
        self.unflushed_names.pop(number, None)

    def link(self, source: str, target: str, **folders) -> None:
        if "src_dir_fd" not in folders:  # the index, outside of every package
            self._real["link"](source, target)
            return
        grown = os.stat(source, dir_fd=folders["src_dir_fd"]).st_ino
        older = [since for since in self.unflushed_names.values() if since != self.flushes]
        self.named_early += grown in self.unflushed_files or bool(older)
        self._real["link"](source, target, **folders)
        self._new_name(folders["dst_dir_fd"])

    def mkdir(self, path: str, *mode: int, **folder) -> None:
        self._real["mkdir"](path, *mode, **folder)
        if "dir_fd" in folder and not re.fullmatch("[0-9a-f]{32}", path):
            self._new_name(folder["dir_fd"])

    def _new_name(self, folder: int) -> None:
        self.unflushed_names.setdefault(os.fstat(folder).st_ino, self.flushes)

    def _count(self) -> None:
        self.flushes += 1
        self.flushed_on_a_loop += runs_a_loop()


def runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class WatchedModel(InventoryModel):
    """Notes how many files and names were not on the disk when it was asked, and when its reply was read."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        super().__init__()
        self.unflushed: list[tuple[str, int, int]] = []
        self.replies_on_disk: list[int] = []
        self._disk = disk
        self._folder = folder

    async def send(self, request: ModelRequest) -> NativeReply:
        self._note(f"call {request.stage}")
        return await super().send(request)

    def read(self, native: NativeReply) -> ModelReply:
        self._note("reply")
        self.replies_on_disk.append(len(list(self._folder.glob("workspace/cases/**/native.bin"))))
        return super().read(native)

    def _note(self, what: str) -> None:
        self.unflushed.append((what, len(self._disk.unflushed_files), len(self._disk.unflushed_names)))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def model(tmp_path: Path, disk: Disk) -> WatchedModel:
    """Return the model of a case that was taken to its end."""
    inventory = write_inventory(tmp_path / "project")
    model = WatchedModel(disk, tmp_path / "project")
    assert inventory.resolve(model).state == "interpreted"
    assert len(model.calls) == CALLS
    return model


@pytest.fixture(params=[True, False], ids=["at once", "one by one"])
def flushes_file_systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(disk_module, "is_flushed_as_a_whole", lambda descriptor: False)
    return bool(request.param)


def test_what_a_call_rests_on_and_what_it_brought_is_on_the_disk_before_anything_follows(
    flushes_file_systems: bool, disk: Disk, model: WatchedModel
) -> None:
    asked = ["call plan", "reply", "call assessment", "reply", "call interpretation", "reply"]
    assert [name for name, _, _ in model.unflushed] == asked
    assert {(files, names) for _, files, names in model.unflushed} == {(0, 0)}
    assert model.replies_on_disk == [1, 2, 3]
    assert disk.named_early == 0
    assert (disk.unflushed_files, disk.unflushed_names) == (set(), {})


def test_no_flush_keeps_an_event_loop_waiting(flushes_file_systems: bool, disk: Disk, model: WatchedModel) -> None:
    assert disk.flushes > 0
    assert disk.flushed_on_a_loop == 0


def test_flushes_follow_the_calls_and_not_the_files(tmp_path: Path, disk: Disk, model: WatchedModel) -> None:
    with Package(tmp_path).open() as folder:
        if not disk_module.is_flushed_as_a_whole(folder):
            pytest.skip("capability: this file system is not flushed as a whole")
    files = [path for path in tmp_path.glob("project/workspace/cases/**/*") if path.is_file()]
    assert len(files) > 30
    assert disk.flushes <= 9 * CALLS
    assert disk.flushes < len(files)


def test_a_case_that_goes_to_its_end_reads_hardly_anything_again(disk: Disk, model: WatchedModel) -> None:
    """What is shown at the end is read from the files, each once; before that hardly anything is."""
    assert sum(disk.read.values()) <= 40
    assert max(disk.read.values()) <= 2


def test_a_run_reads_of_a_case_only_what_was_there_before(tmp_path: Path, disk: Disk) -> None:
    inventory = write_inventory(tmp_path / "project")
    inventory.admit(1)
    before = {str(path) for path in tmp_path.glob("project/workspace/cases/**/*") if path.is_file()}
    disk.read.clear()
    assert execute(inventory, InventoryModel()).dispatches == CALLS
    assert disk.read.keys() == before


def test_a_case_that_the_end_of_a_run_stops_is_not_flushed_on_its_loop(tmp_path: Path, disk: Disk) -> None:
    inventory = write_inventory(tmp_path / "project")
    inventory.admit(1)
    assert execute(inventory, InventoryModel(), max_dispatches=1).dispatches == 1
    assert disk.flushes > 0
    assert disk.flushed_on_a_loop == 0
