"""Typed ids that the report itself cites: `E0001` … with every place where they stand.

Rules:
- A pattern sees one readable source at a time, exactly its characters, so a reference never reaches from one source
  into another, and nothing is ever taken from `markup`.
- Where references overlap the one that starts first counts, then the longer one, then the pattern that comes first
  in `build.json` (by name). A place therefore cites one entity.
- An id of ASCII digits has at most 20 of them after its leading zeros, which are no part of it (`007` is `7`). Any
  other id is at most 100 visible characters without blanks, taken as it is written: no folding, for ids never merge
  by likeness. What matches a pattern and is no such id (other digits, too long, empty) cites nothing.
- Entities are numbered by first mention; a mention covers the whole reference, not only the id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from casebound.contracts.aliases import alias
from casebound.contracts.case import Build, CitedEntity, Fields, Mention, Source
from casebound.intake.blocks import is_visible

MAX_DIGITS = 20
MAX_ID = 100


def derive_entities(fields: Fields, sources: Sequence[Source], build: Build) -> tuple[CitedEntity, ...]:
    """Return the cited entities of the readable `sources`, found with the patterns that `build` froze."""
    patterns = [
        (re.compile(pattern.pattern, re.IGNORECASE if pattern.ignore_case else 0), pattern.entity_type)
        for pattern in build.patterns
    ]
    mentions: dict[tuple[str, str], list[Mention]] = {}
    for source in sources if patterns else ():
        if source.kind != "markup":
            text = fields.text(source.field)[source.start : source.end]
            for start, end, entity in _references(text, patterns):
                place = Mention(
                    source=source.id, field=source.field, start=source.start + start, end=source.start + end
                )
                mentions.setdefault(entity, []).append(place)
    return tuple(
        CitedEntity(id=alias("E", number), type=entity_type, canonical_id=canonical_id, mentions=tuple(places))
        for number, ((entity_type, canonical_id), places) in enumerate(mentions.items(), 1)
    )


def canonical_id(text: str) -> str | None:
    """Return the id that `text` writes, None where it writes none; see the rules above."""
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0") or "0"
        return digits if len(digits) <= MAX_DIGITS else None
    if not 0 < len(text) <= MAX_ID or text.isdecimal():
        return None
    visible = all(is_visible(text, place, place + 1) for place in range(len(text)))
    return text if visible else None


def _references(
    text: str, patterns: Sequence[tuple[re.Pattern[str], str]]
) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield (start, end, (type, id)) of the references that count, in order."""
    found = []
    for rank, (pattern, entity_type) in enumerate(patterns):
        for match in pattern.finditer(text):
            identity = canonical_id(match["id"] or "")
            if identity is not None and match.end() > match.start():
                found.append((match.start(), -match.end(), rank, (entity_type, identity)))
    at = 0
    for start, negative_end, _, entity in sorted(found):
        if start >= at:
            at = -negative_end
            yield start, at, entity
