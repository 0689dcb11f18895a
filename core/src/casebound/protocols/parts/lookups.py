"""Parts: what the searches of a plan found."""

from __future__ import annotations

from collections.abc import Iterator

from casebound.contracts.capture import Capture, Cell
from casebound.contracts.stage_facts import StageFacts

Item = dict[str, object]


def cell_text_v1(cell: Cell) -> str | None:
    """Return a cell as text, None for null."""
    return cell if cell is None or isinstance(cell, str) else cell.v


def capture_tables_v1(facts: StageFacts) -> list[Item]:
    """Return one table a search: what was searched, where it is mentioned, whether it was cut off, and the rows.

    Columns are `id`, `name`, then `locale` where the catalog has one, then the catalog's other columns.
    """
    plan, candidates = facts.plan, facts.candidates
    if plan is None or candidates is None:
        return []
    tables: list[Item] = []
    for search, listed, grounding, capture in zip(
        plan.searches, candidates.searches, plan.groundings, facts.captures, strict=True
    ):
        order = _column_order(capture)
        tables.append(
            {
                "search_index": listed.search_index,
                "capture": listed.alias,
                "catalog": capture.catalog.name,
                "entity_type": capture.catalog.entity_type,
                "term": capture.term,
                "role": search["role"],
                "mentions": sorted({mention.source for mention in grounding.mentions}),
                "truncated": capture.truncated,
                "columns": [title for title, _ in order],
                "rows": [[cell_text_v1(row[place]) for _, place in order] for row in capture.rows],
            }
        )
    return tables


def _column_order(capture: Capture) -> list[tuple[str, int]]:
    catalog = capture.catalog
    places = {name: place for place, name in enumerate(capture.columns)}
    first = [("id", catalog.id_column), ("name", catalog.name_column)]
    if catalog.locale_column:
        first.append(("locale", catalog.locale_column))
    taken = {column for _, column in first}
    return [(title, places[column]) for title, column in first] + [
        (column, place) for column, place in places.items() if column not in taken
    ]


def _named_candidates(facts: StageFacts) -> Iterator[tuple[int, str, str, str]]:
    if facts.candidates is not None:
        for listed in facts.candidates.searches:
            for candidate in listed.candidates:
                yield listed.search_index, candidate.type, candidate.id, candidate.name


def overlaps_v1(facts: StageFacts, sources: list[Item]) -> list[Item]:
    """Return each candidate whose name stands literally in a source, with those sources: a hint, no assignment."""
    places: dict[str, list[str]] = {}
    found: list[Item] = []
    for index, kind, number, name in _named_candidates(facts):
        if name not in places:
            places[name] = [str(source["id"]) for source in sources if name and name in str(source["text"])]
        if places[name]:
            found.append({"search_index": index, "type": kind, "id": number, "name": name, "source_ids": places[name]})
    return found


def specifics_v1(facts: StageFacts, overlaps: list[Item]) -> list[Item]:
    """Return each candidate whose name is part of a longer name of another identity that stands in a source.

    A hint that the broader name may only be a piece of the more specific one; never an assignment.
    """
    longer = {(str(item["type"]), str(item["id"]), str(item["name"])) for item in overlaps}
    found: list[Item] = []
    for index, kind, number, name in _named_candidates(facts):
        for other_kind, other_number, other_name in sorted(longer):
            if name and name != other_name and name in other_name and (kind, number) != (other_kind, other_number):
                inside = {"type": other_kind, "id": other_number, "name": other_name}
                found.append({"search_index": index, "type": kind, "id": number, "name": name, "inside": inside})
    return found
