"""Parts: what the report and the project's database say, as a model may read it."""

from __future__ import annotations

from casebound.contracts.stage_facts import StageFacts

Item = dict[str, object]


def readable_sources_v1(facts: StageFacts) -> list[Item]:
    """Return the `S` sources but markup, then the `P` sources: id, kind, text; a `P` also names its `E`."""
    case = facts.case
    texts: list[Item] = [
        {"id": source.id, "kind": source.kind, "text": case.text_of(source)}
        for source in case.sources
        if source.kind != "markup"
    ]
    texts += [
        {"id": source.id, "kind": source.kind, "text": source.text, "entity": source.entity}
        for source in facts.facts.sources
    ]
    return texts


def sourced_texts_v1(facts: StageFacts) -> list[Item]:
    """Return `readable_sources_v1` with the provenance of expectations and the pointer of each source.

    `/sources/n` points into `case.json`, `/research/sources/n` into `research/facts.json`.
    """
    texts: list[Item] = []
    for number, source in enumerate(facts.case.sources):
        if source.kind == "markup":
            continue
        item: Item = {
            "id": source.id,
            "kind": source.kind,
            "text": facts.case.text_of(source),
            "pointer": f"/sources/{number}",
        }
        if source.provenance:
            item["provenance"] = source.provenance
        if source.reference:
            item["reference"] = source.reference
        texts.append(item)
    texts += [
        {
            "id": source.id,
            "kind": source.kind,
            "text": source.text,
            "entity": source.entity,
            "pointer": f"/research/sources/{number}",
        }
        for number, source in enumerate(facts.facts.sources)
    ]
    return texts


def cited_entities_v1(facts: StageFacts) -> list[Item]:
    """Return the typed ids that the report cites, each with the sources that cite it."""
    return [
        {
            "id": entity.id,
            "type": entity.type,
            "canonical_id": entity.canonical_id,
            "source_ids": sorted({mention.source for mention in entity.mentions}),
        }
        for entity in facts.case.entities
    ]


def known_names_v1(facts: StageFacts) -> list[Item]:
    """Return the typed names that the database already gave for cited ids."""
    return [
        {"entity": fact.entity, "type": fact.type, "id": fact.entity_id, "name": fact.value, "fact": fact.id}
        for fact in facts.facts.facts
        if fact.kind == "project_entity_name"
    ]


def catalog_list_v1(facts: StageFacts) -> list[Item]:
    """Return the catalogs that may be searched: name, entity type, and whether their rows carry a locale."""
    if facts.resolution is None:
        return []
    return [
        {
            "name": catalog.name,
            "entity_type": catalog.entity_type,
            "locale": catalog.locale_column is not None,
        }
        for catalog in facts.resolution.catalogs
    ]
