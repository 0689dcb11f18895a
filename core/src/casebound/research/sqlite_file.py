"""An SQLite file that is only ever read.

Rules:
- The file is opened with `mode=ro`; `query_only` is on, `trusted_schema` off, and an authorizer allows nothing but
  reading allowlisted tables (a view among them may read its own), so that ATTACH and VACUUM INTO are refused as well.
- The digest covers the file and, where there is one, its write-ahead log.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from casebound.canonical import RunningDigest
from casebound.errors import SettingsError

# SQLAlchemy asks for the second when it connects; the first is the read that fixes the state.
_ASKING_PRAGMAS = frozenset({"schema_version", "read_uncommitted"})
_INSTRUCTIONS_A_CHECK = 10_000
_CHUNK = 1 << 20

Signature = tuple[tuple[int, int, int], ...]


def path_of(database: str | None) -> Path:
    """Return the file that the URL's database part names (`file:` form too).

    Raises:
        SettingsError: `SETTINGS_VALUE`: no file, a database in memory.
    """
    name = database or ""
    if name.startswith("file:"):
        name = unquote(name.removeprefix("file:").partition("?")[0])
    if not name or name == ":memory:":
        raise SettingsError(
            "SETTINGS_VALUE",
            pointer="database.url",
            found="an SQLite URL without a file",
            expected="a file, as in sqlite:///world.db",
        )
    return Path(name)


def missing(path: Path) -> str | None:
    """Return why there can be no database at `path`, None where that is not certain."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return f"no such file: {path.name}"
    except OSError:
        return None
    return None if stat.S_ISREG(mode) else f"{path.name} is no file"


class FileConnection(sqlite3.Connection):
    """A connection that knows which state of its file it may remember: `signature`, None where there was no file."""

    signature: Signature | None = None


def connect(path: Path, tables: Collection[str], timeout_s: int, is_late: Callable[[], bool]) -> FileConnection:
    """Open the file for reading.

    Args:
        path: the file; one that is missing is an error and is not created.
        tables: the allowlist.
        timeout_s: seconds to wait for a lock.
        is_late: asked while a statement runs; True interrupts it.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    signature = None
    with suppress(OSError):
        signature = signature_of(path)  # before the file is opened: another may take its place
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False, factory=FileConnection
    )
    connection.signature = signature
    try:
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.set_authorizer(_authorizer({table.lower() for table in tables}))
        connection.set_progress_handler(is_late, _INSTRUCTIONS_A_CHECK)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _authorizer(tables: Collection[str]) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    def allows(action: int, first: str | None, second: str | None, source: str | None) -> bool:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_RECURSIVE):
            return True
        if action == sqlite3.SQLITE_READ:
            return (first or "").lower() in tables or (source or "").lower() in tables
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() != "load_extension"
        if action == sqlite3.SQLITE_PRAGMA:
            return first == "table_xinfo" or (first in _ASKING_PRAGMAS and second is None)
        return False

    def authorize(action: int, first: str | None, second: str | None, _database: str | None, source: str | None) -> int:
        return sqlite3.SQLITE_OK if allows(action, first, second, source) else sqlite3.SQLITE_DENY

    return authorize


def signature_of(path: Path) -> Signature:
    """Return size, time and inode of the files of the database: what changes with a commit, or with another file."""
    return tuple((status.st_size, status.st_mtime_ns, status.st_ino) for _, status in _files(path))


class Digests:
    """Makes digests of a database, and keeps what it has opened until `close`.

    Whoever closes a file gives up all locks that his process holds on it (POSIX), and so the state that SQLite reads in
    a transaction; a file is therefore opened once, however often it is read.
    """

    def __init__(self) -> None:
        self._by_file: dict[tuple[int, int], int] = {}
        self._opened: list[int] = []

    def digest_of_file(self, path: Path) -> str:
        """Return the digest of the database: its file, and its write-ahead log where that is not empty."""
        digest = RunningDigest()
        for file, _ in _files(path):
            descriptor, place = self._open(file), 0
            while chunk := os.pread(descriptor, _CHUNK, place):
                digest.update(chunk)
                place += len(chunk)
        return digest.digest()

    def close(self) -> None:
        """Let go of the files; no transaction may be open."""
        while self._opened:
            os.close(self._opened.pop())
        self._by_file.clear()

    def _open(self, file: str) -> int:
        status = os.stat(file)
        known = self._by_file.get((status.st_dev, status.st_ino))
        if known is not None:
            return known
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        self._opened.append(descriptor)
        status = os.fstat(descriptor)  # of another file perhaps, which has taken its place meanwhile
        self._by_file[status.st_dev, status.st_ino] = descriptor
        return descriptor


def _files(path: Path) -> list[tuple[str, os.stat_result]]:
    """Return the files of the database, each as it stands; without `pathlib`, for a look-up asks several times.

    The log is looked at first: one that is gone by then was written to the file before.
    """
    name = os.fspath(path)
    logs = []
    with suppress(FileNotFoundError, NotADirectoryError):
        status = os.stat(f"{name}-wal")
        if stat.S_ISREG(status.st_mode) and status.st_size:
            logs.append((f"{name}-wal", status))
    return [(name, os.stat(name)), *logs]
