"""Flushing: when it returns, what was written is on the disk, also after the power fails.

A flush costs much more than a write, and hardly less for one file than for fifty. So whoever waits for the disk says at
once what for, and cases that wait on the same event loop share their flushes.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeAlias
from weakref import WeakKeyDictionary

# The descriptor of an open folder, and the name of a file in it; None: the folder itself, which is its names.
Place: TypeAlias = tuple[int, str | None]

# From so many places on, the whole file system is flushed at once: that takes about as long as three files.
_MANY = 4
# The first version of Linux whose flush of a file system tells of all that failed, its journal included.
_TELLS_FAILURES = (5, 17)
# File systems whose flush brings all to the disk, and tells where it could not, by their magic numbers (statfs(2)).
# Others hand it on: to a server or a program that keeps it to itself, or as overlayfs to one whose failures they hide.
_AS_A_WHOLE = {
    0xEF53,  # ext4
    0x58465342,  # XFS
    0x9123683E,  # Btrfs
    0xF2F52010,  # F2FS
    0x2FC12FC1,  # ZFS
    0x01021994,  # tmpfs
}


def flush(places: Collection[Place]) -> None:
    """Return when all of `places` is on the disk. Raises `OSError`."""
    _flush_devices(_by_device(places))


async def flush_together(places: Collection[Place]) -> None:
    """As `flush`, in a thread and together with all who wait on this event loop; who is cancelled stays to its end."""
    loop = asyncio.get_running_loop()
    if loop not in _ROUNDS:
        _ROUNDS[loop] = _Rounds()
    # Asked here: the thread would hand over the interpreter at each of these questions, and wait for it again.
    await _ROUNDS[loop].flush(loop, _by_device(places))


_ByDevice: TypeAlias = dict[int, list[Place]]


def _by_device(places: Collection[Place]) -> _ByDevice:
    devices = {folder: os.fstat(folder).st_dev for folder in {folder for folder, _ in places}}
    found: _ByDevice = {}
    for place in places:
        found.setdefault(devices[place[0]], []).append(place)
    return found


def _flush_devices(by_device: _ByDevice) -> None:
    for near in by_device.values():
        if not _flush_as_a_whole(near):
            for folder, name in near:
                _flush_one(folder, name)


class _Rounds:
    """The flushes of one event loop: what comes while a round is under way is flushed with the next one."""

    def __init__(self) -> None:
        self._waiting: list[tuple[_ByDevice, asyncio.Future[None]]] = []
        self._under_way = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="casebound-disk")

    async def flush(self, loop: asyncio.AbstractEventLoop, places: _ByDevice) -> None:
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((places, done))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._begin, loop)
        await _to_its_end(done)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        round_ = loop.run_in_executor(self._thread, _flush_for_all, [places for places, _ in waiting])
        round_.add_done_callback(lambda ended: self._end(loop, [done for _, done in waiting], ended.result()))

    def _end(
        self, loop: asyncio.AbstractEventLoop, waiting: Sequence[asyncio.Future[None]], failures: list[OSError | None]
    ) -> None:
        for done, failure in zip(waiting, failures, strict=True):
            done.set_result(None) if failure is None else done.set_exception(failure)
        self._under_way = bool(self._waiting)
        if self._under_way:
            self._begin(loop)


def _flush_for_all(waiting: Sequence[_ByDevice]) -> list[OSError | None]:
    """Flush what several wait for, and return what failed for each: nobody hears of what failed for another."""
    together: _ByDevice = {}
    for places in waiting:
        for device, near in places.items():
            together.setdefault(device, []).extend(near)
    try:
        _flush_devices(together)
    except OSError:
        return [_failure_of(places) for places in waiting]
    return [None] * len(waiting)


def _failure_of(places: _ByDevice) -> OSError | None:
    try:
        for near in places.values():
            for folder, name in near:
                _flush_one(folder, name)
    except OSError as exc:
        return exc
    return None


async def _to_its_end(done: asyncio.Future[None]) -> None:
    """Wait for a round. Its thread uses descriptors of everybody who waits, so nobody goes before it has ended."""
    try:
        await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        done.exception()  # whoever is cancelled does not hear of it
        raise


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Rounds] = WeakKeyDictionary()


def _flush_as_a_whole(places: Sequence[Place]) -> bool:
    """Flush the file system that they are on, where that is cheaper and enough; False: each of them must be flushed."""
    folder, _ = places[0]
    if len(places) < _MANY or not is_flushed_as_a_whole(folder):
        return False
    try:
        _flush_file_system(folder)
    except OSError:
        return False  # perhaps of somebody else's file: ours tell for themselves
    return True


def _flush_one(folder: int, name: str | None) -> None:
    if name is None:
        os.fsync(folder)
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_flushed_as_a_whole(descriptor: int) -> bool:
    """Tell whether the file system of an open file can be flushed at once, and tells of its failures."""
    if not _FLUSHES_FILE_SYSTEMS:
        return False
    status = ctypes.create_string_buffer(_MOST_STATFS)
    if _LIBC.fstatfs(descriptor, status) != 0:
        return False
    return ctypes.c_long.from_buffer(status).value & 0xFFFFFFFF in _AS_A_WHOLE  # `f_type` stands first


def _flushes_file_systems() -> bool:
    if sys.platform != "linux":
        return False
    version = os.uname().release.split(".")
    try:
        return (int(version[0]), int(version[1])) >= _TELLS_FAILURES and hasattr(_LIBC, "syncfs")
    except (IndexError, ValueError):
        return False


_LIBC = ctypes.CDLL(None, use_errno=True)
_FLUSHES_FILE_SYSTEMS = _flushes_file_systems()
_MOST_STATFS = 256  # bytes; the structure has 120


def _flush_file_system(descriptor: int) -> None:
    """Flush the file system of an open file: `syncfs(2)`, which Python does not offer."""
    if _LIBC.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
