"""Presets name tables and columns that world databases really have, and what `init` writes is complete."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import casebound_catalog_vcore
import pytest
import tomli
from casebound.specs import CORE_ROLES, CatalogOffer
from casebound_catalog_vcore.catalogs import CATALOGS
from casebound_catalog_vcore.enrichment import ENRICHMENTS
from casebound_catalog_vcore.settings_text import SETTINGS_TEXT

REPOSITORY = Path(__file__).parents[3]

# The columns, of many, that the SQL files of the two cores declare for 3.3.5, in their spelling.
CORES = {
    "trinitycore": """
        CREATE TABLE creature_template (entry, name, subname, IconName, minlevel, maxlevel, exp, faction);
        CREATE TABLE creature_template_locale (entry, locale, Name, Title, VerifiedBuild);
        CREATE TABLE quest_template (ID, QuestType, QuestLevel, MinLevel, QuestSortID, LogTitle, LogDescription,
            QuestDescription, AreaDescription, QuestCompletionLog, VerifiedBuild);
        CREATE TABLE quest_template_locale (ID, locale, Title, Details, Objectives, EndText, CompletedText);
        CREATE TABLE gameobject_template (entry, type, displayId, name, IconName, castBarCaption);
        CREATE TABLE gameobject_template_locale (entry, locale, name, castBarCaption, VerifiedBuild);
        CREATE TABLE item_template (entry, class, subclass, name, Quality, ItemLevel, RequiredLevel, description);
        CREATE TABLE item_template_locale (ID, locale, Name, Description, VerifiedBuild);
    """,
    "azerothcore": """
        CREATE TABLE creature_template (entry, name, subname, IconName, minlevel, maxlevel, exp, faction, npcflag);
        CREATE TABLE creature_template_locale (entry, locale, Name, Title, VerifiedBuild);
        CREATE TABLE quest_template (ID, QuestType, QuestLevel, MinLevel, QuestSortID, LogTitle, LogDescription,
            QuestDescription, AreaDescription, QuestCompletionLog, VerifiedBuild);
        CREATE TABLE quest_template_locale (ID, locale, Title, Details, Objectives, EndText, CompletedText);
        CREATE TABLE gameobject_template (entry, type, displayId, name, IconName, size, AIName, ScriptName);
        CREATE TABLE gameobject_template_locale (entry, locale, name, castBarCaption, VerifiedBuild);
        CREATE TABLE item_template (entry, class, subclass, name, Quality, ItemLevel, RequiredLevel, description);
        CREATE TABLE item_template_locale (ID, locale, Name, Description, VerifiedBuild);
    """,
}


def columns_of(core: str) -> dict[str, set[str]]:
    """The columns by table of a core's schema."""
    with sqlite3.connect(":memory:") as database:
        database.executescript(CORES[core])
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
        columns = {table: {row[1] for row in database.execute(f"PRAGMA table_info({table})")} for table in tables}
    database.close()
    return columns


@pytest.mark.parametrize("core", CORES)
def test_every_column_of_a_preset_is_in_the_schema(core: str) -> None:
    columns = columns_of(core)
    for offer in (*CATALOGS, *ENRICHMENTS):
        assert set(offer.columns) <= columns[offer.table], offer.name


def test_catalogs_return_identity_name_and_locale() -> None:
    assert sorted(catalog.name for catalog in CATALOGS) == sorted(
        f"vcore.{kind}{suffix}" for kind in ("creature", "quest", "gameobject", "item") for suffix in ("", "_locale")
    )
    for catalog in CATALOGS:
        needed = {catalog.id_column, catalog.name_column} | (
            {catalog.locale_column} if catalog.locale_column else set()
        )
        assert needed <= set(catalog.columns)
        assert (catalog.locale_column is not None) == catalog.name.endswith("_locale")
        assert catalog.preset
        assert catalog.name.removesuffix("_locale") == f"vcore.{catalog.entity_type}"


def test_enrichments_return_identity_name_and_descriptions() -> None:
    assert [rule.name for rule in ENRICHMENTS] == ["vcore.creature", "vcore.quest", "vcore.gameobject", "vcore.item"]
    for rule in ENRICHMENTS:
        assert rule.preset
        assert {rule.column, rule.name_column, *rule.description_columns} <= set(rule.columns)
    quest = next(rule for rule in ENRICHMENTS if rule.entity_type == "quest")
    assert "LogTitle" in quest.description_columns


def test_hook_offers_everything_and_the_entry_point_leads_to_it() -> None:
    [offer] = casebound_catalog_vcore.casebound_catalogs()
    assert isinstance(offer, CatalogOffer)
    assert offer.catalogs == CATALOGS
    assert offer.enrichments == ENRICHMENTS
    assert offer.roles == ("quest_giver", "quest", "item")
    assert not set(offer.roles) & set(CORE_ROLES)
    assert offer.settings_text == SETTINGS_TEXT
    [found] = entry_points(group="casebound", name="catalog-vcore")
    assert found.load() is casebound_catalog_vcore


def test_listing_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, casebound_catalog_vcore as plugin; plugin.casebound_catalogs(); plugin.casebound_demos();"
        "print(*sorted({'sqlalchemy', 'pydantic', 'sqlite3', 'json', 'tomli'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.spec("A-047")
def test_example_settings_are_what_init_writes() -> None:
    assert (REPOSITORY / "config" / "project.example.toml").read_bytes() == SETTINGS_TEXT.encode()


@pytest.mark.spec("A-047")
def test_example_settings_name_offered_presets_and_allow_exactly_their_tables() -> None:
    settings = tomli.loads(SETTINGS_TEXT)
    assert settings["entity_resolution"]["catalogs"] == ["vcore.creature", "vcore.creature_locale"]
    assert settings["enrichment"] == {"rules": ["vcore.creature", "vcore.quest"]}
    used = [c.table for c in CATALOGS if c.name in settings["entity_resolution"]["catalogs"]]
    used += [rule.table for rule in ENRICHMENTS if rule.name in settings["enrichment"]["rules"]]
    assert settings["database"]["tables"] == sorted(set(used))
    assert settings["llm"] == {"provider": "offline"}


@pytest.mark.spec("A-156")
def test_example_settings_bind_names_of_creatures_and_quests_and_of_nothing_else() -> None:
    rules = tomli.loads(SETTINGS_TEXT)["enrichment"]["rules"]
    bound = {(rule.entity_type, rule.table, rule.name_column) for rule in ENRICHMENTS if rule.name in rules}
    assert bound == {("creature", "creature_template", "name"), ("quest", "quest_template", "LogTitle")}


@pytest.mark.parametrize(
    ("active", "instead"),
    [
        ('url_env = "CASEBOUND_DB_URL"\n# url =', "url ="),
        ('[llm]\nprovider = "offline"\n', ""),
    ],
    ids=["sqlite", "openai"],
)
def test_commented_alternatives_are_valid_once_uncommented(active: str, instead: str) -> None:
    text = SETTINGS_TEXT.replace(active, instead)
    assert text != SETTINGS_TEXT
    if instead == "":
        head, marker, block = text.partition("# [llm]\n")
        text = head + "\n".join(line.removeprefix("# ") for line in (marker + block).splitlines())
        assert tomli.loads(text)["llm"]["provider"] == "openai"
    else:
        assert tomli.loads(text)["database"]["url"] == "sqlite:///world.db"
