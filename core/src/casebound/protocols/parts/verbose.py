"""Parts: how a context is shown in a message in full, with what the reader would else have to look up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_mention_texts_v1(
    entities: Sequence[Mapping[str, Any]], sources: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return `entities`, each with the sources that mention it, once more: id, kind, text."""
    texts = {source["id"]: {key: source[key] for key in ("id", "kind", "text")} for source in sources}
    return [{**entity, "mention_texts": [texts[name] for name in entity["mentions"]]} for entity in entities]
