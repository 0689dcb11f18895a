"""The SQLite source passes the suite, and keeps its file safe."""

import sqlite3
from contextlib import closing

import pytest
from casebound.research.source import SqlSource
from casebound.testing.conformance.catalog import CatalogConformance


def fill(path, rows):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE IF EXISTS hosts")
        connection.execute("CREATE TABLE hosts (id TEXT, name TEXT, locale TEXT, note TEXT)")
        connection.executemany(
            "INSERT INTO hosts VALUES (?, ?, ?, ?)", [(row.id, row.name, row.locale, row.note) for row in rows]
        )


class TestSqliteSource(CatalogConformance):
    @pytest.fixture
    def load(self, tmp_path):
        sources = []

        def load(rows, **limits):
            path = tmp_path / "world.db"
            fill(path, rows)
            sources.append(SqlSource.open(f"sqlite:///{path}", snapshot_id="s-1", tables=["hosts"], **limits))
            return sources[-1]

        yield load
        for source in sources:
            source.close()
