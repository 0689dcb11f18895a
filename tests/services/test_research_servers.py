"""The source on real servers: the suite, what columns hold, read only, one state."""

from contextlib import closing, contextmanager

import pytest
import sqlalchemy as sa
from casebound.errors import ResearchError
from casebound.research.source import SqlSource
from casebound.specs import Catalog, EnrichmentRule
from casebound.testing.conformance.catalog import Capabilities, CatalogConformance, Host
from sqlalchemy.exc import DBAPIError

pytestmark = pytest.mark.services


@contextmanager
def opened(url, **options):
    options = {"tables": ["hosts"], **options}
    with closing(SqlSource.open(url, snapshot_id="s-1", **options)) as source:
        yield source


class _ServerSource(CatalogConformance):
    @pytest.fixture
    def load(self, own):
        sources = []
        own.fill([])

        def load(rows, **limits):
            own.run("DELETE FROM hosts")
            own.insert(rows)
            sources.append(SqlSource.open(own.url, snapshot_id="s-1", tables=["hosts"], **limits))
            return sources[-1]

        yield load
        for source in sources:
            source.close()


class TestMariaDbSource(_ServerSource):
    capabilities = Capabilities(most_examples=60)

    @pytest.fixture
    def own(self, mariadb):
        return mariadb


class TestPostgresqlSource(_ServerSource):
    capabilities = Capabilities(holds_nul=False, most_examples=60)

    @pytest.fixture
    def own(self, postgresql):
        return postgresql


CATALOG = Catalog("inv.host", "host", "hosts", "id", "name", ("id", "name"))


def look_up(source, term, most=8):
    return source.look_up_all([(source.freeze_catalog(CATALOG), term)], most)[0]


def ids(capture):
    return [row[0] for row in capture.rows]


# --- what a column holds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "collation", ["utf8mb4_bin", "utf8mb4_general_ci", "latin1_swedish_ci", "latin1_bin", "utf8mb3_general_ci"]
)
def test_the_collation_of_a_column_decides_nothing(mariadb, collation):
    mariadb.fill([Host("1", "Élan Node"), Host("2", "elan node"), Host("3", "other")], collation)
    with opened(mariadb.url) as source:
        assert ids(look_up(source, "ÉLAN N")) == ["1"]
        assert ids(look_up(source, "ELAN n")) == ["2"]
        assert ids(look_up(source, "узел")) == []


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,PIPES_AS_CONCAT"])
def test_the_mode_of_the_server_decides_nothing(mariadb, mode):
    mariadb.fill([Host("1", r"a\b' %_ c"), Host("2", "ab")])
    with mariadb.admin.connect() as connection:
        before = connection.execute(sa.text("SELECT @@GLOBAL.sql_mode")).scalar_one()
        connection.execute(sa.text("SET GLOBAL sql_mode = :mode"), {"mode": mode})
    try:
        with opened(mariadb.url) as source:
            assert ids(look_up(source, r"A\B' %_")) == ["1"]
    finally:
        with mariadb.admin.connect() as connection:
            connection.execute(sa.text("SET GLOBAL sql_mode = :mode"), {"mode": before})


def test_an_integer_id_is_compared_exactly_and_is_a_string(server):
    server.run("DROP TABLE IF EXISTS hosts", "CREATE TABLE hosts (id BIGINT, name VARCHAR(50))")
    server.run("INSERT INTO hosts VALUES (11431, 'node'), (0, 'zero')")
    with opened(server.url) as source:
        rule = source.freeze_rule(EnrichmentRule("r", "host", "hosts", "id", ("id", "name"), "name"))
        asked = ["11431", "011431", "11431 ", "11431.0", "1143l", "+11431", "", "99999999999999999999", "0", "x"]
        captures = source.entity_rows_all([(rule, each) for each in asked if each], 5)
        found = {capture.entity_id: capture.rows for capture in captures if capture.rows}
        assert found == {"11431": (("11431", "node"),), "0": (("0", "zero"),)}
        assert ids(look_up(source, "node")) == ["11431"]


def test_cells_are_the_same_as_on_sqlite_or_typed(server):
    real = "DOUBLE" if server.kind == "mariadb" else "DOUBLE PRECISION"
    raw, value = ("VARBINARY(8)", "x'00ff'") if server.kind == "mariadb" else ("BYTEA", "'\\x00ff'")
    server.run(
        "DROP TABLE IF EXISTS hosts",
        f"CREATE TABLE hosts (id INT, name VARCHAR(50), cost DECIMAL(20,4), heat {real}, raw {raw}, at TIMESTAMP(3))",
        f"INSERT INTO hosts VALUES (1, 'node', 12345678901234.5000, 0.1, {value}, '2026-01-02 03:04:05.678')",
        "INSERT INTO hosts (id, name, at) VALUES (2, 'node 2', '2026-01-02 03:04:05')",
    )
    columns = ("id", "name", "cost", "heat", "raw", "at")
    with opened(server.url) as source:
        catalog = source.freeze_catalog(Catalog("inv.host", "host", "hosts", "id", "name", columns))
        rows = source.look_up_all([(catalog, "node")], 8)[0].to_json()["rows"]
    assert rows[0] == [
        "1",
        "node",
        {"t": "dec", "v": "12345678901234.5000"},
        {"t": "dec", "v": "0.1"},
        {"t": "bytes", "v": "00ff"},
        {"t": "time", "v": "2026-01-02T03:04:05.678000"},
    ]
    assert rows[1][2:5] == [None, None, None]


def test_what_has_no_exact_form_is_refused(postgresql):
    postgresql.run(
        "DROP TABLE IF EXISTS hosts",
        "CREATE TABLE hosts (id INT, name TEXT, heat DOUBLE PRECISION, tags TEXT[])",
        "INSERT INTO hosts VALUES (1, 'node', 'NaN', NULL), (2, 'rack', 1, '{a}')",
    )
    with opened(postgresql.url) as source:
        catalog = source.freeze_catalog(Catalog("h", "host", "hosts", "id", "name", ("id", "name", "heat", "tags")))
        with pytest.raises(ResearchError, match="column heat"):
            source.look_up_all([(catalog, "node")], 8)
        with pytest.raises(ResearchError, match="column tags"):
            source.look_up_all([(catalog, "rack")], 8)


def test_an_enum_and_a_padded_name_are_searched_too(postgresql):
    postgresql.run(
        "DROP TABLE IF EXISTS hosts",
        "DROP TYPE IF EXISTS kind",
        "CREATE TYPE kind AS ENUM ('Node', 'rack')",
        "CREATE TABLE hosts (id INT, name kind, padded CHAR(8))",
        "INSERT INTO hosts VALUES (1, 'Node', 'ab'), (2, 'rack', 'c')",
    )
    with opened(postgresql.url) as source:
        assert ids(look_up(source, "node")) == ["1"]
        padded = source.freeze_catalog(Catalog("h", "host", "hosts", "id", "padded", ("id", "padded")))
        assert ids(source.look_up_all([(padded, "AB ")], 8)[0]) == ["1"]


# --- read only, one state, only our statements ------------------------------------------------------------------------


@pytest.mark.spec("A-021")
@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO hosts (id) VALUES ('9')", "UPDATE hosts SET id = '9'", "DELETE FROM hosts", "CREATE TABLE t (a INT)"],
)
def test_a_write_is_refused_by_the_transaction(server, statement):
    server.fill([Host("1", "node")])
    with (
        opened(server.url) as source,
        pytest.raises(DBAPIError) as refused,
        source._database.transaction() as connection,
    ):
        connection.exec_driver_sql(statement)
    original = refused.value.orig
    assert getattr(original, "sqlstate", original.args[0]) in ("25006", 1792)
    with opened(server.url) as source:
        assert look_up(source, "node").matched == 1


def test_all_look_ups_of_a_batch_see_one_state(server):
    server.fill([Host("1", "node"), Host("2", "rack")])
    with opened(server.url) as source:
        frozen = source.freeze_catalog(CATALOG)
        writes = iter([[Host("3", "rack")]])

        def write_between(_connection, _cursor, statement, *_):
            if "hosts" in statement and statement.startswith("SELECT"):
                server.insert(next(writes, []))

        sa.event.listen(source._database.engine, "after_cursor_execute", write_between)
        first, second = source.look_up_all([(frozen, "node"), (frozen, "rack")], 8)
        assert (ids(first), ids(second)) == (["1"], ["2"])
        assert ids(source.look_up_all([(frozen, "rack")], 8)[0]) == ["2", "3"]


@pytest.mark.spec("A-022", "A-058", "A-063")
def test_nothing_but_the_look_up_and_its_transaction_is_sent(server):
    server.fill([Host("1", "node")])
    sent = []
    with opened(server.url) as source:
        frozen = source.freeze_catalog(CATALOG)
        rule = source.freeze_rule(EnrichmentRule("r", "host", "hosts", "id", ("id", "name"), "name"))
        sa.event.listen(
            source._database.engine,
            "before_cursor_execute",
            lambda c, cursor, text, values, *_: sent.append((text, values)),
        )
        captures = [*source.look_up_all([(frozen, "node'; DROP")], 8), *source.entity_rows_all([(rule, "1")], 8)]
    questions = [(text, values) for text, values in sent if not text.startswith(("SET ", "START TRANSACTION"))]
    assert [text for text, _ in questions] == [capture.statement for capture in captures]
    for (_, values), capture in zip(questions, captures, strict=True):
        bound = values.values() if isinstance(values, dict) else values
        assert tuple(map(str, bound)) == capture.parameters
    assert not any("DROP" in text for text, _ in sent)
