"""How an index comes into being, whole or not at all, and how one is told that this release cannot use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from casebound.errors import IntegrityError, UnavailableError
from casebound.store.write import create_new_file
from casebound.workspace.connection import Database
from casebound.workspace.schema import APPLICATION_ID, META, METADATA, VERSION

_ONE_AT_A_TIME = 0x63736264  # the advisory lock of whoever makes the tables
_WRITE_AHEAD = b"\x02\x02"  # bytes 18 and 19 of an SQLite file: written and read with a write-ahead log


def prepare(database: Database, workspace: str | None) -> None:
    """Make what is missing, and refuse what is not this workspace's index of this release.

    Args:
        database: where the index is to be.
        workspace: the folder that it belongs to; None where its own place says that.

    Raises:
        UnavailableError: `INDEX_UNAVAILABLE`.
        IntegrityError: `INDEX_BROKEN`, `INDEX_VERSION`, `INDEX_FOREIGN`.
    """
    if database.path is not None and not os.path.lexists(database.path):
        _create_file(database.path, workspace)
    with database.reading() as connection:
        _refuse_other_file(connection, database)
        missing = not sa.inspect(connection).has_table(META.name)
        meta = {} if missing else dict(connection.execute(sa.select(META.c.key, META.c.value)).tuples().all())
    if missing and database.path is None:
        meta = _create_tables(database, workspace)
    _check(meta, database, workspace)


def new_meta(workspace: str | None) -> dict[str, str]:
    """Return what a new index says about itself."""
    return {"version": VERSION} | ({} if workspace is None else {"workspace": workspace})


def new_file(workspace: str | None) -> bytes:
    """Return an empty index as the bytes of an SQLite file."""
    with closing(sqlite3.connect(":memory:")) as memory:
        engine = sa.create_engine("sqlite://", creator=lambda: memory, poolclass=sa.StaticPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
            fill(connection, workspace)
        data = memory.serialize()
    return data[:18] + _WRITE_AHEAD + data[20:]


def fill(connection: Connection, workspace: str | None) -> None:
    """Make the tables of an empty index."""
    METADATA.create_all(connection)
    connection.execute(sa.insert(META), [{"key": key, "value": value} for key, value in new_meta(workspace).items()])


def _create_file(path: Path, workspace: str | None) -> None:
    # Somebody else may be faster; an index that has its name is complete.
    try:
        with suppress(FileExistsError):
            create_new_file(path, new_file(workspace))
    except OSError as exc:
        raise UnavailableError("INDEX_UNAVAILABLE", path=str(path), found=os.strerror(exc.errno or 0)) from exc


def _create_tables(database: Database, workspace: str | None) -> dict[str, str]:
    with database.writing() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ONE_AT_A_TIME)))
        if not sa.inspect(connection).has_table(META.name):
            fill(connection, workspace)
        return dict(connection.execute(sa.select(META.c.key, META.c.value)).tuples().all())


def _refuse_other_file(connection: Connection, database: Database) -> None:
    if database.path is not None:
        found = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if found != APPLICATION_ID:
            raise IntegrityError("INDEX_BROKEN", where=database.place, found="an SQLite file that is no index")


def _check(meta: dict[str, str], database: Database, workspace: str | None) -> None:
    version = meta.get("version")
    if version is None:
        raise IntegrityError("INDEX_BROKEN", where=database.place, found="no word about its version")
    if version != VERSION:
        raise IntegrityError("INDEX_VERSION", where=database.place, found=f"version {version}", expected=VERSION)
    if meta.get("workspace") != workspace:
        raise IntegrityError(
            "INDEX_FOREIGN", where=database.place, found=f"that of {meta.get('workspace')}", expected=workspace
        )
