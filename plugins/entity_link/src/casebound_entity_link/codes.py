"""The plugin's rows of the table of codes."""

from __future__ import annotations

from casebound.errors import Code, register_codes

ENTITY, UNKNOWN, DUPLICATE = "ENTITY_LINK_ENTITY", "ENTITY_LINK_MENTION_UNKNOWN", "ENTITY_LINK_MENTION_DUPLICATE"

_ROWS = (
    (ENTITY, "a side of the suggestion names another entity than that side shows", "name the entity of that side"),
    (UNKNOWN, "a cited mention is none of the selected mentions of its side", "cite mentions that the side lists"),
    (DUPLICATE, "a mention is cited twice on one side", "cite it once"),
)


def register() -> None:
    """Add the rows. Raises `PluginError` (`PLUGIN_CLASH`) where another distribution gives a code another meaning."""
    register_codes(Code(name, "ReplyError", summary, hint, 1) for name, summary, hint in _ROWS)
