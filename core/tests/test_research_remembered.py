"""The same search of the same state of a file is answered from memory, exactly as the file would; nothing else is."""

import os
import sqlite3
from contextlib import closing

import pytest
from casebound.contracts.capture import Binding, Capture, CatalogInput, QueryLimits
from casebound.errors import SettingsError
from casebound.research.remembered import Remembered
from casebound.research.source import SqlSource
from casebound.specs import Catalog
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

HOSTS = Catalog("inv.host", "host", "hosts", "id", "name", ("id", "name"))
NAMES = Catalog("inv.name", "host", "hosts", "id", "name", ("name", "id"))


@pytest.fixture
def world(tmp_path):
    path = tmp_path / "world.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE hosts (id TEXT, name TEXT)")
        connection.executemany("INSERT INTO hosts VALUES (?, ?)", [("1", "node"), ("2", "bay"), ("3", "node two")])
    return path


@pytest.fixture
def source(world):
    with closing(SqlSource.open(f"sqlite:///{world}", snapshot_id="s-1", tables=["hosts"])) as source:
        yield source


@pytest.fixture
def asked(source):
    """The terms that the database is asked for, from now on."""
    source.freeze_catalog(HOSTS)
    terms: list[str] = []

    def note(_connection, _cursor, statement, values, *_):
        if statement.startswith("SELECT"):
            terms.append(values[0].strip("%"))

    event.listen(source._database.engine, "before_cursor_execute", note)
    return terms


def look_up(source, *terms, catalog=HOSTS, most=8):
    frozen = source.freeze_catalog(catalog)
    return source.look_up_all([(frozen, term) for term in terms], most)


def test_the_same_search_is_answered_from_memory_and_only_what_is_missing_is_asked(source, asked):
    first = look_up(source, "node", "bay")
    assert look_up(source, "bay", "node", "bay") == [first[1], first[0], first[1]]
    assert asked == ["node", "bay"]
    assert look_up(source, "node", "nobody")[0] == first[0]
    assert asked == ["node", "bay", "nobody"]
    assert look_up(source, "nobody")[0].rows == ()
    assert len(asked) == 3


def test_another_catalog_another_spelling_and_other_limits_are_other_searches(source, asked):
    one, two = look_up(source, "node"), look_up(source, "node", catalog=NAMES)
    assert (one[0].rows[0], two[0].rows[0]) == (("1", "node"), ("node", "1"))
    assert [capture.rows for capture in look_up(source, "node", most=1)] == [(("1", "node"),)]
    assert look_up(source, "Node")[0].term == "Node"
    assert len(asked) == 4


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_file_that_has_changed_is_asked_anew(world, source, asked, mode):
    with closing(sqlite3.connect(world)) as writer:
        writer.execute(f"PRAGMA journal_mode={mode}")
        assert [row[0] for row in look_up(source, "bay")[0].rows] == ["2"]
        with writer:
            writer.execute("INSERT INTO hosts VALUES ('4', 'bay four')")
        found = look_up(source, "bay", "node")
        assert [[row[0] for row in capture.rows] for capture in found] == [["2", "4"], ["1", "3"]]
        assert {capture.binding for capture in found} == {source.binding()}
    assert asked == ["bay", "bay", "node"]


def test_a_file_that_changes_before_it_is_asked_for_the_rest_is_asked_for_all(world, source, asked):
    look_up(source, "node")

    def write(*_):
        with closing(sqlite3.connect(world)) as writer, writer:
            writer.execute("INSERT INTO hosts VALUES ('4', 'node four')")

    event.listen(source._database.engine, "checkout", write, once=True)
    found = look_up(source, "node", "bay")
    assert [row[0] for row in found[0].rows] == ["1", "3", "4"]
    assert {capture.binding for capture in found} == {source.binding()}
    assert asked == ["node", "node", "bay"]


def test_a_log_that_goes_into_its_file_while_both_are_looked_at_is_not_overlooked(world, source, asked, monkeypatch):
    with closing(sqlite3.connect(world)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
    assert [row[0] for row in look_up(source, "bay")[0].rows] == ["2"]
    writer, stat = sqlite3.connect(world), os.stat
    with writer:
        writer.execute("INSERT INTO hosts VALUES ('4', 'bay four')")

    def close_after_the_first(path, *arguments, **options):
        try:
            return stat(path, *arguments, **options)
        finally:
            writer.close()  # as the last one: what was committed is in the file then, and the log is gone

    source._database.engine.dispose()
    monkeypatch.setattr(os, "stat", close_after_the_first)
    assert [row[0] for row in look_up(source, "bay")[0].rows] == ["2", "4"]


def test_a_file_that_is_gone_answers_nothing(world, source, asked):
    look_up(source, "node")
    world.unlink()
    with pytest.raises(SettingsError, match="SETTINGS_DATABASE"):
        look_up(source, "node")


# --- what is kept -----------------------------------------------------------------------------------------------------

CATALOG = CatalogInput(
    name="inv.host", entity_type="host", table="hosts", id_column="id", name_column="name", columns=("id", "name")
)


def binding(state: str | None) -> Binding:
    digest = None if state is None else f"sha256:{state * 64}"
    return Binding(dialect="sqlite", database="world.db", snapshot_id="s-1", file_digest=digest)


def capture(term: str, state: str | None, name: str = "node") -> Capture:
    return Capture(
        catalog=CATALOG,
        term=term,
        statement="SELECT",
        parameters=(term,),
        binding=binding(state),
        limits=QueryLimits(max_candidates=8, scan_rows=1, max_bytes=1, statement_timeout_s=1),
        columns=("id", "name"),
        rows=(("1", name),),
        matched=1,
        truncated=False,
        limit_met=None,
        scope="all",
        flags=(),
    )


STEPS = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 300))


@given(st.lists(STEPS), st.integers(0, 4000))
def test_what_is_kept_is_of_one_state_the_newest_and_within_its_bound(steps, most_bytes):
    remembered, model = Remembered(most_bytes), {}
    state = ""
    for at, term, length in steps:
        if at != state:
            state, model = at, {}
        made = capture(term, at, "n" * length)
        remembered.keep(binding(at), {(CATALOG, term): made}, 8)
        model.pop(term, None)
        model[term] = made
        while sum(len(one.to_bytes()) for one in model.values()) > most_bytes:
            model.pop(next(iter(model)))
        searches = [(CATALOG, each) for each in "xyz"]
        assert remembered.of(binding(at), searches, 8) == {(CATALOG, each): model[each] for each in model}
        assert remembered.of(binding(at), searches, 7) == {}
        assert remembered.of(binding("b" if at == "a" else "a"), searches, 8) == {}


def test_of_a_database_whose_state_has_no_digest_nothing_is_kept():
    remembered, search = Remembered(), (CATALOG, "x")
    remembered.keep(binding(None), {search: capture("x", None)}, 8)
    assert remembered.of(binding(None), [search], 8) == {}
