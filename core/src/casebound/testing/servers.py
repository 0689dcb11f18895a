"""Real database servers for tests: a database of one's own on each, and a way to one that can fall silent.

The URLs come from CASEBOUND_TEST_MARIADB_URL and CASEBOUND_TEST_POSTGRESQL_URL; without them, loopback is tried.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Self, TypeAlias

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from casebound.testing.conformance.catalog_rows import Host

Kind: TypeAlias = Literal["mariadb", "postgresql"]

URLS: dict[Kind, str] = {
    "mariadb": os.environ.get("CASEBOUND_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/?charset=utf8mb4"),
    "postgresql": os.environ.get(
        "CASEBOUND_TEST_POSTGRESQL_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"
    ),
}


class Server:
    """A database with a random name on a real server, and an account that may change it.

    Attributes:
        kind: which server.
        name: the database's name.
        url: of that database, password included.
        admin: an engine on the server itself, for accounts and variables.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.admin = sa.create_engine(URLS[kind], isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        self.name = f"casebound_{uuid.uuid4().hex[:12]}"
        own = sa.make_url(URLS[kind]).set(database=self.name)
        self.url = own.render_as_string(hide_password=False)
        self._engine = sa.create_engine(own)

    def administer(self, *statements: str) -> None:
        """Run statements on the server itself."""
        with self.admin.connect() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    def run(self, *statements: str) -> None:
        """Run statements in the database, in one transaction."""
        with self._engine.begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    def fill(self, rows: Sequence[Host], collation: str = "utf8mb4_unicode_ci") -> None:
        """Make the table `hosts` of the catalog suite anew, with these rows; MariaDB with this collation."""
        table = "CREATE TABLE hosts (id VARCHAR(64), name VARCHAR(500), locale VARCHAR(8), note TEXT)"
        if self.kind == "mariadb":
            table += f" CHARACTER SET {collation.partition('_')[0]} COLLATE {collation} ENGINE=InnoDB"
        self.run("DROP TABLE IF EXISTS hosts", table)
        self.insert(rows)

    def insert(self, rows: Sequence[Host]) -> None:
        """Add rows to `hosts`, and commit."""
        values = [{"id": row.id, "name": row.name, "locale": row.locale, "note": row.note} for row in rows]
        if values:
            with self._engine.begin() as connection:
                connection.execute(sa.text("INSERT INTO hosts VALUES (:id, :name, :locale, :note)"), values)

    def drop(self) -> None:
        """Remove the database."""
        self._engine.dispose()
        # A connection that a test cut off may linger on PostgreSQL, which then would not drop the database.
        self.administer(f"DROP DATABASE {self.name}{' WITH (FORCE)' if self.kind == 'postgresql' else ''}")


@contextmanager
def running_server(kind: Kind) -> Iterator[Server]:
    """Create a database for the block and drop it after; skip the test where there is no such server."""
    server = Server(kind)
    encoding = "CHARACTER SET utf8mb4" if kind == "mariadb" else "ENCODING 'UTF8' TEMPLATE template0"
    try:
        server.administer(f"CREATE DATABASE {server.name} {encoding}")
    except DBAPIError:
        pytest.skip(f"no {kind} at the URL of CASEBOUND_TEST_{kind.upper()}_URL")
    try:
        yield server
    finally:
        server.drop()


class Relay:
    """A way to a server that can fall silent without closing; its `port` is on loopback.

    Attributes:
        silent: once set, nothing is passed on any more.
    """

    def __init__(self, host: str, port: int) -> None:
        self.silent = threading.Event()
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            self._open += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return
