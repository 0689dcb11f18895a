"""The SQLite source passes the suite, and keeps its file safe."""

import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from casebound.canonical import digest_of
from casebound.errors import ResearchError, SettingsError
from casebound.research.source import SqlSource
from casebound.specs import Catalog, EnrichmentRule
from casebound.testing.conformance.catalog import CatalogConformance, Host
from sqlalchemy import URL, event
from sqlalchemy.exc import DBAPIError


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


CATALOG = Catalog("inv.host", "host", "hosts", "id", "name", ("id", "name"))
CANARY = "canary-5d1f"


@pytest.fixture
def world(tmp_path):
    path = tmp_path / "world.db"
    fill(path, [Host("1", "node"), Host("2", "rack")])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE secrets (id TEXT, name TEXT)")
    return path


def opened(path, tables=("hosts",), **options):
    url = URL.create("sqlite", database=str(path)).render_as_string()
    return SqlSource.open(url, snapshot_id="s-1", tables=tables, **options)


def look_up(source, term="node", most=8):
    return source.look_up_all([(source.freeze_catalog(CATALOG), term)], most)[0]


def ids(capture):
    return [row[0] for row in capture.rows]


def assert_unavailable(source, found):
    with pytest.raises(ResearchError) as failed:
        look_up(source)
    assert failed.value.code == "RESEARCH_UNAVAILABLE"
    assert found in failed.value.found
    assert CANARY not in "".join(traceback.format_exception(failed.value))


@pytest.mark.spec("A-021", "A-058")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO hosts VALUES ('9', 'x', NULL, NULL)",
        "DELETE FROM hosts",
        "DROP TABLE hosts",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "ATTACH '{other}' AS other",
        "VACUUM INTO '{other}'",
        "PRAGMA query_only=OFF",
        "PRAGMA schema_version=9",
        "SELECT * FROM secrets",
        "SELECT load_extension('x')",
    ],
)
def test_nothing_but_reading_the_allowed_tables_is_possible(world, tmp_path, statement):
    before = world.read_bytes()
    other = tmp_path / "other.db"
    with closing(opened(world)) as source, pytest.raises(DBAPIError), source._database.transaction() as connection:
        connection.exec_driver_sql(statement.format(other=other))
    assert world.read_bytes() == before
    assert not other.exists()


def test_a_view_may_read_its_own_tables(world):
    with closing(sqlite3.connect(world)) as connection, connection:
        connection.execute("CREATE VIEW names AS SELECT id, upper(name) AS name FROM hosts")
    with closing(opened(world, tables=["names"])) as source:
        catalog = source.freeze_catalog(Catalog("n", "host", "names", "id", "name", ("id", "name")))
        assert source.look_up_all([(catalog, "node")], 8)[0].rows == (("1", "NODE"),)


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_batch_sees_one_state_and_is_bound_to_it(world, mode):
    with closing(sqlite3.connect(world, timeout=0)) as writer, closing(opened(world)) as source:
        writer.execute(f"PRAGMA journal_mode={mode}")
        frozen = source.freeze_catalog(CATALOG)
        before = source.binding()

        def write_between(_connection, _cursor, statement, *_):
            # In rollback mode the commit must wait for the reader; in WAL mode it succeeds beside it.
            if statement.startswith("SELECT"):
                writer.execute("INSERT INTO hosts VALUES ('3', 'rack', NULL, NULL)")
                try:
                    writer.commit()
                except sqlite3.OperationalError:
                    writer.rollback()

        event.listen(source._database.engine, "after_cursor_execute", write_between)
        captures = source.look_up_all([(frozen, "node"), (frozen, "rack")], 8)
        event.remove(source._database.engine, "after_cursor_execute", write_between)
        assert [ids(capture) for capture in captures] == [["1"], ["2"]]
        assert {capture.binding for capture in captures} == {before}
        assert (source.binding() == before) is (mode == "DELETE")


@pytest.mark.spec("A-027")
def test_the_digest_is_that_of_the_file_and_follows_it(world):
    with closing(opened(world)) as source:
        first = source.binding()
        assert first.file_digest == digest_of(world.read_bytes())
        assert (first.dialect, first.database, first.snapshot_id) == ("sqlite", "world.db", "s-1")
        fill(world, [Host("1", "node two")])
        assert source.binding().file_digest == digest_of(world.read_bytes()) != first.file_digest


@pytest.mark.parametrize(("writes", "holds"), [(1, True), (100, False)])
def test_a_write_between_measuring_and_reading_is_noticed(world, writes, holds):
    sizes = iter(range(1, writes + 1))

    def write_before_the_read(_connection, _record, _proxy):
        if size := next(sizes, None):
            fill(world, [Host("1", "node")] * 200 * size)

    with closing(opened(world)) as source:
        frozen = source.freeze_catalog(CATALOG)
        event.listen(source._database.engine, "checkout", write_before_the_read)
        if holds:
            binding = source.look_up_all([(frozen, "node")], 8)[0].binding
            assert binding.file_digest == digest_of(world.read_bytes())
        else:
            with pytest.raises(ResearchError, match="being written all the time"):
                source.look_up_all([(frozen, "node")], 8)


def test_a_connection_is_kept_as_long_as_the_file_is_the_same(world, tmp_path):
    connected = []
    with closing(opened(world)) as source:
        event.listen(source._database.engine, "connect", lambda *_: connected.append(1))
        frozen = source.freeze_catalog(CATALOG)

        def names(term: str) -> list[str]:
            [capture] = source.look_up_all([(frozen, term)], 8)
            return [row[1] for row in capture.rows]

        fill(world, [Host("1", "node one")])
        assert names("node") == names("ode") == ["node one"]
        assert len(connected) == 2  # one read the columns, of the file before it was filled
        fill(world, [Host("1", "node two")])
        assert names("node") == ["node two"]
        other = tmp_path / "other.db"
        shutil.copy(world, other)
        fill(other, [Host("1", "node six")])
        os.replace(other, world)
        assert names("node") == names("ode") == ["node six"]
        assert len(connected) == 4


def test_a_file_that_takes_the_place_of_another_while_it_is_opened_is_not_answered_from_under_its_digest(
    world, tmp_path, monkeypatch
):
    other = tmp_path / "other.db"
    fill(other, [Host("1", "node six")])
    connect = sqlite3.connect

    def late(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("SELECT * FROM sqlite_master").fetchall()  # it has the file open
        if other.exists():
            os.replace(other, world)
        return connection

    with closing(opened(world)) as source:
        frozen = source.freeze_catalog(CATALOG)
        source.close()  # so that the next look-up connects
        monkeypatch.setattr(sqlite3, "connect", late)
        captures = [source.look_up_all([(frozen, term)], 8)[0] for term in ("node", "ode")]
        assert [(capture.rows[0][1], capture.binding.file_digest) for capture in captures] == [
            ("node six", digest_of(world.read_bytes()))
        ] * 2


WRITE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=0) as writer:
    writer.execute("UPDATE hosts SET name = 'changed'")
"""


def test_no_other_process_writes_while_a_state_is_read_though_its_digest_was_taken_then(world):
    with closing(opened(world)) as source, source._reading():
        written = subprocess.run([sys.executable, "-c", WRITE, world], capture_output=True, text=True)
    assert "database is locked" in written.stderr


def test_a_locked_file_is_unavailable(world):
    with closing(sqlite3.connect(world)) as writer, closing(opened(world, statement_timeout_s=1)) as source:
        writer.execute("BEGIN EXCLUSIVE")
        assert_unavailable(source, "the database is locked by another program")
        writer.rollback()
        assert ids(look_up(source)) == ["1"]


@pytest.mark.parametrize("bad", ["missing", "no_database", "folder", "no_table"])
def test_a_database_that_is_not_there_is_a_setting_and_no_outage(tmp_path, bad):
    path = tmp_path / CANARY / "world.db"
    path.parent.mkdir()
    if bad == "no_database":
        path.write_bytes(b"not a database at all" * 100)
    elif bad == "folder":
        path.mkdir()
    elif bad == "no_table":
        sqlite3.connect(path).close()
    found = {
        "missing": "no such file: world.db",
        "no_database": "the file is no SQLite database",
        "folder": "world.db is no file",
        "no_table": "the database has no table hosts",
    }[bad]
    with closing(opened(path)) as source, pytest.raises(SettingsError) as failed:
        look_up(source)
    assert failed.value.code == ("SETTINGS_TABLE" if bad == "no_table" else "SETTINGS_DATABASE")
    assert found in failed.value.found
    assert "world.db" in str(failed.value)
    assert CANARY not in "".join(traceback.format_exception(failed.value))
    assert path.exists() is (bad != "missing")


def test_a_row_whose_id_is_empty_is_no_entity_like_one_without_an_id(world):
    with closing(opened(world)) as source:
        before = look_up(source)
    with closing(sqlite3.connect(world)) as connection, connection:
        connection.execute("INSERT INTO hosts VALUES ('', 'node', NULL, NULL)")
    with closing(opened(world)) as source:
        after = look_up(source)
    assert ids(after) == ids(before)
    assert "" not in ids(after)


def test_text_that_is_not_utf8_is_unavailable_not_skipped(world):
    with closing(sqlite3.connect(world)) as connection, connection:
        connection.execute("INSERT INTO hosts VALUES ('3', CAST(x'6e6f6465ff' AS TEXT), NULL, NULL)")
    with closing(opened(world)) as source:
        assert_unavailable(source, "a text that is not valid UTF-8")
        assert ids(look_up(source, "rack")) == ["2"]


class LeapingClock:
    """Every look at it is a hundred seconds later."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        raise AssertionError("nothing here asks for the date")

    def monotonic(self):
        self.seconds += 100
        return self.seconds


def test_a_query_ends_with_its_time(world):
    with closing(opened(world, clock=LeapingClock())) as source:
        assert_unavailable(source, "the time limit was met")


def test_a_query_without_rows_is_interrupted(world):
    with closing(sqlite3.connect(world)) as connection, connection:
        connection.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
            " SELECT id, 'x' || id AS name FROM n"
        )
    with closing(opened(world, tables=["endless"], clock=LeapingClock())) as source:
        catalog = source.freeze_catalog(Catalog("e", "host", "endless", "id", "name", ("id", "name")))
        with pytest.raises(ResearchError, match="the time limit was met"):
            source.look_up_all([(catalog, "node")], 8)


@pytest.mark.spec("A-022", "A-024", "A-153c")
def test_one_statement_a_question_and_no_other_table(world):
    sent = []
    with closing(opened(world)) as source:
        frozen = source.freeze_catalog(CATALOG)
        rule = source.freeze_rule(EnrichmentRule("r", "host", "hosts", "id", ("id", "name"), "name"))
        event.listen(source._database.engine, "before_cursor_execute", lambda *facts: sent.append(facts[2:4]))
        captures = [
            *source.look_up_all([(frozen, "node"), (frozen, "rack")], 8),
            *source.entity_rows_all([(rule, "1")], 8),
        ]
        with pytest.raises(SettingsError):
            source.look_up_all([(frozen, "node"), (frozen, "\0")], 8)
    begin = [("BEGIN", ()), ("PRAGMA schema_version", ())]
    asked = [(capture.statement, capture.parameters) for capture in captures]
    assert [(text, tuple(map(str, values))) for text, values in sent] == [*begin, *asked[:2], *begin, asked[2]]


def test_many_rows_take_little_memory(tmp_path):
    path = tmp_path / "world.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE hosts (id INTEGER, name TEXT)")
        connection.executemany(
            "INSERT INTO hosts VALUES (?, ?)", ((n, f"node {'x' * 1000} {n}") for n in range(20_000))
        )
    with closing(opened(path, statement_timeout_s=120)) as source:
        source.freeze_catalog(CATALOG)
        tracemalloc.start()
        capture = look_up(source)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (capture.matched, capture.rows[0][0]) == (20_000, "0")
    assert peak < 4_000_000


def test_threads_share_a_source(world):
    with closing(opened(world)) as source, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda term: ids(look_up(source, term)), ["node", "rack"] * 20)) == [["1"], ["2"]] * 20


def test_a_path_may_hold_signs_that_mean_something_in_an_address(tmp_path):
    path = tmp_path / "a%20b #&é"
    path.mkdir()
    fill(path / "w.db", [Host("1", "node")])
    with closing(opened(path / "w.db")) as source:
        assert ids(look_up(source)) == ["1"]


@pytest.mark.parametrize(
    "url",
    [
        f"oracle://user:{CANARY}@host/db",
        f"mysql+asyncmy://user:{CANARY}@host/db",
        f"no url, {CANARY}",
        f"mysql://user:{CANARY}@host:port/db",
        f"mysql://user:{CANARY}@host/",
        f"sqlite://?password={CANARY}",
        f"sqlite:///:memory:?password={CANARY}",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(url):
    with pytest.raises(SettingsError) as refused:
        SqlSource.open(url, snapshot_id="s", tables=["hosts"])
    assert refused.value.code == "SETTINGS_VALUE"
    assert CANARY not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("scheme", "driver", "extra"), [("mysql", "pymysql", "mysql"), ("postgresql", "psycopg", "postgresql")]
)
def test_a_missing_driver_names_what_to_install(monkeypatch, scheme, driver, extra):
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(SettingsError) as refused:
        SqlSource.open(f"{scheme}://user:{CANARY}@host/db", snapshot_id="s", tables=["hosts"])
    assert (refused.value.code, refused.value.found) == ("SETTINGS_DRIVER", driver)
    assert f"casebound[{extra}]" in str(refused.value)
    assert CANARY not in str(refused.value)


def test_the_database_library_is_loaded_only_when_a_source_is_opened():
    modules = "catalog, cell, enrichment, flags, fold, freeze, matching, scope, snapshot"
    code = f"import sys; from casebound.research import {modules}; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("url", "is_file"),
    [
        ("sqlite:///world.db", True),
        ("mysql://reader@127.0.0.1/world", False),
        ("postgresql://reader@127.0.0.1/world", False),
    ],
)
def test_a_source_tells_whether_this_process_reads_a_file(url, is_file):
    with closing(SqlSource.open(url, snapshot_id="s-1", tables=["hosts"])) as source:
        assert source.is_file is is_file
