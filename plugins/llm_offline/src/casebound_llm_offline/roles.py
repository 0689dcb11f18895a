"""Roles: what part a named thing plays in the report, as far as its place in the text tells."""

from __future__ import annotations

from casebound_llm_offline.kinds import Context, kind_of
from casebound_llm_offline.lexicon import GIVING_AFTER, GIVING_BEFORE


def role_for(offered: list[str], entity_type: str, leading: bool, giving: bool = False) -> str:
    """Return one of the offered roles.

    Args:
        offered: the roles of the message.
        entity_type: of the catalog or candidate; a role of the same name fits it.
        leading: whether this is the report's main subject.
        giving: whether it gives, sends or reports something; a role called so fits it, where it can act.
    """
    own = entity_type.rpartition(".")[2]
    wanted = ["affected_subject"] if leading else [own]
    if giving and not leading and kind_of(entity_type) == "agent":
        wanted = [role for role in offered if role.endswith(("giver", "sender", "source"))] + wanted
    return next((role for role in (*wanted, "participant", "context") if role in offered), offered[0])


def is_giver(around: Context) -> bool:
    """Tell whether the words around a name say that it gives, sends or tells something: it is not what fails."""
    return bool(set(around.before[:1]) & GIVING_BEFORE or set(around.after[:2]) & GIVING_AFTER)
