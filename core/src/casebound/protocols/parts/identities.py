"""Parts: what became of the searches: technical facts, selected entities, identities that stayed unresolved."""

from __future__ import annotations

from casebound.contracts.aliases import alias
from casebound.contracts.assessment import ROLE_BASIS
from casebound.contracts.stage_facts import StageFacts

Item = dict[str, object]


def project_facts_v1(facts: StageFacts) -> list[Item]:
    """Return the `F` facts of enrichment; `/research/facts/n` points into `research/facts.json`."""
    return [
        {
            "id": fact.id,
            "kind": fact.kind,
            "type": fact.type,
            "entity_id": fact.entity_id,
            "column": fact.column,
            "value": fact.value,
            "capture": None,
            "pointer": f"/research/facts/{number}",
        }
        for number, fact in enumerate(facts.facts.facts)
    ]


def lookup_facts_v1(facts: StageFacts) -> list[Item]:
    """Return one `F` fact of kind `entity_name_lookup` for each captured row of each search.

    They go on from the facts of enrichment. `/entity_resolution/captures/i` is the capture of search i.
    """
    if facts.candidates is None:
        return []
    number = len(facts.facts.facts)
    found: list[Item] = []
    for listed, capture in zip(facts.candidates.searches, facts.captures, strict=True):
        for candidate in listed.candidates:
            number += 1
            found.append(
                {
                    "id": alias("F", number),
                    "kind": "entity_name_lookup",
                    "type": candidate.type,
                    "entity_id": candidate.id,
                    "column": capture.catalog.name_column,
                    "value": candidate.name,
                    "capture": listed.alias,
                    "pointer": f"/entity_resolution/captures/{listed.search_index}{candidate.row}",
                }
            )
    return found


def selected_groups_v1(facts: StageFacts, lookup_facts: list[Item]) -> list[Item]:
    """Return cited and selected entities, grouped by exact (type, id) and by nothing else.

    Cited ids keep their `E`; a selected one that is not cited gets an `N`, in the order of first selection. Each
    selection keeps its name, locale, role, reason, the mentions that it cites, capture and row as an association of its
    own. `mentions` of the group are all sources in which the report or a project description names it.
    """
    entities: dict[tuple[str, str], Item] = {}
    for place, entity in enumerate(facts.case.entities):
        entities[entity.type, entity.canonical_id] = {
            "id": entity.id,
            "type": entity.type,
            "canonical_id": entity.canonical_id,
            "origin": "cited",
            "selected": False,
            "mentions": sorted({mention.source for mention in entity.mentions}),
            "lookup_associations": [],
            "pointer": f"/entities/{place}",
        }
    selected = 0
    for index, key, association in _selections(facts, lookup_facts):
        if key not in entities:
            selected += 1
            entities[key] = {
                "id": alias("N", selected),
                "type": key[0],
                "canonical_id": key[1],
                "origin": "resolved",
                "mentions": [],
                "lookup_associations": [],
                "pointer": f"/entity_resolution/assessment/reply/resolutions/{index}/entity",
            }
        group = entities[key]
        group["selected"] = True
        group["lookup_associations"] = [*_items(group, "lookup_associations"), association]
        mentions = {*map(str, _items(group, "mentions")), *_grounding(facts, index)}
        group["mentions"] = sorted(mentions)
    return list(entities.values())


def _grounding(facts: StageFacts, index: int) -> set[str]:
    """Return every source in which the term of search `index` stands and which its plan cites."""
    return {mention.source for mention in facts.plan.groundings[index].mentions} if facts.plan else set()


def _items(owner: Item, key: str) -> list[object]:
    value = owner[key]
    assert isinstance(value, list)  # noqa: S101  # built a few lines above
    return value


def _selections(facts: StageFacts, lookup_facts: list[Item]) -> list[tuple[int, tuple[str, str], Item]]:
    if facts.assessment is None or facts.candidates is None:
        return []
    found = []
    by_row = {str(fact["pointer"]): str(fact["id"]) for fact in lookup_facts}
    for index, resolution in enumerate(facts.assessment.resolutions):
        entity = resolution["entity"]
        if not isinstance(entity, dict):
            continue
        listed = facts.candidates.searches[index]
        grounding = facts.assessment.groundings[index]
        for candidate in listed.candidates:
            if (candidate.type, candidate.id) != (entity["type"], entity["id"]):
                continue
            row = f"/entity_resolution/captures/{index}{candidate.row}"
            association: Item = {
                "search_index": index,
                "name": candidate.name,
                "role": resolution["role"],
                "role_basis": ROLE_BASIS,
                "reason": resolution["reason"],
                "mentions": sorted({mention.source for mention in grounding.mentions}),
                "capture": listed.alias,
                "capture_digest": listed.capture,
                "fact": by_row[row],
                "row": row,
                "assessment": f"/entity_resolution/assessment/reply/resolutions/{index}",
            }
            if candidate.locale is not None:
                association["locale"] = candidate.locale
            found.append((index, (candidate.type, candidate.id), association))
    return found


def name_bindings_v1(facts: StageFacts, entity: Item) -> list[Item]:
    """Return the typed names that enrichment gave for exactly this type and id; conflicting ones all stay."""
    return [
        {
            "fact": fact.id,
            "name": fact.value,
            "capture_digest": fact.capture,
            "id_pointer": fact.id_pointer,
            "name_pointer": fact.pointer,
        }
        for fact in facts.facts.facts
        if fact.kind == "project_entity_name"
        and (fact.type, fact.entity_id) == (entity["type"], entity["canonical_id"])
    ]


def neutral_reason_v1(entity: Item) -> str:
    """Return the only reason that may be given for an entity without a name."""
    return f"Entity of type {entity['type']} with id {entity['canonical_id']}."


def open_questions_v1(facts: StageFacts) -> list[Item]:
    """Return the case's own open questions (`Q`), pointing into `case.json`."""
    return [
        {"id": unknown.id, "text": unknown.text, "pointer": f"/unknowns/{number}"}
        for number, unknown in enumerate(facts.case.unknowns)
    ]


def unresolved_v1(facts: StageFacts) -> list[Item]:
    """Return one `D` for each search that ended ambiguous or without a match, scoped to its catalog and snapshot."""
    if facts.assessment is None or facts.candidates is None or facts.plan is None or facts.resolution is None:
        return []
    found: list[Item] = []
    for index, resolution in enumerate(facts.assessment.resolutions):
        if resolution["status"] == "selected":
            continue
        search = facts.plan.searches[index]
        listed = facts.candidates.searches[index]
        found.append(
            {
                "id": alias("D", len(found) + 1),
                "status": resolution["status"],
                "term": search["term"],
                "catalog": search["catalog"],
                "snapshot": facts.resolution.binding.snapshot_id,
                "truncated": listed.truncated,
                "mentions": sorted({mention.source for mention in facts.plan.groundings[index].mentions}),
                "capture": listed.alias,
                "pointer": f"/entity_resolution/assessment/reply/resolutions/{index}",
            }
        )
    return found
