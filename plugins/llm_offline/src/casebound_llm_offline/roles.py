"""Roles: what part a named thing plays in the report, as far as its place in the text tells."""

from __future__ import annotations

from typing import Any


def role_for(message: dict[str, Any], term: str, entity_type: str, leading: bool) -> str:
    """Return one of the roles that the message offers.

    The title's and the first name are the affected subject; else a role called like the entity type; else `participant`.
    """
    offered: list[str] = message["roles"]
    wanted = ["affected_subject"] if leading else [entity_type.rpartition(".")[2]]
    return next((role for role in (*wanted, "participant", "context") if role in offered), offered[0])
