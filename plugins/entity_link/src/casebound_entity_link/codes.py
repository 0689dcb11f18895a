"""The plugin's rows of the table of codes."""

from __future__ import annotations

from casebound.errors import Code, register_codes

ENTITY, UNKNOWN, DUPLICATE = "ENTITY_LINK_ENTITY", "ENTITY_LINK_MENTION_UNKNOWN", "ENTITY_LINK_MENTION_DUPLICATE"

SUBJECT, UNKNOWN_LINK = "ENTITY_LINK_SUBJECT", "ENTITY_LINK_UNKNOWN"
NO_SUGGESTION, EXHAUSTED = "ENTITY_LINK_NO_SUGGESTION", "ENTITY_LINK_INVALID_RESPONSES"
DAMAGED = "ENTITY_LINK_DAMAGED"

_ROWS = (
    (ENTITY, "ReplyError", "a side names another entity than that side shows", "name the entity of that side", 1),
    (
        UNKNOWN,
        "ReplyError",
        "a cited mention is no selected mention of its side",
        "cite mentions that the side lists",
        1,
    ),
    (DUPLICATE, "ReplyError", "a mention is cited twice on one side", "cite it once", 1),
    (
        EXHAUSTED,
        "ReplyError",
        "too many invalid replies about a link",
        "read them below attempts/; under other settings of [llm], `casebound link propose` asks anew",
        1,
    ),
    (
        SUBJECT,
        "SettingsError",
        "this cannot be a side of a link",
        "name an entity of a finished case, as `casebound link propose --help` says",
        2,
    ),
    (UNKNOWN_LINK, "SettingsError", "the workspace holds no such link", "see `casebound link list`", 2),
    (NO_SUGGESTION, "SettingsError", "there is no suggestion to decide about", "see `casebound link show LINK`", 1),
    (
        DAMAGED,
        "IntegrityError",
        "the link does not hold, and nothing is built on it",
        "`casebound link verify LINK` says all that is wrong; restore the files from a copy",
        1,
    ),
)


def register() -> None:
    """Add the rows. Raises `PluginError` (`PLUGIN_CLASH`) where another distribution gives a code another meaning."""
    register_codes(Code(*row) for row in _ROWS)
