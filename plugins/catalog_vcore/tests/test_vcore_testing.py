"""Loading CSV tables and writing reports, for tests with real names."""

from __future__ import annotations

import gzip
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from casebound_catalog_vcore.testing import find_test_data, load_csv_world, reports_as_files

MARIADB = os.environ.get("CASEBOUND_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/?charset=utf8mb4")

TABLES = {
    "creature_template": 'entry,name,minlevel,maxlevel\n1,Waypoint,63,63\n2,"Ram, ""Swift""",,\n',
    "creature_template_locale": "entry,locale,Name\n1,deDE,Wegpunkt\n1,ruRU,Точка\n2,zhCN,公羊😀\n",
    "creature_queststarter": "id,quest\n1,10\n1,11\n",
}
READ = (
    "SELECT entry, name, minlevel FROM creature_template ORDER BY entry",
    "SELECT entry, locale, Name FROM creature_template_locale ORDER BY entry, locale",
    "SELECT id, quest FROM creature_queststarter ORDER BY id, quest",
)
EXPECTED = [
    [(1, "Waypoint", 63), (2, 'Ram, "Swift"', None)],
    [(1, "deDE", "Wegpunkt"), (1, "ruRU", "Точка"), (2, "zhCN", "公羊😀")],
    [(1, 10), (1, 11)],
]


@pytest.fixture
def csv_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "csv"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "README.md").write_text("not a table")
    return folder


@pytest.fixture
def mariadb() -> Iterator[str]:
    """A database of its own on the server, dropped at the end."""
    name = f"casebound_{secrets.token_hex(6)}"
    server = sa.create_engine(MARIADB)
    try:
        with server.begin() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
    except sa.exc.OperationalError as exc:
        server.dispose()
        if os.environ.get("CASEBOUND_REQUIRE_SERVICES") == "1":
            raise
        pytest.skip(f"no MariaDB: {type(exc).__name__}")
    yield sa.make_url(MARIADB).set(database=name).render_as_string(hide_password=False)
    with server.begin() as connection:
        connection.execute(sa.text(f"DROP DATABASE {name}"))
    server.dispose()


def read_all(url: str) -> list[list[tuple[object, ...]]]:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = [[tuple(row) for row in connection.execute(sa.text(statement))] for statement in READ]
    engine.dispose()
    return found


def test_tables_of_a_folder_arrive_in_sqlite(csv_dir: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'world.db'}"
    counts = {"creature_queststarter": 2, "creature_template": 2, "creature_template_locale": 3}
    assert load_csv_world(csv_dir, url) == counts
    assert read_all(url) == EXPECTED


@pytest.mark.services
def test_tables_of_a_folder_arrive_in_mariadb(csv_dir: Path, mariadb: str) -> None:
    load_csv_world(csv_dir, mariadb)
    assert read_all(mariadb) == EXPECTED


def test_a_database_that_holds_a_table_is_left_alone(csv_dir: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'world.db'}"
    load_csv_world(csv_dir, url)
    with pytest.raises(FileExistsError, match="creature_queststarter, creature_template"):
        load_csv_world(csv_dir, url)
    assert read_all(url) == EXPECTED


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*\.csv\.gz"):
        load_csv_world(tmp_path, "sqlite://")


def test_reports_become_markdown_with_id_and_title(tmp_path: Path) -> None:
    lines = [
        {"id": "d1", "title": "Gone: a [ram] №1", "body": "Erste\r\nZeile\n\nzweite"},
        {"id": "d2", "title": "t", "body": ""},
    ]
    source = tmp_path / "reports.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", "utf-8")
    paths = reports_as_files(source, tmp_path / "reports")
    assert [path.name for path in paths] == ["d1.md", "d2.md"]
    expected = "---\nid: d1\ntitle: Gone: a [ram] №1\n---\n\nErste\r\nZeile\n\nzweite\n"
    assert paths[0].read_bytes() == expected.encode()
    with pytest.raises(FileExistsError):
        reports_as_files(source, tmp_path / "reports")


def test_test_data_is_what_the_variable_says_else_beside_the_checkout(tmp_path: Path) -> None:
    checkout, named = tmp_path / "checkout", tmp_path / "named"
    beside = tmp_path / "shared" / "data"
    assert find_test_data({}, checkout) is None
    for folder in (beside, named):
        (folder / "vcore").mkdir(parents=True)
    assert find_test_data({}, checkout) == beside
    assert find_test_data({"CASEBOUND_TEST_DATA": str(named)}, checkout) == named
    assert find_test_data({"CASEBOUND_TEST_DATA": str(tmp_path / "none")}, checkout) is None
