"""An index in an SQLite file: the workspace's own, or one that the settings name.

Rules:
- Write-ahead log, `synchronous=NORMAL` (a power cut may cost the newest rows, which the packages give again), and a
  wait for whoever writes at this moment. A transaction that will write takes the write lock at once, so that it never
  has to give up what it has read.
- The file appears whole, under its final name, or not at all: many processes may start on a new workspace at once.
- Whoever has it open holds a shared lock of its folder; nobody replaces it meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection, Engine

from casebound.errors import IntegrityError, SettingsError, UnavailableError
from casebound.store.write import create_new_file
from casebound.workspace.connection import WAIT_S, Database, will_write
from casebound.workspace.schema import APPLICATION_ID, fill

_MARK = slice(68, 72)  # where an SQLite file says whose it is
_WRITE_AHEAD = b"\x02\x02"  # bytes 18 and 19 of an SQLite file: it is written and read with a write-ahead log


class IndexFile(Database):
    """An SQLite file that holds an index.

    Args:
        path: the file.
        belongs_to: the workspace, where the settings name the file; None: it is the workspace's own.
    """

    insert = staticmethod(sqlite.insert)
    is_file = True

    def __init__(self, path: Path, belongs_to: str | None) -> None:
        super().__init__(_engine(path), str(path), belongs_to)
        self._path = path
        with self._file_errors():
            self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._let_go = weakref.finalize(self, os.close, self._folder)
            fcntl.flock(self._folder, fcntl.LOCK_SH)

    def create(self) -> None:
        """Make the file where there is none; another process that is faster makes the same."""
        with self._file_errors():
            if self.belongs_to is None and self._path.is_symlink():
                found = "a link, where a file must stand"
                raise SettingsError("WORKSPACE_LINK", path=str(self._path), found=found)
            if not self._path.exists():
                with suppress(FileExistsError):
                    create_new_file(self._path, empty_file(self.belongs_to))
        with self.reading() as connection:
            marked = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if marked != APPLICATION_ID:
            raise IntegrityError("INDEX_BROKEN", where=self.place, found="an SQLite file that is no index")

    def replace(self) -> None:
        """Put an empty file in its place, unless somebody uses it, or the settings name a file of somebody else."""
        with self._file_errors():
            if self.belongs_to is not None and not _is_marked(self._path):
                raise SettingsError("INDEX_NOT_OURS", path=str(self._path))
            self._refuse_company()
            # The log goes first: one that outlived its file would be taken for the log of the next.
            for each in (f"{self._path}-wal", f"{self._path}-shm", self._path):
                with suppress(FileNotFoundError):
                    os.unlink(each)
            create_new_file(self._path, empty_file(self.belongs_to))

    def close(self) -> None:
        """Let go of every connection, and of the folder."""
        super().close()
        self._let_go()

    def _refuse_company(self) -> None:
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found, hint = "another process that has it open", "wait until that process has ended"
            raise UnavailableError("INDEX_UNAVAILABLE", where=self.place, found=found, hint=hint) from None

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            found = os.strerror(exc.errno or 0)
            raise UnavailableError("INDEX_UNAVAILABLE", where=self.place, found=found) from exc


def empty_file(belongs_to: str | None) -> bytes:
    """Return an SQLite file that holds an index without rows."""
    with closing(sqlite3.connect(":memory:")) as memory:
        engine = sa.create_engine("sqlite://", creator=lambda: memory, poolclass=sa.StaticPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
            fill(connection, belongs_to)
        data = memory.serialize()
    return data[:18] + _WRITE_AHEAD + data[20:]


def _is_marked(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_MARK.stop)[_MARK] == APPLICATION_ID.to_bytes(4, "big")


def _engine(path: Path) -> Engine:
    engine = sa.create_engine(
        "sqlite://", creator=lambda: _connect(path), poolclass=sa.QueuePool, max_overflow=-1, hide_parameters=True
    )
    sa.event.listen(engine, "begin", _begin)
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{_mode(path)}"
    connection = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _mode(path: Path) -> str:
    """Return how to open the file; one that has gone meanwhile is an error then, and not an empty index."""
    if os.access(path.parent, os.W_OK):
        return "mode=rw"
    # Nothing can be made beside the file: a log that somebody left or writes there is read, and without one the file
    # alone holds everything.
    return "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if will_write(connection) else "BEGIN")
