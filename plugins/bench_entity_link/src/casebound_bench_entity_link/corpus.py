"""The corpus of entity links: pairs of entities, each with what was written about it.

The binding rules: the two sides are two entities; each side's mentions are its own, from the case that its entity is
from, and have ids that stand once in the pair; at least one of them holds the entity's name, in any case of letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from casebound.contracts.base import CamelContract
from casebound.contracts.benchmark import CaseInput, Corpus, CorpusCase, Text
from pydantic import Field, StringConstraints

Assessment = Literal["same_object", "different_objects", "insufficient_evidence"]
Split = Literal["development", "validation"]
# The case, then the alias of the thing in it.
Bound = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}/[A-Z][0-9]{4}$")]


class SelectedMention(CamelContract):
    """A passage that was selected as evidence.

    Attributes:
        mention_id: case and alias of the source.
        text: the passage, word for word.
        source: the alias with the kind of the source, and who speaks where that matters.
    """

    mention_id: Bound
    text: Text
    source: Text


class Side(CamelContract):
    """One entity as its own case shows it.

    Attributes:
        entity_id: case and alias of the entity.
        type, name, description: as the case holds them.
        mentions: the selected evidence.
        limitations: what the sources of this side do not tell.
    """

    entity_id: Bound
    type: Text
    name: Text
    description: Text
    mentions: tuple[SelectedMention, ...] = Field(min_length=1)
    limitations: tuple[Text, ...] = Field(min_length=1)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the bindings of this side that do not hold, with their pointers inside it."""
        case = self.entity_id.partition("/")[0]
        for index, mention in enumerate(self.mentions):
            if mention.mention_id.partition("/")[0] != case:
                found = f"the mention {mention.mention_id!r}, but the entity is of the case {case!r}"
                yield f"/mentions/{index}/mentionId", found
        if not any(self.name.casefold() in mention.text.casefold() for mention in self.mentions):
            yield "/name", f"no selected mention of this side holds the name {self.name!r}"


class Pair(CaseInput):
    """What the model is given: two entities, and what was written about each."""

    left: Side
    right: Side

    def selected(self) -> tuple[str, ...]:
        """Return the text of every selected mention."""
        return tuple(mention.text for side in (self.left, self.right) for mention in side.mentions)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each binding that does not hold."""
        if self.left.entity_id == self.right.entity_id:
            yield "/right/entityId", f"the entity {self.right.entity_id!r} stands on both sides"
        seen: set[str] = set()
        for name, side in (("left", self.left), ("right", self.right)):
            for index, mention in enumerate(side.mentions):
                if mention.mention_id in seen:
                    yield f"/{name}/mentions/{index}/mentionId", f"the mention {mention.mention_id!r} stands twice"
                seen.add(mention.mention_id)
            yield from ((f"/{name}{pointer}", found) for pointer, found in side.problems())


class LinkCase(CorpusCase):
    """A pair with its reference."""

    split: Split
    input: Pair
    expected_assessment: Assessment


class LinkCorpus(Corpus):
    """`entity-link-review-v1.json`."""

    SPLITS = ("development", "validation")
    ASSESSMENTS = ("same_object", "different_objects", "insufficient_evidence")

    format: Literal["casebound-entity-link-quality/v1"]
    guide: Literal["casebound-entity-link-annotation/v1"]
    cases: tuple[LinkCase, ...] = Field(min_length=1)
