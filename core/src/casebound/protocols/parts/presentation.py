"""Parts: how a context is shown in a message: compactly, without pointers and digests that a model has no use for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FACT_COLUMNS = ("id", "kind", "type", "entity_id", "column", "value", "capture")
_PROVENANCE = ("pointer", "origin", "capture_digest", "row", "assessment", "id_pointer", "name_pointer")


def fact_table_v1(facts: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return facts as one table: `columns`, and a row a fact."""
    return {"columns": list(_FACT_COLUMNS), "rows": [[fact[column] for column in _FACT_COLUMNS] for fact in facts]}


def without_provenance_v1(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return `items` without their pointers and digests, lists of objects inside them likewise."""
    return [
        {
            key: without_provenance_v1(value)
            if isinstance(value, list) and value and isinstance(value[0], dict)
            else value
            for key, value in item.items()
            if key not in _PROVENANCE
        }
        for item in items
    ]
