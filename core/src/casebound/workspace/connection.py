"""A database that holds an index: asked in one transaction a time, every failure told in our own words."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from casebound.errors import CaseboundError, IntegrityError, UnavailableError
from casebound.research.outage import REFUSED, reason_of

Insert: TypeAlias = Callable[[sa.Table], Any]  # SQLAlchemy has one for each database that knows `ON CONFLICT`

WAIT_S = 60  # for another process that writes

_WILL_WRITE = "casebound_will_write"
_BROKEN_SQLITE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BROKEN_SQLSTATE = ("42P01", "42703")  # tables and columns that are not ours


class Database(ABC):
    """Where the rows of an index are. Threads may share one.

    Args:
        engine: SQLAlchemy's.
        place: where it is, for errors; never the URL.
        belongs_to: the workspace that it tells of; None where its own place says that.

    Attributes:
        insert: begins an `INSERT` of this database.
        is_file: this process writes a file itself, and asks no server.
    """

    insert: Insert
    is_file = False

    def __init__(self, engine: Engine, place: str, belongs_to: str | None) -> None:
        self.place = place
        self.belongs_to = belongs_to
        self._engine = engine
        # Writers of one process take turns here: they need not poll for a file's lock, nor wait for their own rows.
        self._turn = threading.Lock()

    @abstractmethod
    def create(self) -> None:
        """Make an empty index where there is none. Raises `UnavailableError` (`INDEX_UNAVAILABLE`)."""

    @abstractmethod
    def replace(self) -> None:
        """Put an empty index in the place of one that cannot be used.

        Raises:
            UnavailableError: `INDEX_UNAVAILABLE`; also where another process uses it.
            SettingsError: `INDEX_NOT_OURS`: what is there was not written as an index.
        """

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one transaction for reading. Raises as `writing`."""
        with self._transaction(nullcontext(), will_write=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one transaction, which is committed with the block or leaves nothing.

        Raises:
            UnavailableError: `INDEX_UNAVAILABLE`: no answer, no space, no permission.
            IntegrityError: `INDEX_BROKEN`: what is there is damaged, or no index.
        """
        with self._transaction(self._turn, will_write=True) as connection:
            yield connection

    def close(self) -> None:
        """Let go of every connection."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, turn: AbstractContextManager[Any], *, will_write: bool) -> Iterator[Connection]:
        with turn:
            try:
                with self._engine.connect() as connection:
                    connection.execution_options(**{_WILL_WRITE: will_write})
                    with connection.begin():
                        yield connection
            except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
                raise self._failure(exc) from None

    def _failure(self, cause: BaseException) -> CaseboundError:
        original = getattr(cause, "orig", None) or cause
        number, state = getattr(original, "sqlite_errorcode", None), getattr(original, "sqlstate", None)
        broken = state in _BROKEN_SQLSTATE if number is None else number & 0xFF in _BROKEN_SQLITE
        found = reason_of(cause)
        if broken:
            return IntegrityError("INDEX_BROKEN", where=self.place, found=found)
        # A server that answers is not lost: to make the index again would not mend it.
        hint = "look into the server's log: it names the reason" if state and found == REFUSED else None
        return UnavailableError("INDEX_UNAVAILABLE", where=self.place, found=found, hint=hint)


def will_write(connection: Connection) -> bool:
    """Tell whether the transaction that begins on `connection` is one for writing."""
    return bool(connection.get_execution_options().get(_WILL_WRITE))
