"""One side of a link: which entity of a finished case is meant, and what of it a model is shown.

Rules:
- Everything comes from accepted artifacts of the package; what a model wrote about the case (reasons, summaries) is not
  shown, since a guess is no evidence.
- A side is a pure function of the package and of its binding (`LinkedEntity`), so that `verify` can repeat it.
- What is unknown is said: which state of the database was read, who chose the row, what is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from casebound.contracts.case import Admission
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import IntegrityError, SettingsError
from casebound.progress import begun_revisions
from casebound.protocols.parts.identities import lookup_facts_v1, name_bindings_v1, selected_groups_v1
from casebound.result import derive_answered_by, load_stage_facts
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.package import Package

from casebound_entity_link.codes import SUBJECT
from casebound_entity_link.contracts import LinkedEntity

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One side as a person names it.

    Attributes:
        case: a case id or a package id.
        entity: its alias (`N0001`), or its typed id (`host:12`).
        mentions: aliases of the sources to show; empty: all that mention it.
    """

    case: str
    entity: str
    mentions: tuple[str, ...] = ()


def bind_side(package: Package, wanted: Wanted) -> LinkedEntity:
    """Return what `wanted` names in `package`, bound to the seal of its newest finished interpretation.

    Raises:
        SettingsError: `ENTITY_LINK_SUBJECT`: the case is not finished, has no such entity, or no such mention.
        IntegrityError: the package cannot be read.
    """
    revision = _finished(package)
    facts = _facts(package, revision)
    entities = _entities(facts)
    entity = next((each for each in entities if wanted.entity in (each["id"], typed_id(each))), None)
    if entity is None:
        known = [f"{each['id']} = {typed_id(each)}" for each in entities]
        raise _refused(package, f"the entity {wanted.entity!r}", known)
    selected = list(dict.fromkeys(wanted.mentions or entity["mentions"]))
    foreign = [each for each in selected if each not in entity["mentions"]]
    if foreign or not selected:
        raise _refused(package, f"the mention {foreign[0]!r}" if foreign else "no mention", entity["mentions"])
    return LinkedEntity(
        package_id=package.root.name,
        case_id=package.load(layout.ADMISSION, Admission).case_id,
        seal=revision.seal,
        seal_digest=package.digest(revision.seal),
        entity=entity["id"],
        type=entity["type"],
        canonical_id=entity["canonical_id"],
        mentions=tuple(each for each in entity["mentions"] if each in selected),
    )


def derive_side(package: Package, linked: LinkedEntity) -> dict[str, object]:
    """Return what a model may be shown of an entity: `left` or `right` of a link's facts.

    Raises:
        IntegrityError: the package does not hold what `linked` names (`STORE_MISSING`), or cannot be read.
    """
    revision = Revision(int(PurePosixPath(linked.seal).parent.name))
    facts = _facts(package, revision)
    entity = next((each for each in _entities(facts) if each["id"] == linked.entity), None)
    if entity is None:
        raise IntegrityError("STORE_MISSING", path=str(package.root), found=f"no entity {linked.entity}")
    names = _names(facts, entity)
    return {
        "entityId": f"{linked.package_id}/{linked.entity}",
        "type": linked.type,
        "name": names[0] if names else f"{linked.type} {linked.canonical_id}",
        "description": "\n".join(_description(facts, entity, names)),
        "mentions": [
            {"mentionId": f"{linked.package_id}/{alias}", "text": text, "source": f"{alias} {kind}"}
            for alias, kind, text in _texts(facts)
            if alias in linked.mentions
        ],
        "limitations": list(_limitations(package, revision, facts, entity, linked)),
    }


def typed_id(entity: Item) -> str:
    """Return the typed id of an entity as people write it: `host:12`."""
    return f"{entity['type']}:{entity['canonical_id']}"


# --- what a package holds -------------------------------------------------------------------------------------------


def _finished(package: Package) -> Revision:
    """Return the newest sealed interpretation."""
    sealed = [revision for revision in begun_revisions(package) if package.exists(revision.seal)]
    if not sealed:
        raise _refused(package, "a case whose interpretation is not finished", ())
    return sealed[-1]


def _facts(package: Package, revision: Revision) -> StageFacts:
    facts = load_stage_facts(package, revision)
    if facts is None:
        raise IntegrityError("STORE_MISSING", path=f"{package.root}/{layout.CASE}")
    return facts


def _entities(facts: StageFacts) -> Sequence[Item]:
    return selected_groups_v1(facts, lookup_facts_v1(facts))


def _texts(facts: StageFacts) -> Iterator[tuple[str, str, str]]:
    """Yield alias, kind and text of every source that can mention an entity."""
    yield from ((source.id, source.kind, facts.case.text_of(source)) for source in facts.case.sources)
    yield from ((source.id, source.kind, source.text) for source in facts.facts.sources)


def _names(facts: StageFacts, entity: Item) -> list[str]:
    found = [str(link["name"]) for link in entity["lookup_associations"]]
    found += [str(binding["name"]) for binding in name_bindings_v1(facts, dict(entity))]
    return list(dict.fromkeys(found))


def _refused(package: Package, found: str, allowed: Sequence[str]) -> SettingsError:
    return SettingsError(SUBJECT, path=str(package.root), found=found, allowed=allowed)


# --- in words -------------------------------------------------------------------------------------------------------


def _description(facts: StageFacts, entity: Item, names: Sequence[str]) -> Iterator[str]:
    links, identity = entity["lookup_associations"], f"{entity['type']} {entity['canonical_id']}"
    origin = "cited by the report itself" if entity["origin"] == "cited" else "selected for a name in the report"
    tables = dict.fromkeys(facts.captures[link["search_index"]].catalog.table for link in links)
    yield f"{identity}, {origin}" + (f"; a row of {' and '.join(tables)}." if tables else ".")
    if names:
        yield f"Names in the database: {'; '.join(names)}"
    roles = dict.fromkeys(str(link["role"]) for link in links)
    if roles:
        yield f"Role in its case, by context and no cause: {', '.join(roles)}"
    yield from (
        f"{source.id}, column {source.column}: {source.text}"
        for source in facts.facts.sources
        if source.entity == entity["id"]
    )


def _limitations(
    package: Package, revision: Revision, facts: StageFacts, entity: Item, linked: LinkedEntity
) -> Iterator[str]:
    read = f"the report of case {linked.case_id}"
    binding = facts.resolution.binding if facts.resolution else facts.facts.binding
    if binding is not None:
        read += f" and the state {binding.snapshot_id} of the database {binding.database}"
    yield f"Only {read} were read." if binding else f"Only {read} was read."
    if entity["lookup_associations"]:
        who = "Rules" if _resolver(package, revision) == "rules" else "A model"
        yield f"{who} selected the row by context; no person has confirmed it."
    if entity["origin"] == "cited":
        yield "The report cites the id; that it means this object is the report's word."
    yield from (
        f"The search for {capture.term!r} matched {capture.matched} rows of {capture.catalog.name}."
        for capture in dict.fromkeys(facts.captures[link["search_index"]] for link in entity["lookup_associations"])
        if capture.matched > 1
    )
    if len(linked.mentions) < len(entity["mentions"]):
        yield f"{len(linked.mentions)} of {len(entity['mentions'])} sources that mention it are shown."


def _resolver(package: Package, revision: Revision) -> str:
    answered = derive_answered_by(package, revision)
    return str(answered["assessment"]["resolver"]) if "assessment" in answered else "model"
