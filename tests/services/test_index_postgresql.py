"""The index on a real PostgreSQL server: the same suites as in its own file, and what only a server can do."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from casebound.errors import CaseboundError
from casebound.testing.index_place import IndexPlace, cases, claim
from casebound.testing.index_races import IndexRaces
from casebound.testing.index_suite import IndexSuite
from casebound.testing.servers import Server
from casebound.workspace.reindex import reindex
from casebound.workspace.row import CaseRow

pytestmark = pytest.mark.services


@pytest.fixture
def url(postgresql: Server) -> Iterator[str]:
    yield postgresql.url
    postgresql.run("DROP TABLE IF EXISTS casebound_case, casebound_meta")


@pytest.fixture
def place(tmp_path: Path, url: str) -> IndexPlace:
    return IndexPlace.write(tmp_path, url)


class TestIndexServer(IndexSuite):
    @pytest.fixture
    def place(self, tmp_path: Path, url: str) -> IndexPlace:
        return IndexPlace.write(tmp_path, url)


@pytest.mark.faults
class TestIndexServerRaces(IndexRaces):
    @pytest.fixture
    def place(self, tmp_path: Path, url: str) -> IndexPlace:
        return IndexPlace.write(tmp_path, url)


def refused(place: IndexPlace) -> CaseboundError:
    with pytest.raises(CaseboundError) as caught, place.open(*cases(1)):
        pass
    return caught.value


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE casebound_meta SET value='99' WHERE key='version'", "INDEX_VERSION"),
        ("UPDATE casebound_meta SET value='/elsewhere' WHERE key='workspace'", "INDEX_FOREIGN"),
        ("DELETE FROM casebound_meta", "INDEX_BROKEN"),
        ("DROP TABLE casebound_case", "INDEX_BROKEN"),
        ("ALTER TABLE casebound_case DROP COLUMN stopped", "INDEX_BROKEN"),
    ],
)
def test_tables_that_cannot_be_used_are_told_and_reindex_mends_them(
    place: IndexPlace, postgresql: Server, statement: str, code: str
) -> None:
    with place.open(*cases(3)):
        pass
    postgresql.run("CREATE TABLE IF NOT EXISTS precious AS SELECT 1 AS one", statement)
    error = refused(place)
    assert (error.code, "casebound reindex" in error.hint) == (code, True)
    place.workspace.admit(place.workspace.package("INC-1"))
    index = reindex(place.workspace, place.settings, place.clock, ())
    assert [row.package_id for row in index.rows()] == ["INC-1"]
    index.close()
    postgresql.run("SELECT one FROM precious")  # what else is in the database stays


def test_a_statement_that_is_refused_for_another_reason_is_not_told_as_a_broken_index(
    place: IndexPlace, postgresql: Server
) -> None:
    with place.open(*cases(1)):
        pass
    postgresql.run("ALTER TABLE casebound_case ALTER COLUMN calls TYPE boolean USING false")
    with pytest.raises(CaseboundError) as caught, place.open(*cases(2)):
        pass
    error = caught.value
    assert (error.code, error.found) == ("INDEX_UNAVAILABLE", "the database refused the statement")
    assert "casebound reindex" not in error.hint


def test_who_works_while_the_tables_are_replaced_still_writes_what_he_did(
    place: IndexPlace, postgresql: Server
) -> None:
    with place.open(CaseRow("INC-1", state="admitted")) as index:
        assert claim(index, "somebody") == ["INC-1"]
        postgresql.run("UPDATE casebound_meta SET value='0' WHERE key='version'")
        place.workspace.admit(place.workspace.package("INC-1"))
        reindex(place.workspace, place.settings, place.clock, ()).close()
        index.release("somebody", CaseRow("INC-1", state="planned"))
        assert [row.state for row in index.rows()] == ["planned"]


def test_a_server_that_goes_away_and_comes_back_is_asked_again(place: IndexPlace, postgresql: Server) -> None:
    with place.open(*cases(2)) as index:
        assert claim(index, limit=1) == ["p-00000"]
        ours = f"datname = '{postgresql.name}' AND application_name = 'casebound'"
        postgresql.administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
        assert claim(index, limit=1) == ["p-00001"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda url: url.set(port=9), "no connection to the server"),
        (lambda url: url.set(database="no_such_database"), "or has no such database"),
        (lambda url: url.set(username="canary_user", password="canary"), "no connection to the server"),
    ],
)
def test_a_server_that_cannot_be_used_is_one_clear_error_without_the_url(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, change: Callable[[sa.URL], sa.URL], found: str
) -> None:
    monkeypatch.setenv("CASES_URL", change(sa.make_url(url)).render_as_string(hide_password=False))
    place = IndexPlace.write(tmp_path)
    table = place.settings.workspace.model_copy(update={"index_url_env": "CASES_URL"})
    place = IndexPlace(place.workspace, place.settings.model_copy(update={"workspace": table}))
    error = refused(place)
    assert (error.code, error.exit_status) == ("INDEX_UNAVAILABLE", 3)
    assert found in str(error)
    assert "canary" not in "".join(traceback.format_exception(error))


def test_an_account_that_may_make_no_table_is_told_so(tmp_path: Path, postgresql: Server) -> None:
    account = f"reader_{postgresql.name}"
    postgresql.administer(f"CREATE ROLE {account} LOGIN")
    try:
        url = sa.make_url(postgresql.url).set(username=account).render_as_string()
        error = refused(IndexPlace.write(tmp_path, url))
    finally:
        postgresql.administer(f"DROP ROLE {account}")
    assert error.code == "INDEX_UNAVAILABLE"
    assert error.found == "the account may not read this"
