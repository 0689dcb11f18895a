"""The embedded sample: a small world database, settings for it, and a report about a creature that cannot be found.

Rules:
- The sample is text in this package (`sample/`); the database is made from it with the standard library alone.
- Text files are copied byte for byte. A table holds the same rows everywhere; the bytes of the database file, and so
  its digest, may differ between versions of SQLite.
- Files are created, never replaced.
"""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from pathlib import Path

from casebound.errors import SettingsError

DATABASE = "world.db"
REPORTS = ("report.md",)
SETTINGS = "casebound.toml"


def fill(folder: Path) -> list[Path]:
    """Put the sample into an existing folder.

    Args:
        folder: is empty, or holds none of the sample's files.

    Returns:
        The reports, in the order in which they should be resolved.

    Raises:
        SettingsError: `WORKSPACE_WRITE`: a file is there already, or cannot be written.
    """
    for name in (SETTINGS, *REPORTS):
        _create(folder / name, _sample(name))
    _build_database(folder / DATABASE, _sample("world.sql").decode("utf-8"))
    return [folder / name for name in REPORTS]


def _sample(name: str) -> bytes:
    return files("casebound_catalog_vcore").joinpath("sample", name).read_bytes()


def _create(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except OSError as exc:
        raise SettingsError("WORKSPACE_WRITE", path=str(path), found=exc.strerror or type(exc).__name__) from exc


def _build_database(path: Path, script: str) -> None:
    _create(path, b"")
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
        finally:
            connection.close()
    except sqlite3.Error as exc:
        raise SettingsError("WORKSPACE_WRITE", path=str(path), found=str(exc)) from exc
