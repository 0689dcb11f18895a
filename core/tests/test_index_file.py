"""The index as an SQLite file: how it appears, what is refused, and that every failure is one clear error."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from casebound.errors import CaseboundError, IntegrityError, SettingsError, UnavailableError
from casebound.settings import parse_settings
from casebound.store import Workspace
from casebound.testing.faults import run_in_child
from casebound.testing.index_place import IndexPlace, cases, claim
from casebound.testing.scripted import FixedClock
from casebound.workspace.index import Index
from casebound.workspace.place import is_used, own_file
from casebound.workspace.row import CaseRow
from casebound.workspace.schema import CASES
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex


@pytest.fixture
def place(tmp_path: Path) -> IndexPlace:
    return IndexPlace.write(tmp_path)


@pytest.fixture
def file(place: IndexPlace) -> Path:
    return own_file(place.workspace)


def refused(place: IndexPlace) -> CaseboundError:
    with pytest.raises(CaseboundError) as caught, place.open(*cases(1)):
        pass
    return caught.value


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_workspace_has_no_index_until_somebody_opens_one(place: IndexPlace, file: Path) -> None:
    assert not is_used(place.workspace, place.settings)
    assert not file.exists()
    with place.open():
        assert is_used(place.workspace, place.settings)


def test_the_file_has_a_write_ahead_log_and_leaves_nothing_beside_it(place: IndexPlace, file: Path) -> None:
    with place.open(*cases(3)) as index, index.database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 1
        assert file.with_name("index.sqlite-wal").exists()
    assert sorted(path.name for path in place.workspace.root.iterdir()) == ["cases", "index.sqlite", "tmp"]


def test_a_transaction_that_fails_leaves_nothing(place: IndexPlace) -> None:
    with place.open(*cases(1)) as index:
        with suppress(RuntimeError), index.database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM casebound_case")
            raise RuntimeError
        assert len(index.rows()) == 1


def test_a_workspace_may_move_with_its_index(place: IndexPlace, tmp_path: Path) -> None:
    with place.open(*cases(3)):
        pass
    moved = Workspace(place.workspace.root.rename(tmp_path / "moved"))
    with closing(Index.open(moved, place.settings, place.clock)) as index:
        assert len(index.rows()) == 3


@pytest.mark.parametrize(
    "break_it",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"no database at all" * 100),
        lambda file: file.write_bytes(file.read_bytes()[:5000]),
        lambda file: file.write_bytes(file.read_bytes()[:100] + b"\xff" * 12000),
        lambda file: change(file, "PRAGMA application_id=7"),
        lambda file: change(file, "DROP TABLE casebound_meta"),
        lambda file: change(file, "DROP TABLE casebound_case"),
        lambda file: change(file, "ALTER TABLE casebound_case DROP COLUMN stopped"),
        lambda file: change(file, "DELETE FROM casebound_meta"),
    ],
    ids=["empty", "text", "cut", "overwritten", "another mark", "no meta", "no cases", "a column", "no version"],
)
def test_a_file_that_is_no_index_is_told_with_what_mends_it(
    place: IndexPlace, file: Path, break_it: Callable[[Path], object]
) -> None:
    with place.open(*cases(20)):
        pass
    break_it(file)
    error = refused(place)
    assert isinstance(error, IntegrityError)
    assert error.code == "INDEX_BROKEN"
    assert "casebound reindex" in error.hint
    assert str(file) in str(error)


def test_an_index_of_another_release_is_told_with_both_versions(place: IndexPlace, file: Path) -> None:
    with place.open():
        pass
    change(file, "UPDATE casebound_meta SET value='99' WHERE key='version'")
    error = refused(place)
    assert (error.code, error.found, error.expected) == ("INDEX_VERSION", "version 99", "1")
    assert "casebound reindex" in error.hint


@pytest.mark.parametrize("target", ["elsewhere.sqlite", "nowhere/elsewhere.sqlite"])
def test_a_link_in_its_place_is_refused_and_not_followed(
    place: IndexPlace, file: Path, tmp_path: Path, target: str
) -> None:
    file.symlink_to(tmp_path / target)
    assert refused(place).code == "WORKSPACE_LINK"
    assert not (tmp_path / target).exists()


def test_a_file_that_goes_away_is_not_taken_for_an_empty_one(place: IndexPlace, file: Path) -> None:
    with place.open(*cases(1)) as index:
        index.database.close()  # the next call connects anew
        file.unlink()
        with pytest.raises(UnavailableError) as caught:
            index.rows()
    assert caught.value.code == "INDEX_UNAVAILABLE"
    assert not file.exists()


def test_a_database_that_others_lock_for_too_long_is_told(
    place: IndexPlace, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casebound.workspace.index_file.WAIT_S", 0)
    with place.open(*cases(1)) as index, closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError) as caught:
            claim(index)
        assert len(index.rows()) == 1  # reading goes on
        other.execute("ROLLBACK")
        assert len(claim(index)) == 1
    assert caught.value.found == "the database is locked by another program"


def as_nobody(work: Callable[[], object]) -> int:
    """Run in a process that no permission is waived for."""

    def run() -> object:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return run_in_child(run)


@pytest.fixture
def open_way(tmp_path: Path) -> None:
    """Let everybody through to the test's own folder."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        with suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | 0o055)


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.usefixtures("open_way")
def test_a_workspace_that_cannot_be_written_is_one_clear_error(place: IndexPlace, file: Path, exists: bool) -> None:
    if exists:
        with place.open(*cases(1)):
            pass
        file.chmod(0o444)
    place.workspace.root.chmod(0o555)

    def expect_a_clear_error() -> int:
        error = refused(place)
        assert error.code == "INDEX_UNAVAILABLE"
        assert error.exit_status == 3
        assert str(file) in str(error)
        assert "casebound reindex" in error.hint
        return 0

    assert as_nobody(expect_a_clear_error) == 0
    place.workspace.root.chmod(0o755)


def test_another_sqlite_file_may_be_named_and_is_bound_to_its_workspace(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    first, second = IndexPlace.write(tmp_path / "one", url), IndexPlace.write(tmp_path / "two", url)
    assert is_used(first.workspace, first.settings)
    with first.open(CaseRow("p")) as index:
        assert len(index.rows()) == 1
    assert not own_file(first.workspace).exists()
    error = refused(second)
    assert error.code == "INDEX_FOREIGN"
    assert str(first.workspace.root) in str(error)


def test_a_relative_file_starts_at_the_folder_of_the_settings(tmp_path: Path) -> None:
    place = IndexPlace.write(tmp_path, "sqlite:///elsewhere.db")
    with place.open():
        assert (tmp_path / "elsewhere.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://canary-user@h/d",
        "postgresql://canary-user@h",
        "sqlite://",
        "sqlite:///:memory:",
        "oracle+x://h/canary",
        "postgresql://canary-user@h:notaport/d",
    ],
)
def test_a_url_that_cannot_be_used_is_named_by_its_key_and_not_shown(tmp_path: Path, url: str) -> None:
    error = refused(IndexPlace.write(tmp_path, url))
    assert isinstance(error, SettingsError)
    assert (error.code, error.pointer) == ("SETTINGS_VALUE", "workspace.index_url")
    assert "canary" not in "".join(traceback.format_exception(error))


def test_the_url_may_stand_in_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"project": {"name": "x"}, "workspace": {"index_url_env": "CASES_URL"}}
    settings = parse_settings(table, tmp_path / "casebound.toml")
    workspace = Workspace(tmp_path / "w")
    workspace.prepare()
    with pytest.raises(SettingsError) as caught:
        Index.open(workspace, settings, FixedClock())
    assert (caught.value.code, caught.value.pointer) == ("SETTINGS_VARIABLE", "workspace.index_url_env")
    monkeypatch.setenv("CASES_URL", f"sqlite:///{tmp_path}/named.db")
    Index.open(workspace, settings, FixedClock()).close()
    assert (tmp_path / "named.db").is_file()


def test_whoever_only_asks_whether_there_is_an_index_loads_no_database_library() -> None:
    program = "import sys, casebound.project, casebound.workspace.place; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_run_with_an_index_in_a_file_loads_nothing_of_another_database(place: IndexPlace) -> None:
    program = f"""if True:
        import sys, casebound.runs
        from pathlib import Path
        from casebound.workspace.index_file import IndexFile
        index = IndexFile(Path({str(own_file(place.workspace))!r}), None)
        index.create()
        print([name for name in sys.modules if name.startswith("sqlalchemy.dialects.postgresql")])
    """
    place.workspace.prepare()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_both_databases_have_the_same_partial_indexes() -> None:
    import casebound.workspace.index_server  # noqa: F401  # which says it for PostgreSQL

    for dialect, free in ((sqlite.dialect(), "finished IS 0"), (postgresql.dialect(), "finished IS false")):
        made = " ".join(str(CreateIndex(index).compile(dialect=dialect)) for index in CASES.indexes)
        assert f"WHERE {free}" in made
        assert "WHERE lease_owner IS NOT NULL" in made
