"""Flushing: when it returns, what was written is on the disk, also after the power fails.

A flush costs much more than a write, and hardly less for one file than for fifty. So whoever waits for the disk says at
once what for, and cases that wait on the same event loop share their flushes.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeAlias
from weakref import WeakKeyDictionary

# The descriptor of an open folder, and the name of a file in it; None: the folder itself, which is its names.
Place: TypeAlias = tuple[int, str | None]

# From so many places on, the whole file system is flushed at once: that takes about as long as three files.
_MANY = 4
# The first version of Linux whose flush of a file system says that a file in it could not be written.
_TELLS_FAILURES = (5, 8)


def flush(places: Collection[Place]) -> None:
    """Return when all of `places` is on the disk. Raises `OSError`."""
    if len(places) < _MANY or not FLUSHES_FILE_SYSTEMS:
        for folder, name in places:
            _flush_one(folder, name)
        return
    file_systems = {os.fstat(folder).st_dev: folder for folder, _ in places}
    for folder in file_systems.values():
        _flush_file_system(folder)


async def flush_together(places: Collection[Place]) -> None:
    """As `flush`, in a thread and together with all who wait on this event loop; who is cancelled stays to its end."""
    loop = asyncio.get_running_loop()
    if loop not in _ROUNDS:
        _ROUNDS[loop] = _Rounds()
    await _ROUNDS[loop].flush(places)


class _Rounds:
    """The flushes of one event loop: what comes while a round is under way is flushed with the next one."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._under_way: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="casebound-disk")

    async def flush(self, places: Collection[Place]) -> None:
        self._places.extend(places)
        if self._following is None:
            self._following = asyncio.ensure_future(self._round())
        await _to_its_end(self._following)

    async def _round(self) -> None:
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        self._under_way, self._following = self._following, None
        places, self._places = self._places, []
        await asyncio.get_running_loop().run_in_executor(self._thread, flush, places)


async def _to_its_end(round_: asyncio.Task[None]) -> None:
    """Wait for a round. Its thread uses descriptors of everybody who waits, so nobody goes before it has ended."""
    try:
        await asyncio.shield(round_)
    except asyncio.CancelledError:
        while not round_.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([round_])
        raise


_ROUNDS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Rounds] = WeakKeyDictionary()


def _flush_one(folder: int, name: str | None) -> None:
    if name is None:
        os.fsync(folder)
        return
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _can_flush_file_systems() -> bool:
    if sys.platform != "linux":
        return False
    version = os.uname().release.split(".")
    try:
        return (int(version[0]), int(version[1])) >= _TELLS_FAILURES and hasattr(_LIBC, "syncfs")
    except (IndexError, ValueError):
        return False


_LIBC = ctypes.CDLL(None, use_errno=True)
FLUSHES_FILE_SYSTEMS = _can_flush_file_systems()


def _flush_file_system(descriptor: int) -> None:
    """Flush the file system of an open file: `syncfs(2)`, which Python does not offer."""
    if _LIBC.syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
