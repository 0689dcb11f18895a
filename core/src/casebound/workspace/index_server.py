"""An index in a PostgreSQL database that the settings name: for workspaces that several machines share."""

from __future__ import annotations

from importlib.util import find_spec

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL, Connection

from casebound.errors import SettingsError
from casebound.workspace.connection import WAIT_S, Database
from casebound.workspace.schema import CASES, META, METADATA, fill

_CONNECT_S = 10
_MAKING_TABLES = 0x63736264  # the advisory lock of whoever does

for _each in CASES.indexes:
    _each.dialect_options["postgresql"]["where"] = _each.dialect_options["sqlite"]["where"]


class IndexServer(Database):
    """A PostgreSQL database that holds an index, whatever else it holds.

    Args:
        url: of the database.
        belongs_to: the workspace.

    Raises:
        SettingsError: the driver is not installed.
    """

    insert = staticmethod(postgresql.insert)

    def __init__(self, url: URL, belongs_to: str) -> None:
        if find_spec("psycopg") is None:
            raise SettingsError("SETTINGS_DRIVER", found="psycopg", hint="pip install 'casebound[postgresql]'")
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            hide_parameters=True,
            max_overflow=-1,
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": _CONNECT_S,
                "client_encoding": "utf8",
                "application_name": "casebound",
                "options": f"-c lock_timeout={WAIT_S}s -c statement_timeout={WAIT_S}s",
            },
        )
        place = f"postgresql database {url.database} on {url.host or 'localhost'}:{url.port or 5432}"
        super().__init__(engine, place, belongs_to)

    def create(self) -> None:
        """Make the tables where there are none."""
        with self.reading() as connection:
            if _has_tables(connection):
                return
        with self.writing() as connection:
            _make_tables_alone(connection)
            if not _has_tables(connection):
                fill(connection, self.belongs_to)

    def replace(self) -> None:
        """Put empty tables in their place; whoever uses them goes on with the new ones."""
        with self.writing() as connection:
            _make_tables_alone(connection)
            METADATA.drop_all(connection)
            fill(connection, self.belongs_to)


def _has_tables(connection: Connection) -> bool:
    return sa.inspect(connection).has_table(META.name)


def _make_tables_alone(connection: Connection) -> None:
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING_TABLES)))
