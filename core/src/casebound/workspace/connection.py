"""The database of an index: opened, asked in one transaction a time, and every failure told in our own words.

SQLite is the workspace's own file unless the settings name a URL: write-ahead log, `synchronous=NORMAL` (a power cut may
cost the newest rows, which the packages give again), and a wait for whoever writes at this moment. A transaction that
will write takes the write lock at once, so that it never has to give up what it has read.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from casebound.errors import CaseboundError, IntegrityError, SettingsError, UnavailableError
from casebound.research.outage import reason_of

WAIT_S = 60  # for another process that writes
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgresql+psycopg")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SYNTAX_OR_MISSING = "42"  # SQLSTATE class: a table or column that is not there


class Database:
    """Where the rows are. Threads may share one.

    Attributes:
        path: the SQLite file, None on a server.
        place: where it is, for errors; never the URL.
    """

    def __init__(self, url: str | Path) -> None:
        if isinstance(url, Path):
            self.path: Path | None = url
            self.place = str(url)
            self._engine = _sqlite_engine(url)
        else:
            parsed = _parse(url)
            self.path = Path(parsed.database) if parsed.drivername in _SQLITE and parsed.database else None
            if self.path is not None:
                self.place = str(self.path)
                self._engine = _sqlite_engine(self.path)
            else:
                self.place = (
                    f"postgresql database {parsed.database} on {parsed.host or 'localhost'}:{parsed.port or 5432}"
                )
                self._engine = _postgresql_engine(parsed)
        # Writers of one process take turns here rather than poll the file's lock, and never wait for each other's rows.
        self._turn = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one transaction that sees one state. Raises as `failure`."""
        with self._transaction("BEGIN", nullcontext()) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one transaction that is committed with the block, or leaves nothing. Raises as `failure`."""
        with self._transaction("BEGIN IMMEDIATE", self._turn) as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str, turn: nullcontext[None] | threading.Lock) -> Iterator[Connection]:
        with turn:
            try:
                with self._engine.connect().execution_options(casebound_begin=begin) as connection, connection.begin():
                    yield connection
            except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
                raise self.failure(exc) from None

    def failure(self, cause: BaseException) -> CaseboundError:
        """Return what a failure of the database is to us."""
        original = getattr(cause, "orig", None) or cause
        number = getattr(original, "sqlite_errorcode", None)
        state = getattr(original, "sqlstate", None) or ""
        if (number is not None and number & 0xFF in (*_DAMAGED, sqlite3.SQLITE_ERROR)) or state[
            :2
        ] == _SYNTAX_OR_MISSING:
            return IntegrityError("INDEX_BROKEN", where=self.place, found=reason_of(cause))
        return UnavailableError("INDEX_UNAVAILABLE", where=self.place, found=reason_of(cause))

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()


def _parse(url: str) -> URL:
    accepted = ("sqlite:///FILE", "postgresql://HOST/DATABASE")
    found = "something that is no database URL"
    with suppress(ArgumentError, ValueError):
        parsed = sa.make_url(url)
        if parsed.drivername in (*_SQLITE, *_POSTGRESQL) and parsed.database not in (None, "", ":memory:"):
            return parsed
        found = f"the scheme {parsed.drivername}, or no database in it"
    raise SettingsError("SETTINGS_VALUE", found=found, allowed=accepted)


def _sqlite_engine(path: Path) -> Engine:
    engine = sa.create_engine("sqlite://", creator=lambda: _connect(path), poolclass=sa.QueuePool, hide_parameters=True)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _connect(path: Path) -> sqlite3.Connection:
    # `mode=rw`: a file that has gone meanwhile is an error, and not an empty index.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options()["casebound_begin"])


def _postgresql_engine(url: URL) -> Engine:
    if find_spec("psycopg") is None:
        raise SettingsError("SETTINGS_DRIVER", found="psycopg", hint="pip install 'casebound[postgresql]'")
    options = f"-c lock_timeout={WAIT_S}s -c idle_in_transaction_session_timeout={WAIT_S}s"
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        hide_parameters=True,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10, "client_encoding": "utf8", "options": options},
    )
