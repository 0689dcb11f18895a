"""What a case costs where no clock can tell: reads, flushes, and who waits for them. Each bound has some room."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from pathlib import Path

import pytest
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.store import package as package_module
from casebound.store import write as write_module
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel

CALLS = 3


class Disk:
    """Watches the file system: what is read, how often something is flushed and by whom, which names are not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: Counter[str] = Counter()
        self.flushes = 0
        self.flushed_on_a_loop = 0
        self.unflushed: set[int] = set()
        self._real = {name: getattr(os, name) for name in ("fsync", "link", "mkdir")}
        for name in self._real:
            monkeypatch.setattr(os, name, getattr(self, name))
        for module in (package_module, write_module):
            monkeypatch.setattr(module, "read_at", self.read_at(module.read_at))

    def read_at(self, real):
        def read_at(folder: int, name: str, shown: str) -> bytes:
            self.read[shown] += 1
            return real(folder, name, shown)

        return read_at

    def fsync(self, descriptor: int) -> None:
        self.flushes += 1
        self.flushed_on_a_loop += runs_a_loop()
        self._real["fsync"](descriptor)
        self.unflushed.discard(os.fstat(descriptor).st_ino)

    def link(self, source: str, target: str, **folders) -> None:
        self._real["link"](source, target, **folders)
        self.unflushed.add(os.fstat(folders["dst_dir_fd"]).st_ino)

    def mkdir(self, path: str, *mode: int, **folder) -> None:
        self._real["mkdir"](path, *mode, **folder)
        if "dir_fd" in folder:
            self.unflushed.add(os.fstat(folder["dir_fd"]).st_ino)


def runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class WatchedModel(InventoryModel):
    """Notes which names were not on the disk when it was asked, and when its reply was read; and in which threads."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.unflushed: list[tuple[str, int]] = []
        self.threads: list[threading.Thread] = []
        self._disk = disk

    async def send(self, request: ModelRequest) -> NativeReply:
        self.unflushed.append((f"call {request.stage}", len(self._disk.unflushed)))
        self.threads.append(threading.current_thread())
        return await super().send(request)

    def read(self, native: NativeReply) -> ModelReply:
        self.unflushed.append(("reply", len(self._disk.unflushed)))
        return super().read(native)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def model(tmp_path: Path, disk: Disk) -> WatchedModel:
    """Return the model of a case that was taken to its end."""
    inventory = write_inventory(tmp_path / "project")
    model = WatchedModel(disk)
    assert inventory.resolve(model).state == "interpreted"
    assert len(model.calls) == CALLS
    return model


def test_what_a_call_rests_on_and_what_it_brought_is_on_the_disk_before_anything_follows(
    disk: Disk, model: WatchedModel
) -> None:
    asked = ["call plan", "reply", "call assessment", "reply", "call interpretation", "reply"]
    assert [name for name, _ in model.unflushed] == asked
    assert {number for _, number in model.unflushed} == {0}
    assert disk.unflushed == set()


def test_no_flush_keeps_an_event_loop_waiting(disk: Disk, model: WatchedModel) -> None:
    assert disk.flushes > 0
    assert disk.flushed_on_a_loop == 0
    assert set(model.threads) == {threading.main_thread()}  # so that the calls are made on one loop all the same


def test_a_file_is_flushed_once_and_the_folders_only_where_something_depends_on_them(
    tmp_path: Path, disk: Disk, model: WatchedModel
) -> None:
    files = [path for path in tmp_path.glob("project/workspace/cases/**/*") if path.is_file()]
    folders = disk.flushes - len(files)
    assert len(files) > 30
    assert folders <= 10 * CALLS + 5
    assert folders < len(files)


def test_a_case_that_goes_to_its_end_reads_hardly_anything_again(disk: Disk, model: WatchedModel) -> None:
    """What is shown at the end is read from the files, each once; before that hardly anything is."""
    assert sum(disk.read.values()) <= 40
    assert max(disk.read.values()) <= 2
