"""Parts: presentation that repeats texts where they matter and names every cell of a row.

A report that cites ten thousand ids in one paragraph must not be sent ten thousand times: once `MOST_REPEATED` code
points are repeated, the rest stands under `sources` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Item = dict[str, Any]
Items = Sequence[Mapping[str, Any]]
MOST_REPEATED = 200_000
_FIXED = ("id", "name", "locale")


def entities_with_texts_v1(entities: Items, sources: Items) -> list[Item]:
    """Return cited entities, each with the sources that cite it, text included, under `cited_in`."""
    texts = _repeated([entity["source_ids"] for entity in entities], sources)
    return [{**entity, "cited_in": found} for entity, found in zip(entities, texts, strict=True)]


def candidates_with_texts_v1(tables: Items, sources: Items) -> list[Item]:
    """Return each search with its rows as objects and, under `mention_texts`, the sources in which its term stands.

    A row is `row` (pointer into the capture), `type`, `id`, `name`, `locale` where the catalog has one, and `columns`,
    which holds the rest by name. The titles that a table has once are then left out.
    """
    texts = _repeated([table["mentions"] for table in tables], sources)
    return [
        {
            **{key: value for key, value in table.items() if key != "columns"},
            "mention_texts": found,
            "rows": [_row_object(table, number, row) for number, row in enumerate(table["rows"])],
        }
        for table, found in zip(tables, texts, strict=True)
    ]


def entities_with_mention_texts_v1(entities: Items, sources: Items) -> list[Item]:
    """Return cited and selected entities, each with the sources that mention it, text included, in `mention_texts`."""
    texts = _repeated([entity["mentions"] for entity in entities], sources)
    return [{**entity, "mention_texts": found} for entity, found in zip(entities, texts, strict=True)]


def _repeated(wanted: Sequence[Sequence[str]], sources: Items) -> list[list[Item]]:
    by_id = {source["id"]: source for source in sources}
    left = MOST_REPEATED
    found: list[list[Item]] = []
    for names in wanted:
        texts: list[Item] = []
        for source in (by_id[name] for name in names):
            left -= len(source["text"])
            if left >= 0:
                texts.append({"id": source["id"], "kind": source["kind"], "text": source["text"]})
        found.append(texts)
    return found


def _row_object(table: Mapping[str, Any], number: int, row: Sequence[str | None]) -> Item:
    titles = table["columns"]
    fixed = 3 if titles[2:3] == ["locale"] else 2
    return {
        "row": f"/entity_resolution/captures/{table['search_index']}/rows/{number}",
        "type": table["entity_type"],
        **dict(zip(_FIXED[:fixed], row[:fixed], strict=True)),
        "columns": dict(zip(titles[fixed:], row[fixed:], strict=True)),
    }
