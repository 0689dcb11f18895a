"""Which database holds the index of a workspace, and whether this release can use what is there."""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from casebound.errors import IntegrityError, SettingsError
from casebound.research.sqlite_file import path_of
from casebound.settings import Settings, index_url
from casebound.store import Workspace
from casebound.workspace.connection import Database
from casebound.workspace.index_file import IndexFile
from casebound.workspace.place import own_file
from casebound.workspace.schema import META, VERSION

_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgresql+psycopg")


def find_database(workspace: Workspace, settings: Settings) -> Database:
    """Return the database that the index of a workspace is in, or is to be in; nothing is looked at.

    Raises:
        SettingsError: the URL cannot be used, or its driver is not installed.
    """
    url = index_url(settings)
    if url is None:
        return IndexFile(own_file(workspace), None)
    try:
        return _named(url.reveal(), str(workspace.root))
    except SettingsError as exc:
        raise exc.placed(str(settings.path), settings.workspace.key) from None


def open_database(workspace: Workspace, settings: Settings) -> Database:
    """Return the database of a workspace's index, which is made where there is none.

    Raises:
        UnavailableError: `INDEX_UNAVAILABLE`.
        IntegrityError: `INDEX_BROKEN`, `INDEX_VERSION`, `INDEX_FOREIGN`.
        SettingsError: as `find_database`; a link stands where the file belongs (`WORKSPACE_LINK`).
    """
    database = find_database(workspace, settings)
    try:
        database.create()
        _check(database)
    except BaseException:
        database.close()
        raise
    return database


def _named(url: str, belongs_to: str) -> Database:
    found = "something that is no database URL"
    with suppress(ArgumentError, ValueError):
        parsed = sa.make_url(url)
        if parsed.drivername in _SQLITE:
            return IndexFile(path_of(parsed.database), belongs_to)
        if parsed.drivername in _POSTGRESQL and parsed.database:
            from casebound.workspace.index_server import IndexServer  # its dialect takes 2 MB, and most have a file

            return IndexServer(parsed, belongs_to)
        found = f"the scheme {parsed.drivername}" + ("" if parsed.database else ", and no database")
    raise SettingsError("SETTINGS_VALUE", found=found, allowed=("sqlite:///FILE", "postgresql://HOST/DATABASE"))


def _check(database: Database) -> None:
    with database.reading() as connection:
        meta = {row.key: row.value for row in connection.execute(sa.select(META))}
    version, workspace = meta.get("version"), meta.get("workspace")
    if version is None:
        raise IntegrityError("INDEX_BROKEN", where=database.place, found="no word about its version")
    if version != VERSION:
        raise IntegrityError("INDEX_VERSION", where=database.place, found=f"version {version}", expected=VERSION)
    if workspace != database.belongs_to:
        found = f"the index of {workspace}"
        raise IntegrityError("INDEX_FOREIGN", where=database.place, found=found, expected=database.belongs_to)
