"""What to fetch for an id that a report cites itself, as data.

Rules:
- A name column makes a typed name binding; descriptions become readable sources; all else stays a technical fact.
- A quest's title is a description too: reports cite quests by number, and the title then says whom they are about.
- No preset joins a second table: a relation is not an identity.
"""

from __future__ import annotations

from casebound.specs import EnrichmentRule

_QUEST_TEXTS = ("LogTitle", "LogDescription", "QuestDescription", "AreaDescription", "QuestCompletionLog")

ENRICHMENTS = (
    EnrichmentRule(
        "vcore.creature",
        "creature",
        table="creature_template",
        column="entry",
        columns=("entry", "name", "subname", "minlevel", "maxlevel"),
        name_column="name",
        preset=True,
    ),
    EnrichmentRule(
        "vcore.quest",
        "quest",
        table="quest_template",
        column="ID",
        columns=("ID", *_QUEST_TEXTS, "QuestLevel", "MinLevel"),
        name_column="LogTitle",
        description_columns=_QUEST_TEXTS,
        preset=True,
    ),
    EnrichmentRule(
        "vcore.gameobject",
        "gameobject",
        table="gameobject_template",
        column="entry",
        columns=("entry", "name", "type"),
        name_column="name",
        preset=True,
    ),
    EnrichmentRule(
        "vcore.item",
        "item",
        table="item_template",
        column="entry",
        columns=("entry", "name", "Quality", "ItemLevel", "description"),
        name_column="name",
        description_columns=("description",),
        preset=True,
    ),
)
"""The four presets, inactive unless settings name them."""
