"""What the source says when a server refuses, is gone, falls silent or takes too long: never nothing, no secret."""

import re
import socket
import traceback
import uuid
from contextlib import closing, contextmanager

import pytest
import sqlalchemy as sa
from casebound.errors import ResearchError, SettingsError
from casebound.research.source import SqlSource
from casebound.specs import Catalog
from casebound.testing.conformance.catalog import Host
from casebound.testing.servers import Relay

pytestmark = pytest.mark.services
CANARY = "canary-5d1f"


@contextmanager
def opened(url, **options):
    options = {"tables": ["hosts"], **options}
    with closing(SqlSource.open(url, snapshot_id="s-1", **options)) as source:
        yield source


CATALOG = Catalog("inv.host", "host", "hosts", "id", "name", ("id", "name"))


def look_up(source, term, most=8):
    return source.look_up_all([(source.freeze_catalog(CATALOG), term)], most)[0]


def ids(capture):
    return [row[0] for row in capture.rows]


def test_an_account_that_may_only_select_is_enough(mariadb):
    mariadb.fill([Host("1", "node")])
    account = f"reader_{uuid.uuid4().hex[:8]}"
    with mariadb.admin.connect() as connection:
        connection.execute(sa.text(f"CREATE USER '{account}'@'%' IDENTIFIED BY '{CANARY}'"))
        connection.execute(sa.text(f"GRANT SELECT ON {mariadb.name}.hosts TO '{account}'@'%'"))
    try:
        url = sa.make_url(mariadb.url).set(username=account, password=CANARY)
        with opened(url.render_as_string(hide_password=False)) as source:
            assert ids(look_up(source, "node")) == ["1"]
        with opened(url.set(password="no" + CANARY).render_as_string(hide_password=False)) as source:
            assert_unavailable(source, "the server refused the login")
    finally:
        with mariadb.admin.connect() as connection:
            connection.execute(sa.text(f"DROP USER '{account}'@'%'"))


def assert_unavailable(source, reason):
    with pytest.raises(ResearchError) as failed:
        look_up(source, "node")
    assert failed.value.code == "RESEARCH_UNAVAILABLE"
    assert re.search(reason, failed.value.found)
    shown = "".join(traceback.format_exception(failed.value))
    assert CANARY not in shown
    assert re.search(r"(mysql|postgresql) database \w+ on 127\.0\.0\.1:\d+", failed.value.where)


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg"])
def test_a_stopped_server_is_unavailable_and_the_url_stays_hidden(scheme):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"{scheme}://{CANARY}:{CANARY}@127.0.0.1:{port}/world"
    with closing(SqlSource.open(url, snapshot_id="s", tables=["hosts"], statement_timeout_s=1)) as source:
        assert_unavailable(source, "no connection to the server")
        assert source.binding().database == "world"


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg"])
def test_a_server_that_never_answers_is_unavailable(scheme):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"{scheme}://{CANARY}:{CANARY}@127.0.0.1:{silent.getsockname()[1]}/world"
        with closing(SqlSource.open(url, snapshot_id="s", tables=["hosts"], statement_timeout_s=1)) as source:
            assert_unavailable(source, "no connection|time limit|lost")


@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_a_server_that_falls_silent_in_the_middle_is_unavailable(kind, request):
    server = request.getfixturevalue(kind)
    server.fill([Host("1", "node")])
    own = sa.make_url(server.url)
    with Relay(own.host, own.port) as relay:
        url = own.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        with opened(url, statement_timeout_s=1) as source:
            frozen = source.freeze_catalog(CATALOG)
            sa.event.listen(
                source._database.engine,
                "before_cursor_execute",
                lambda c, cursor, text, *_: relay.silent.set() if "FROM hosts" in text else None,
            )
            with pytest.raises(ResearchError) as failed:
                source.look_up_all([(frozen, "node")], 8)
    assert failed.value.found in ("the time limit was met", "the connection to the server was lost")


def test_a_query_that_takes_too_long_is_unavailable(server):
    sleep = "SLEEP(3)" if server.kind == "mariadb" else "pg_sleep(3)::text"
    view = f"CREATE VIEW slow AS SELECT id, CONCAT(name, {sleep}) AS name FROM hosts"
    server.run("DROP VIEW IF EXISTS slow")
    server.fill([Host("1", "node")])
    server.run(view)
    try:
        with opened(server.url, tables=["slow"], statement_timeout_s=1) as source:
            catalog = source.freeze_catalog(Catalog("h", "host", "slow", "id", "name", ("id", "name")))
            with pytest.raises(ResearchError) as failed:
                source.look_up_all([(catalog, "node")], 8)
        assert failed.value.found == "the time limit was met"
    finally:
        server.run("DROP VIEW slow")


def test_one_failed_search_of_four_leaves_no_result(server):
    server.fill([Host("1", "node")])
    server.run("DROP TABLE IF EXISTS racks", "CREATE TABLE racks (id INT, name VARCHAR(20))")
    with opened(server.url, tables=["hosts", "racks"]) as source:
        hosts = source.freeze_catalog(CATALOG)
        racks = source.freeze_catalog(Catalog("inv.rack", "rack", "racks", "id", "name", ("id", "name")))
        server.run("DROP TABLE racks")
        with pytest.raises(ResearchError, match="table racks") as failed:
            source.look_up_all([(hosts, "node"), (hosts, "no"), (racks, "node"), (hosts, "n")], 8)
        assert failed.value.found == "the database has no such table or column"
        assert look_up(source, "node").matched == 1


def test_a_missing_table_and_a_missing_database_are_settings(server):
    server.run("DROP TABLE IF EXISTS hosts")
    with opened(server.url) as source:
        assert source.missing_tables() == ["hosts"]
        with pytest.raises(SettingsError, match="the database has no table hosts") as failed:
            look_up(source, "node")
    assert failed.value.code == "SETTINGS_TABLE"
    url = sa.make_url(server.url).set(database="casebound_missing").render_as_string(hide_password=False)
    with opened(url) as source:
        if server.kind == "postgresql":  # its driver says no more than that there is no connection
            assert_unavailable(source, "no connection to the server")
            return
        with pytest.raises(SettingsError, match="no such database") as failed:
            look_up(source, "node")
    assert failed.value.code == "SETTINGS_DATABASE"


def test_a_url_without_a_database_is_refused():
    with pytest.raises(SettingsError, match="without a database"):
        SqlSource.open("mysql+pymysql://127.0.0.1/", snapshot_id="s", tables=["hosts"])
