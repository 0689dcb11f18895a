"""The embedded sample is the same wherever it is filled in, and tells the story that it should."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import casebound_catalog_vcore
import pytest
import tomli
from casebound.errors import SettingsError
from casebound_catalog_vcore.catalogs import CATALOGS
from casebound_catalog_vcore.demo import fill
from casebound_catalog_vcore.enrichment import ENRICHMENTS
from casebound_catalog_vcore.references import REFERENCES


def contents(path: Path) -> list[str]:
    """The database as statements, tables and rows in a fixed order."""
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(statement).fetchall()


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    fill(tmp_path)
    return tmp_path


def test_filling_twice_gives_equal_files_and_equal_tables(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    listed = []
    for folder in folders:
        folder.mkdir()
        listed.append([path.relative_to(folder) for path in fill(folder)])
    one, two = folders
    assert listed[0] == listed[1] == [Path("report.md")]
    assert sorted(path.name for path in one.iterdir()) == ["casebound.toml", "report.md", "world.db"]
    for name in ("casebound.toml", "report.md"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert contents(one / "world.db") == contents(two / "world.db")


@pytest.mark.parametrize("name", ["casebound.toml", "report.md", "world.db"])
def test_a_file_that_is_there_is_kept_and_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(SettingsError) as caught:
        fill(tmp_path)
    assert (caught.value.code, caught.value.path) == ("WORKSPACE_WRITE", str(tmp_path / name))
    assert (tmp_path / name).read_bytes() == b"mine"


def test_demo_is_registered_under_its_name() -> None:
    [demo] = casebound_catalog_vcore.casebound_demos()
    assert (demo.name, demo.folder) == ("vcore", "casebound_catalog_vcore.demo:fill")


def test_settings_use_the_database_beside_them_and_offered_presets_only(sample: Path) -> None:
    settings = tomli.loads((sample / "casebound.toml").read_text("utf-8"))
    assert settings["database"]["url"] == "sqlite:///world.db"
    assert settings["llm"] == {"provider": "offline"}
    tables = {name for (name,) in rows(sample / "world.db", "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert set(settings["database"]["tables"]) == tables
    assert settings["entity_resolution"]["catalogs"] == ["vcore.creature", "vcore.creature_locale", "vcore.quest"]
    assert set(settings["enrichment"]["rules"]) <= {rule.name for rule in ENRICHMENTS}


def test_every_preset_finds_its_identity_and_name_in_the_sample(sample: Path) -> None:
    for catalog in CATALOGS:
        columns = {row[1] for row in rows(sample / "world.db", f"PRAGMA table_info({catalog.table})")}
        assert {catalog.id_column, catalog.name_column} <= columns
        assert rows(sample / "world.db", f"SELECT count(*) > 6 FROM {catalog.table}") == [(1,)]


def test_report_cites_one_quest_whose_row_names_the_creature(sample: Path) -> None:
    report = (sample / "report.md").read_text("utf-8")
    cited = {(p.entity_type, match["id"]) for p in REFERENCES for match in p.compiled().finditer(report)}
    assert cited == {("quest", "11431")}
    [(title, text)] = rows(sample / "world.db", "SELECT LogTitle, LogDescription FROM quest_template WHERE ID = 11431")
    assert "Wild Wolpertinger" in str(title)
    assert "Wild Wolpertinger" in str(text)


def test_broad_name_competes_with_the_specific_one(sample: Path) -> None:
    report = (sample / "report.md").read_text("utf-8")
    found = rows(sample / "world.db", "SELECT entry, name FROM creature_template WHERE name LIKE '%wolpertinger%'")
    assert found == [(22943, "Wolpertinger"), (23487, "Wild Wolpertinger")]
    assert re.search(r"(?<!Wild )(?<!Wilder )Wolpertinger\b", report)
    assert "Wild Wolpertinger" in report
    assert "Goldark Snipehunter" in report


def test_names_of_the_template_comment_exist_and_are_not_meant(sample: Path) -> None:
    report = (sample / "report.md").read_text("utf-8")
    [comment] = re.findall(r"<!--.*?-->", report, re.DOTALL)
    assert "Pink Elekks On Parade" in comment
    assert "Brewfest Reveler" in comment
    assert "Brewfest Reveler" not in report.replace(comment, "")
    assert "Pink Elekks On Parade" not in report.replace(comment, "")
    assert rows(sample / "world.db", "SELECT entry FROM creature_template WHERE name = 'Brewfest Reveler'") == [
        (24484,)
    ]
