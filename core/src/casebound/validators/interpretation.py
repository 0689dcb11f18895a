"""Rules for the replies of stage `interpretation`.

People's observations, formal expectations, descriptions of the project's database and technical facts are different
kinds; no rule lets one stand for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casebound.contracts.findings import Finding
from casebound.contracts.interpretation import LISTED_STATEMENTS, SINGLE_STATEMENTS, statements_in
from casebound.specs import Validator

Reply = Mapping[str, Any]
Context = Mapping[str, Any]

# A feedback that repeats thousands of aliases helps nobody.
_MOST_LISTED = 100


def _of_kind(context: Context, kind: str) -> tuple[str, ...]:
    return tuple(source["id"] for source in context["sources"] if source["kind"] == kind)


def _reported(context: Context) -> tuple[str, ...]:
    """Return the sources in which people say what they saw."""
    other = ("project_description", "expectation")
    return tuple(source["id"] for source in context["sources"] if source["kind"] not in other)


def _wrong_sources(
    code: str, path: str, statement: Mapping[str, Any], allowed: tuple[str, ...], what: str
) -> list[Finding]:
    wrong = [name for name in statement["source_ids"] if name not in allowed]
    if not wrong:
        return []
    message = f"{', '.join(wrong)} can not support this: {what}"
    return [Finding(code=code, path=f"{path}/source_ids", message=message, allowed=allowed)]


def unknown_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Every cited alias exists in the context."""
    known = dict.fromkeys(item["id"] for key in ("sources", "entities", "facts", "unknowns") for item in context[key])
    known.update(dict.fromkeys(context["captures"]))
    allowed = tuple(known) if len(known) <= _MOST_LISTED else ()
    return [
        Finding(
            code="INTERPRETATION_UNKNOWN_SOURCE",
            path=f"{path}/source_ids/{place}",
            message=f"{name} is no alias of this case",
            allowed=allowed,
        )
        for path, statement in statements_in(reply, *SINGLE_STATEMENTS, *LISTED_STATEMENTS)
        for place, name in enumerate(statement["source_ids"])
        if name not in known
    ]


def observation_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Observed behaviour rests on what people report, never on technical facts or descriptions."""
    allowed = _reported(context)
    return [
        finding
        for path, statement in statements_in(reply, "observed_behavior")
        for finding in _wrong_sources(
            "INTERPRETATION_OBSERVATION_SOURCE", path, statement, allowed, "observed behaviour rests on report sources"
        )
    ]


def expectation_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Expected behaviour, gap and divergence need formal expectation sources."""
    code = "INTERPRETATION_EXPECTATION_SOURCE"
    formal = _of_kind(context, "expectation")
    observed = _reported(context)
    found = [
        finding
        for path, statement in statements_in(reply, "expected_behavior")
        for finding in _wrong_sources(code, path, statement, formal, "it needs sources of kind expectation")
    ]
    for path, statement in statements_in(reply, "behavior_gap", "first_known_divergence"):
        found += _wrong_sources(code, path, statement, formal + observed, "it compares observations with expectations")
        if not set(statement["source_ids"]) & set(formal):
            message = "no source of kind expectation is cited"
            found.append(Finding(code=code, path=f"{path}/source_ids", message=message, allowed=formal))
    return found


def description_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Described behaviour rests on project descriptions only."""
    allowed = _of_kind(context, "project_description")
    return [
        finding
        for path, statement in statements_in(reply, "described_behavior")
        for finding in _wrong_sources(
            "INTERPRETATION_DESCRIPTION_SOURCE", path, statement, allowed, "it restates project descriptions"
        )
    ]


def provisional_gap_1(reply: Reply, context: Context) -> list[Finding]:
    """A provisional gap has two sides: an observation, and a description that `described_behavior` includes."""
    code = "INTERPRETATION_PROVISIONAL_GAP"
    included = {name for _, statement in statements_in(reply, "described_behavior") for name in statement["source_ids"]}
    described = tuple(name for name in _of_kind(context, "project_description") if name in included)
    observed = _reported(context)
    found = []
    for path, statement in statements_in(reply, "provisional_behavior_gap"):
        found += _wrong_sources(
            code, path, statement, observed + described, "it compares an observation with a description"
        )
        for side, allowed in (("observation", observed), ("description of described_behavior", described)):
            if not set(statement["source_ids"]) & set(allowed):
                message = f"no {side} is cited"
                found.append(Finding(code=code, path=f"{path}/source_ids", message=message, allowed=allowed))
    return found


def unknown_entity_1(reply: Reply, context: Context) -> list[Finding]:
    """Every relevant entity is one of the context, and stands there once."""
    names = tuple(entity["id"] for entity in context["entities"])
    found = []
    seen = set()
    for path, entity in statements_in(reply, "relevant_entities"):
        name = entity["entity_id"]
        if name not in names or name in seen:
            message = "this entity stands twice" if name in seen else "this is no entity of the case"
            found.append(
                Finding(code="INTERPRETATION_UNKNOWN_ENTITY", path=f"{path}/entity_id", message=message, allowed=names)
            )
        seen.add(name)
    return found


def _evidence(entity: Mapping[str, Any], context: Context) -> tuple[str, ...]:
    """Return what may show the identity of a selected entity: its alias, and the look-up facts of its captures."""
    captures = {association["capture"] for association in entity["lookup_associations"]}
    return (
        entity["id"],
        *(
            fact["id"]
            for fact in context["facts"]
            if fact["kind"] == "entity_name_lookup"
            and fact["capture"] in captures
            and (fact["type"], fact["entity_id"]) == (entity["type"], entity["canonical_id"])
        ),
    )


def entity_missing_1(reply: Reply, context: Context) -> list[Finding]:
    """Every selected entity is retained."""
    given = {entity["entity_id"] for entity in reply["relevant_entities"]}
    return [
        Finding(
            code="INTERPRETATION_ENTITY_MISSING",
            path="/relevant_entities",
            message=f"the selected entity {entity['id']} is missing",
            allowed=(entity["id"],),
            details={
                "entity_id": entity["id"],
                "mentions": entity["mentions"],
                "evidence": list(_evidence(entity, context)),
            },
        )
        for entity in context["entities"]
        if entity["selected"] and entity["id"] not in given
    ]


def entity_provenance_1(reply: Reply, context: Context) -> list[Finding]:
    """A selected entity cites a mention, and its own alias or a look-up fact of one of its captures."""
    selected = {entity["id"]: entity for entity in context["entities"] if entity["selected"]}
    found = []
    for path, given in statements_in(reply, "relevant_entities"):
        entity = selected.get(given["entity_id"])
        if entity is None:
            continue
        for what, allowed in (("mention", tuple(entity["mentions"])), ("evidence", _evidence(entity, context))):
            if not set(given["source_ids"]) & set(allowed):
                found.append(
                    Finding(
                        code="INTERPRETATION_ENTITY_PROVENANCE",
                        path=f"{path}/source_ids",
                        message=f"no {what} of {entity['id']} is cited",
                        allowed=allowed,
                        details={"entity_id": entity["id"], "missing": what},
                    )
                )
    return found


def entity_not_retained_1(reply: Reply, context: Context) -> list[Finding]:
    """Every selected entity is retained, with its own alias and a mention; no look-up fact stands for the alias."""
    given = {entity["entity_id"]: (path, entity) for path, entity in statements_in(reply, "relevant_entities")}
    found = []
    for entity in context["entities"]:
        if not entity["selected"]:
            continue
        name, mentions = entity["id"], tuple(entity["mentions"])
        path, kept = given.get(name, ("", None))
        cited = set(kept["source_ids"]) if kept else set()
        if name in cited and cited & set(mentions):
            continue
        lack = "does not cite both its own id and one of its mentions" if kept else "is missing"
        found.append(
            Finding(
                code="INTERPRETATION_ENTITY_NOT_RETAINED",
                path=f"{path}/source_ids" if kept else "/relevant_entities",
                message=f"the selected entity {name} {lack}",
                allowed=(*(() if name in cited else (name,)), *(() if cited & set(mentions) else mentions)),
                details={"entity_id": name, "mentions": list(mentions)},
            )
        )
    return found


def name_binding_1(reply: Reply, context: Context) -> list[Finding]:
    """An entity with typed name bindings cites one of the bound facts."""
    bound = {entity["id"]: entity["name_bindings"] for entity in context["entities"] if entity["name_bindings"]}
    found = []
    for path, given in statements_in(reply, "relevant_entities"):
        facts = tuple(binding["fact"] for binding in bound.get(given["entity_id"], ()))
        if facts and not set(given["source_ids"]) & set(facts):
            message = f"no name fact of {given['entity_id']} is cited"
            found.append(
                Finding(code="INTERPRETATION_NAME_BINDING", path=f"{path}/source_ids", message=message, allowed=facts)
            )
    return found


def unbound_reason_1(reply: Reply, context: Context) -> list[Finding]:
    """An entity without a name gets the neutral reason, word for word."""
    required = {entity["id"]: entity["required_reason"] for entity in context["entities"] if entity["required_reason"]}
    return [
        Finding(
            code="INTERPRETATION_UNBOUND_REASON",
            path=f"{path}/reason",
            message="no name is bound to this entity, so its reason is fixed",
            allowed=(required[given["entity_id"]],),
        )
        for path, given in statements_in(reply, "relevant_entities")
        if given["reason"] != required.get(given["entity_id"], given["reason"])
    ]


def identity_missing_1(reply: Reply, context: Context) -> list[Finding]:
    """Every unresolved identity is retained as an unknown."""
    cited = {name for _, statement in statements_in(reply, "unknowns") for name in statement["source_ids"]}
    return [
        Finding(
            code="INTERPRETATION_IDENTITY_MISSING",
            path="/unknowns",
            message=f"the unresolved identity {unknown['id']} is cited by no unknown",
            allowed=(unknown["id"],),
        )
        for unknown in context["unknowns"]
        if unknown["id"].startswith("D") and unknown["id"] not in cited
    ]


VALIDATORS = tuple(
    Validator("interpretation", code, 1, check)
    for code, check in (
        ("INTERPRETATION_UNKNOWN_SOURCE", unknown_source_1),
        ("INTERPRETATION_OBSERVATION_SOURCE", observation_source_1),
        ("INTERPRETATION_EXPECTATION_SOURCE", expectation_source_1),
        ("INTERPRETATION_DESCRIPTION_SOURCE", description_source_1),
        ("INTERPRETATION_PROVISIONAL_GAP", provisional_gap_1),
        ("INTERPRETATION_UNKNOWN_ENTITY", unknown_entity_1),
        ("INTERPRETATION_ENTITY_MISSING", entity_missing_1),
        ("INTERPRETATION_ENTITY_PROVENANCE", entity_provenance_1),
        ("INTERPRETATION_ENTITY_NOT_RETAINED", entity_not_retained_1),
        ("INTERPRETATION_NAME_BINDING", name_binding_1),
        ("INTERPRETATION_UNBOUND_REASON", unbound_reason_1),
        ("INTERPRETATION_IDENTITY_MISSING", identity_missing_1),
    )
)
