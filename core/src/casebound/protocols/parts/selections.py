"""Parts: the entities that searches selected: one a selection, or one an identity.

An identity is a type and an id within one state of one database. Names play no part in it, however similar they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from casebound.contracts.aliases import alias
from casebound.contracts.assessment import ROLE_BASIS
from casebound.contracts.capture import Binding
from casebound.contracts.case import CitedEntity
from casebound.contracts.plan import Candidate
from casebound.contracts.stage_facts import StageFacts

Item = dict[str, object]


@dataclass(frozen=True, slots=True)
class Selection:
    """What one search selected.

    Attributes:
        scope: the state of the database in which the search found it.
        mentions: the sources in which the searched name stands and which the plan cites.
        associations: one for each captured row of the identity: name, locale, role, reason, mentions, row.
    """

    search_index: int
    scope: Binding
    type: str
    id: str
    mentions: tuple[str, ...]
    associations: tuple[Item, ...]


def selections_v1(facts: StageFacts, lookup_facts: Sequence[Item]) -> list[Selection]:
    """Return what was selected, in the order of the searches; `lookup_facts` are those of `lookup_facts_v1`."""
    if facts.assessment is None or facts.candidates is None or facts.plan is None:
        return []
    fact_of_row = {str(fact["pointer"]): str(fact["id"]) for fact in lookup_facts}
    found = []
    for index, resolution in enumerate(facts.assessment.resolutions):
        entity = resolution["entity"]
        if isinstance(entity, dict):
            rows = [
                row
                for row in facts.candidates.searches[index].candidates
                if (row.type, row.id) == (entity["type"], entity["id"])
            ]
            found.append(
                Selection(
                    search_index=index,
                    scope=facts.captures[index].binding,
                    type=entity["type"],
                    id=entity["id"],
                    mentions=tuple(mention.source for mention in facts.plan.groundings[index].mentions),
                    associations=tuple(_association(facts, index, row, fact_of_row) for row in rows),
                )
            )
    return found


def _association(facts: StageFacts, index: int, row: Candidate, fact_of_row: dict[str, str]) -> Item:
    assert facts.assessment is not None  # noqa: S101  # `selections_v1` returns before, where there is none
    assert facts.candidates is not None  # noqa: S101  # likewise
    resolution, listed = facts.assessment.resolutions[index], facts.candidates.searches[index]
    pointer = f"/entity_resolution/captures/{index}{row.row}"
    association: Item = {
        "search_index": index,
        "name": row.name,
        "role": resolution["role"],
        "role_basis": ROLE_BASIS,
        "reason": resolution["reason"],
        "mentions": sorted({mention.source for mention in facts.assessment.groundings[index].mentions}),
        "capture": listed.alias,
        "capture_digest": listed.capture,
        "fact": fact_of_row[pointer],
        "row": pointer,
        "assessment": f"/entity_resolution/assessment/reply/resolutions/{index}",
    }
    if row.locale is not None:
        association["locale"] = row.locale
    return association


def grouped_by_identity_v1(selections: Iterable[Selection]) -> dict[tuple[Binding, str, str], list[Selection]]:
    """Return the selections of each identity, in the order in which identities were first selected."""
    groups: dict[tuple[Binding, str, str], list[Selection]] = {}
    for selection in selections:
        groups.setdefault((selection.scope, selection.type, selection.id), []).append(selection)
    return groups


def one_a_selection_v1(facts: StageFacts, selections: Sequence[Selection]) -> list[Item]:
    """Return the cited entities, then one `N` for each selection of an id that the report does not cite."""
    return _entities(facts, [[selection] for selection in selections])


def one_an_identity_v1(facts: StageFacts, selections: Sequence[Selection]) -> list[Item]:
    """Return the cited entities, then one `N` for each selected identity that the report does not cite."""
    return _entities(facts, grouped_by_identity_v1(selections).values())


def _entities(facts: StageFacts, groups: Iterable[Sequence[Selection]]) -> list[Item]:
    of_cited: dict[tuple[str, str], list[Selection]] = {
        (entity.type, entity.canonical_id): [] for entity in facts.case.entities
    }
    resolved: list[Item] = []
    for group in groups:
        key = group[0].type, group[0].id
        if key in of_cited:
            of_cited[key] += group
        else:
            resolved.append(_resolved(len(resolved) + 1, group))
    cited = [
        _cited(place, entity, of_cited[entity.type, entity.canonical_id])
        for place, entity in enumerate(facts.case.entities)
    ]
    return [*cited, *resolved]


def _cited(place: int, entity: CitedEntity, group: Sequence[Selection]) -> Item:
    """Return an entity that the report cites: alias and provenance stay its own, whatever selected it as well."""
    return {
        "id": entity.id,
        "type": entity.type,
        "canonical_id": entity.canonical_id,
        "origin": "cited",
        "pointer": f"/entities/{place}",
        **_selected(group, {mention.source for mention in entity.mentions}),
    }


def _resolved(number: int, group: Sequence[Selection]) -> Item:
    first = group[0]
    return {
        "id": alias("N", number),
        "type": first.type,
        "canonical_id": first.id,
        "origin": "resolved",
        "pointer": f"/entity_resolution/assessment/reply/resolutions/{first.search_index}/entity",
        **_selected(group, set()),
    }


def _selected(group: Sequence[Selection], mentions: set[str]) -> Item:
    found = mentions.union(*(selection.mentions for selection in group))
    associations = [association for selection in group for association in selection.associations]
    return {"selected": bool(group), "mentions": sorted(found), "lookup_associations": associations}
