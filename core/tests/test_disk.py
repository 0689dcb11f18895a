"""Flushes that are shared: who waits for which, what a failure is to whom, and nobody leaves before the end."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from casebound.store import disk
from casebound.store.disk import Place, flush, flush_together


class Rounds:
    """Stands in for the flush itself: notes what each round flushes, and begins none before it may."""

    def __init__(self) -> None:
        self.flushed: list[list[Place]] = []
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.failure: OSError | None = None

    def __call__(self, by_device: Mapping[int, Collection[Place]]) -> None:
        self.flushed.append([place for near in by_device.values() for place in near])
        self.begun.set()
        assert self.may_end.wait(60)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    rounds = Rounds()
    monkeypatch.setattr(disk, "_by_device", lambda places: {0: list(places)})
    monkeypatch.setattr(disk, "_flush_devices", rounds)
    return rounds


def test_who_waits_at_the_same_time_shares_a_flush(rounds: Rounds) -> None:
    async def many() -> None:
        await asyncio.gather(*(flush_together([(number, None)]) for number in range(20)))

    asyncio.run(many())
    assert rounds.flushed == [[(number, None) for number in range(20)]]


def test_what_comes_while_a_flush_is_under_way_waits_for_the_next_one(rounds: Rounds) -> None:
    async def late() -> None:
        rounds.may_end.clear()
        first = asyncio.ensure_future(flush_together([(1, None)]))
        assert await asyncio.to_thread(rounds.begun.wait, 60)
        others = [asyncio.ensure_future(flush_together([(number, "file")])) for number in (2, 3)]
        await asyncio.sleep(0)
        rounds.may_end.set()
        await asyncio.gather(first, *others)

    asyncio.run(late())
    assert rounds.flushed == [[(1, None)], [(2, "file"), (3, "file")]]


def test_a_failure_is_told_to_those_whose_file_it_is_and_to_nobody_else(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing() -> list[object]:
        rounds.failure = OSError(errno.EIO, "broken")
        waiting = (flush_together([(number, None)]) for number in range(3))
        told: list[object] = list(await asyncio.gather(*waiting, return_exceptions=True))
        rounds.failure = None
        await flush_together([(1, None)])
        return told

    def flush_one(folder: int, name: str | None) -> None:
        if folder == 1:
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(disk, "_flush_one", flush_one)
    assert [str(one) for one in asyncio.run(failing())] == ["None", "[Errno 28] full", "None"]


def test_a_file_system_that_reports_a_failure_is_flushed_file_by_file(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    single: list[int] = []

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "somebody else's file")

    monkeypatch.setattr(disk, "is_flushed_as_a_whole", lambda descriptor: True)
    monkeypatch.setattr(disk, "_flush_file_system", broken)
    monkeypatch.setattr(os, "fsync", single.append)
    flush([(folder, str(number)) for number in range(6)])
    assert len(single) == 6


def test_a_loop_that_is_gone_leaves_nothing_behind(rounds: Rounds) -> None:
    before = threading.active_count()
    for number in range(5):
        asyncio.run(flush_together([(number, None)]))
    gc.collect()
    assert len(disk._ROUNDS) == 0
    for thread in threading.enumerate():
        if thread.name.startswith("casebound-disk"):
            thread.join()
    assert threading.active_count() <= before


def test_who_is_cancelled_stays_until_the_flush_has_ended(rounds: Rounds) -> None:
    async def cancelled() -> tuple[bool, bool]:
        rounds.may_end.clear()
        waiting = asyncio.ensure_future(flush_together([(1, None)]))
        assert await asyncio.to_thread(rounds.begun.wait, 60)
        waiting.cancel()
        waiting.cancel()
        done = []
        for _ in range(3):
            await asyncio.sleep(0)
            done.append(waiting.done())
        rounds.may_end.set()
        with suppress(asyncio.CancelledError):
            await waiting
        return any(done), waiting.cancelled()

    assert asyncio.run(cancelled()) == (False, True)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    for number in range(6):
        (tmp_path / str(number)).write_bytes(b"x")
    folder = os.open(tmp_path, os.O_RDONLY)
    yield folder
    os.close(folder)


@pytest.mark.parametrize(
    ("files", "as_a_whole", "one_by_one"), [(2, True, 2), (6, True, 0), (6, False, 6)], ids=["few", "many", "elsewhere"]
)
def test_many_files_are_flushed_at_once_where_that_reaches_the_disk(
    folder: int, monkeypatch: pytest.MonkeyPatch, files: int, as_a_whole: bool, one_by_one: int
) -> None:
    single, whole = [], []
    monkeypatch.setattr(disk, "is_flushed_as_a_whole", lambda descriptor: as_a_whole)
    monkeypatch.setattr(disk, "_flush_file_system", whole.append)
    monkeypatch.setattr(os, "fsync", single.append)
    flush([(folder, str(number)) for number in range(files)])
    assert (len(single), whole) == (one_by_one, [] if one_by_one else [folder])


def test_a_file_that_is_gone_is_no_file_that_was_flushed(folder: int) -> None:
    with pytest.raises(FileNotFoundError):
        flush([(folder, "gone")])


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="capability: no file system that is none")
def test_a_file_system_that_is_in_no_list_is_flushed_file_by_file() -> None:
    descriptor = os.open("/proc/self", os.O_RDONLY)
    try:
        assert not disk.is_flushed_as_a_whole(descriptor)
    finally:
        os.close(descriptor)
