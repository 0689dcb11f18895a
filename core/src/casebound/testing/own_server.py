"""A database server of a test's own, which may be stopped and started again while others work with it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from casebound.testing.inventory import HOST_NAMES, HOSTS, SERVICES
from casebound.testing.servers import Kind

_PATIENCE_S = 120
_OUT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class OwnServer:
    """A server with empty data below `folder`; it listens on a port of its own on loopback.

    Attributes:
        url: of a database that everybody may use.
    """

    def __init__(self, kind: Kind, folder: Path) -> None:
        self._kind = kind
        self._data = folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        if kind == "mariadb":
            self.url = f"mysql+pymysql://root@127.0.0.1:{self._port}/mysql?charset=utf8mb4"
            self._prepare_mariadb()
        else:
            self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
            self._prepare_postgresql(folder)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(self._command, **_OUT)  # type: ignore[call-overload]  # noqa: S603  # our own
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        for _ in range(_PATIENCE_S * 10):
            with suppress(SQLAlchemyError), engine.connect():
                return
            threading.Event().wait(0.1)
        raise AssertionError(f"{self._kind} does not answer on port {self._port}")

    def stop(self) -> None:
        """End it as a crash does; whoever uses it loses the connection. Nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _prepare_mariadb(self) -> None:
        user = "mysql" if os.getuid() == 0 else _name()
        self._data.mkdir()
        _give(self._data, user)
        options = ["--no-defaults", f"--user={user}", f"--datadir={self._data}"]
        more = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(["mariadb-install-db", *options, *more], check=True, **_OUT)  # type: ignore[call-overload]  # noqa: S603, S607  # as its package installs it
        address = [f"--port={self._port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        self._command = ["mariadbd", *options, *address, f"--socket={self._data}/s.sock"]

    def _prepare_postgresql(self, folder: Path) -> None:
        programs = Path(os.path.realpath(shutil.which("initdb") or "")).parent
        _give(folder, "postgres")
        alone = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
        options = ["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust"]
        made = [*alone, str(programs / "initdb"), "-D", str(self._data), *options]
        subprocess.run(made, check=True, cwd=folder, **_OUT)  # type: ignore[call-overload]  # noqa: S603  # our own
        address = ["listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off"]
        self._command = [*alone, str(programs / "postgres"), "-D", str(self._data), "-p", str(self._port)]
        self._command += [part for each in address for part in ("-c", each)]


@contextmanager
def own_server(kind: Kind) -> Iterator[OwnServer]:
    """Start a server for the block; skip the test where its programs are not installed."""
    needed = ("mariadbd", "mariadb-install-db") if kind == "mariadb" else ("initdb",)
    if not all(map(shutil.which, needed)):
        pytest.skip(f"no {' and '.join(needed)} on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # the server's own account must reach its data
        server = OwnServer(kind, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def fill_inventory(url: str) -> None:
    """Make the tables of the inventory project in a database, and fill them."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    tables: dict[str, Sequence[tuple[object, ...]]] = {
        "hosts (id INT PRIMARY KEY, fqdn VARCHAR(200), os VARCHAR(20))": HOSTS,
        "host_names (host_id INT, name VARCHAR(200), lang VARCHAR(8))": HOST_NAMES,
        "services (id INT PRIMARY KEY, title VARCHAR(200), purpose TEXT, host_count INT)": SERVICES,
    }
    with engine.begin() as connection:
        for table, rows in tables.items():
            connection.execute(sa.text(f"CREATE TABLE {table}"))
            for row in rows:
                values = {f"v{number}": value for number, value in enumerate(row)}
                places = ", ".join(f":{name}" for name in values)
                connection.execute(sa.text(f"INSERT INTO {table.split()[0]} VALUES ({places})"), values)  # noqa: S608  # our own names


def _give(folder: Path, user: str) -> None:
    if os.getuid() == 0:
        shutil.chown(folder, user)


def _name() -> str:
    return Path.home().owner()
