"""Rules for the replies of stage `entity_link`: what a suggestion may point at.

They close references, nothing more: a reply that passes them names the two entities that it was asked about and cites
only what it was shown. Whether it is right, and whether its rationale is supported, they cannot say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.contracts.findings import Finding
from casebound.specs import Validator

from casebound_entity_link.codes import DUPLICATE, ENTITY, UNKNOWN

Reply = Mapping[str, Any]
Context = Mapping[str, Any]

SIDES = ("left", "right")


def entity_1(reply: Reply, context: Context) -> list[Finding]:
    """Each side names exactly the entity that it was shown as; swapped sides are two errors."""
    return [
        Finding(
            code=ENTITY,
            path=f"/{side}/entityId",
            message=f"this is not the entity of the {side} side",
            allowed=(context[side]["entityId"],),
        )
        for side in SIDES
        if reply[side]["entityId"] != context[side]["entityId"]
    ]


def mention_unknown_1(reply: Reply, context: Context) -> list[Finding]:
    """Every cited mention is one of that very side's selected mentions."""
    found = []
    for side, place, cited in _citations(reply):
        selected = tuple(mention["mentionId"] for mention in context[side]["mentions"])
        if cited not in selected:
            message = f"this is no selected mention of the {side} side"
            path = f"/{side}/mentionIds/{place}"
            found.append(Finding(code=UNKNOWN, path=path, message=message, allowed=selected))
    return found


def mention_duplicate_1(reply: Reply, context: Context) -> list[Finding]:
    """No mention is cited twice on one side."""
    return [
        Finding(code=DUPLICATE, path=f"/{side}/mentionIds/{place}", message="this mention is cited before")
        for side, place, cited in _citations(reply)
        if cited in reply[side]["mentionIds"][:place]
    ]


def _citations(reply: Reply) -> Iterator[tuple[str, int, str]]:
    """Yield side, place and id of every citation."""
    for side in SIDES:
        yield from ((side, place, cited) for place, cited in enumerate(reply[side]["mentionIds"]))


RULES = (
    Validator("entity_link", ENTITY, 1, entity_1),
    Validator("entity_link", UNKNOWN, 1, mention_unknown_1),
    Validator("entity_link", DUPLICATE, 1, mention_duplicate_1),
)
