"""Where names stand in a world database: one preset a table, as data.

Rules:
- Tables and columns are those of the 3.3.5 schemas of TrinityCore and AzerothCore, in the spelling of their SQL files
  (`Name` and `name` both occur).
- Every preset may list a column that one schema lacks; what the table really has is looked up once and frozen.
- Few columns: an identity, a name, and what tells two rows of one name apart.
"""

from __future__ import annotations

from casebound.specs import Catalog


def _names(entity_type: str, table: str, id_column: str, name_column: str, *further: str) -> Catalog:
    columns = (id_column, name_column, *further)
    return Catalog(f"vcore.{entity_type}", entity_type, table, id_column, name_column, columns, preset=True)


def _locale_names(entity_type: str, table: str, id_column: str, name_column: str, *further: str) -> Catalog:
    columns = (id_column, "locale", name_column, *further)
    return Catalog(
        f"vcore.{entity_type}_locale",
        entity_type,
        table,
        id_column,
        name_column,
        columns,
        locale_column="locale",
        preset=True,
    )


CATALOGS = (
    _names("creature", "creature_template", "entry", "name", "subname", "minlevel", "maxlevel"),
    _locale_names("creature", "creature_template_locale", "entry", "Name", "Title"),
    _names("quest", "quest_template", "ID", "LogTitle", "QuestLevel", "MinLevel"),
    _locale_names("quest", "quest_template_locale", "ID", "Title"),
    _names("gameobject", "gameobject_template", "entry", "name", "type"),
    _locale_names("gameobject", "gameobject_template_locale", "entry", "name"),
    _names("item", "item_template", "entry", "name", "Quality", "ItemLevel", "RequiredLevel"),
    _locale_names("item", "item_template_locale", "ID", "Name"),
)
"""The eight presets, inactive unless settings name them."""
