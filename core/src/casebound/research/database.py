"""One consistent, read-only, time-limited transaction on any of the supported databases.

Rules:
- Every question of a batch is asked inside one transaction that sees one state: SQLite's own read transaction,
  `REPEATABLE READ` with a consistent snapshot on MariaDB and MySQL (InnoDB tables; older engines have no snapshots),
  `REPEATABLE READ, READ ONLY` on PostgreSQL.
- A question ends at `statement_timeout_s`: by the server, by the clock between rows, and by cutting the connection
  where the server is silent.
- No library exception leaves here, and no URL: see `casebound.research.outage`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import ArgumentError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from casebound.clock import Clock
from casebound.errors import SettingsError
from casebound.research import sqlite_file
from casebound.research.deadline import Deadline
from casebound.research.outage import failure, time_over
from casebound.research.query import Query

# Scheme → dialect as bindings name it, driver, extra of this distribution.
_DRIVERS = {
    "mysql": ("mysql", "pymysql", "mysql"),
    "mysql+pymysql": ("mysql", "pymysql", "mysql"),
    "mariadb": ("mysql", "pymysql", "mysql"),
    "mariadb+pymysql": ("mysql", "pymysql", "mysql"),
    "postgresql": ("postgresql", "psycopg", "postgresql"),
    "postgresql+psycopg": ("postgresql", "psycopg", "postgresql"),
}
_SQLITE_SCHEMES = ("sqlite", "sqlite+pysqlite")
_PORTS = {"mysql": 3306, "postgresql": 5432}
_STREAMED = {"yield_per": 256}


class Database:
    """A database that is only read. Threads may share one: each has its own connection and its own time.

    Attributes:
        dialect: `sqlite`, `mysql` (MariaDB too) or `postgresql`.
        name: the database's name; of a SQLite file its name without the folder.
        path: the SQLite file, else None.
        engine: SQLAlchemy's; it keeps no connection to a server, and those to a file until the file changes.
    """

    def __init__(self, url: str, tables: Sequence[str], timeout_s: int, clock: Clock) -> None:
        parsed = _parse(url)
        self._deadline = deadline = Deadline(timeout_s, clock)
        self.path = None
        if parsed.drivername in _SQLITE_SCHEMES:
            self.dialect = "sqlite"
            self.path = path = sqlite_file.path_of(parsed.database)
            self.name = path.name
            self._server = ""
            self.engine = _file_engine(path, lambda: sqlite_file.connect(path, tables, timeout_s, deadline.is_late))
            return
        self.dialect, driver, extra = _DRIVERS[parsed.drivername]
        if find_spec(driver) is None:
            raise SettingsError(
                "SETTINGS_DRIVER", found=driver, pointer="database.url", hint=f"pip install 'casebound[{extra}]'"
            )
        if not parsed.database:
            raise SettingsError(
                "SETTINGS_VALUE", pointer="database.url", found="a URL without a database", expected="…/DATABASE"
            )
        self.name = parsed.database
        self._server = f" on {parsed.host or 'localhost'}:{parsed.port or _PORTS[self.dialect]}"
        self.engine = _server_engine(parsed, f"{parsed.drivername.partition('+')[0]}+{driver}", deadline)

    def place(self, table: str | None = None) -> str:
        """Return where something happened, for errors: dialect, database, host and port, table. Never the URL."""
        return f"{self.dialect} database {self.name}{self._server}" + (f", table {table}" if table else "")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a connection and one read transaction; both end with the block.

        Raises: as `asking`.
        """
        try:
            with self.asking():
                connection = self.engine.connect()
            try:
                with self.asking():
                    self._begin(connection)
                yield connection
                with self.asking():
                    connection.rollback()
            except BaseException:
                # A clean end would talk to a server that may be silent.
                connection.invalidate()
                raise
            finally:
                connection.close()
        finally:
            self._deadline.forget()

    def _begin(self, connection: Connection) -> None:
        seconds = self._deadline.seconds
        if self.dialect == "sqlite":
            connection.exec_driver_sql("BEGIN")
            # BEGIN alone takes no lock; the first read does, and fixes what is seen.
            connection.exec_driver_sql("PRAGMA schema_version").all()
        elif self.dialect == "mysql":
            is_mariadb = getattr(connection.dialect, "is_mariadb", False)
            limit = f"max_statement_time={seconds}" if is_mariadb else f"max_execution_time={seconds * 1000}"
            connection.exec_driver_sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            connection.exec_driver_sql(f"SET SESSION sql_mode='', {limit}")
            connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            connection.exec_driver_sql(f"SET LOCAL statement_timeout={seconds * 1000}")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout={seconds * 1000}")

    @contextmanager
    def asking(self, table: str | None = None) -> Iterator[None]:
        """Give the block the time of one question.

        Raises:
            ResearchError: `RESEARCH_UNAVAILABLE`, whatever a library raises in the block.
            SettingsError: `SETTINGS_DATABASE` where there is no such database.
        """
        cutting_off = self._deadline.cutting_off() if self.dialect == "postgresql" else nullcontext()
        with self._deadline.question():
            try:
                with cutting_off:
                    yield
            # A driver may raise what is no error of its own: PyMySQL a RuntimeError for a login that it cannot do.
            except (SQLAlchemyError, OSError, UnicodeError, RuntimeError, ValueError) as exc:
                late, missing = self._deadline.is_late(), sqlite_file.missing(self.path) if self.path else None
                raise failure(exc, self.place(table), late=late, missing=missing) from None

    def rows(self, connection: Connection, query: Query, table: str) -> Generator[Sequence[object]]:
        """Stream the rows of `query`; only a few hundred are in memory at a time. Close it before the next question.

        Raises:
            ResearchError: `RESEARCH_UNAVAILABLE`, also in the middle of the rows.
        """
        with self.asking(table), connection.execute(query.select, query.values, execution_options=_STREAMED) as result:
            for part in result.partitions():
                if self._deadline.is_late():
                    raise time_over(self.place(table))
                yield from part

    def has_unicode(self, connection: Connection) -> bool:
        """Tell whether the server's own encoding holds every character that a bound value may have."""
        if self.dialect != "postgresql":
            return True
        info = getattr(connection.connection.driver_connection, "info", None)
        return info is not None and info.parameter_status("server_encoding") == "UTF8"

    def close(self) -> None:
        """Let go of the engine."""
        self.engine.dispose()


def _parse(url: str) -> URL:
    accepted = (*_SQLITE_SCHEMES, *_DRIVERS)
    found = "something that is no database URL"
    with suppress(ArgumentError, ValueError):
        parsed = make_url(url)
        if parsed.drivername in accepted:
            return parsed
        found = f"the scheme {parsed.drivername}"
    raise SettingsError("SETTINGS_VALUE", pointer="database.url", found=found, allowed=accepted)


def _server_engine(url: URL, scheme: str, deadline: Deadline) -> Engine:
    url = url.set(drivername=scheme)
    if scheme.startswith("postgresql"):
        engine = _engine(url, connect_args={"connect_timeout": deadline.seconds, "client_encoding": "utf8"})
        event.listen(engine, "connect", lambda driver, _: deadline.watch(driver.fileno()), insert=True)
        event.listen(engine, "handle_error", _close_dead_cursor)
        return engine
    waits = {"connect_timeout": deadline.seconds, "read_timeout": deadline.wait_s, "write_timeout": deadline.wait_s}
    return _engine(url, connect_args={**waits, "charset": "utf8mb4", "local_infile": False})


def _file_engine(path: Path, connect: Callable[[], sqlite_file.FileConnection]) -> Engine:
    """Return an engine that keeps connections, and with them prepared statements, as long as the file is the same."""
    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=0, pool_reset_on_return=None, hide_parameters=True
    )

    def compare(driver: object, *_: object) -> None:
        # Whatever SQLite remembers of another state, or of a file that was replaced, is not to be answered from.
        with suppress(OSError):
            if isinstance(driver, sqlite_file.FileConnection) and driver.signature == sqlite_file.signature_of(path):
                return
        raise DisconnectionError

    event.listen(engine, "checkout", compare)
    return engine


def _close_dead_cursor(context: ExceptionContext) -> None:
    """Close psycopg's cursor on our side only: its own `close` would ask a server that is gone, and leave it open."""
    import psycopg

    cursor = getattr(context.execution_context, "cursor", None)
    if context.is_disconnect and isinstance(cursor, psycopg.Cursor):
        psycopg.Cursor.close(cursor)


def _engine(url: URL, **options: object) -> Engine:
    # No reset by the pool: it would write a driver's message to the log when the server is gone.
    return create_engine(url, poolclass=NullPool, pool_reset_on_return=None, hide_parameters=True, **options)
