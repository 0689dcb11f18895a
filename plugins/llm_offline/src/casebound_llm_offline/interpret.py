"""Interpretation: what the sources say, in their own words.

Every statement is a slice of a source; only reasons and open questions are sentences of ours, made of names and ids.
What a report expects is taken from expectations only, what a database describes from descriptions only; no cause is
inferred.
"""

from __future__ import annotations

import re
from typing import Any

Message = dict[str, Any]
Statement = dict[str, Any]

TOLD = ("observation", "text", "comment", "reproduction")
MOST_STATEMENTS = 8
LONGEST = 480
_STOP = re.compile(r"[.!?…。！？]+[\"'”»)\]]*(?=\s|$)|[。！？]")


def answer(message: Message) -> dict[str, Any]:
    """Return the interpretation for a user message of stage `interpretation`, with the fields that its schema names."""
    sources = [source for source in message["sources"] if source["text"].strip()]
    observed = _statements(sources, TOLD) or _statements(sources, ("title", "reference", "environment"))
    expected = _statements(sources, ("expectation",))
    reply = {
        "summary": _summary(sources or message["sources"]),
        "observed_behavior": observed,
        "expected_behavior": expected,
        "behavior_gap": _gap(observed, expected),
        "first_known_divergence": None,
        "described_behavior": [
            {**statement, "basis": "local_description", "verification": "not_independently_verified"}
            for statement in _statements(sources, ("project_description",))
        ],
        "provisional_behavior_gap": None,
        "relevant_entities": [_relevant(entity) for entity in message["entities"] if _is_relevant(entity)],
        "unknowns": _unknowns(message["unknowns"]),
    }
    asked = message.get("output_schema", {}).get("properties", reply)
    return {field: value for field, value in reply.items() if field in asked}


# --- statements -----------------------------------------------------------------------------------------------------


def opening(text: str, longest: int = LONGEST) -> str:
    """Return the beginning of `text`: whole sentences within `longest` code points, else whole words, else a cut."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if end - start <= longest:
        return text[start:end]
    ends = [match.end() for match in _STOP.finditer(text, start, start + longest)]
    if ends:
        return text[start : ends[-1]]
    space = max(text.rfind(char, start + 1, start + longest) for char in " \n\t")
    return text[start : space if space > start else start + longest].rstrip()


def _statements(sources: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[Statement]:
    chosen = [source for source in sources if source["kind"] in kinds][:MOST_STATEMENTS]
    return [{"text": opening(source["text"]), "source_ids": [source["id"]]} for source in chosen]


def _summary(sources: list[dict[str, Any]]) -> Statement:
    """Return the title, or the beginning of the first thing that the report tells."""
    order = ("title", *TOLD, "expectation", "reference", "environment", "project_description")
    ranked = sorted(sources, key=lambda source: order.index(source["kind"]) if source["kind"] in order else len(order))
    if not ranked:
        return {"text": "", "source_ids": []}
    text = ranked[0]["text"]
    return {"text": opening(text, 240) or text, "source_ids": [ranked[0]["id"]]}


def _gap(observed: list[Statement], expected: list[Statement]) -> Statement | None:
    """Return the first observation with the expectation that the report itself sets against it."""
    if not observed or not expected:
        return None
    return {"text": observed[0]["text"], "source_ids": [*observed[0]["source_ids"], *expected[0]["source_ids"]]}


# --- entities and open questions ------------------------------------------------------------------------------------


def _is_relevant(entity: dict[str, Any]) -> bool:
    """Tell whether a search selected the entity, or the report cites its id."""
    return bool(entity["lookup_associations"] or entity.get("mentions") or entity.get("name_bindings"))


def _relevant(entity: dict[str, Any]) -> Statement:
    associations, bindings = entity["lookup_associations"], entity.get("name_bindings", [])
    mentions = associations[0]["mentions"] if associations else entity.get("mentions", [])
    cited = [*mentions[:1], entity["id"]]
    cited += [association["fact"] for association in associations[:1] if "fact" in association]
    cited += [binding["fact"] for binding in bindings[:1]]
    return {
        "entity_id": entity["id"],
        "reason": entity.get("required_reason") or _reason(entity, associations, bindings),
        "source_ids": list(dict.fromkeys(cited)),
    }


def _reason(entity: dict[str, Any], associations: list[dict[str, Any]], bindings: list[dict[str, Any]]) -> str:
    what = f"{entity['type']} {entity['canonical_id']}"
    named = next((association for association in associations if association["name"]), None)
    if named:
        return (
            f"The report names “{named['name']}”, which the catalog holds as {what}; its role there: {named['role']}."
        )
    if bindings:
        return f"The report cites {what}, which the database names “{bindings[0]['name']}”."
    return f"Entity of type {entity['type']} with id {entity['canonical_id']}."


def _unknowns(unknowns: list[dict[str, Any]]) -> list[Statement]:
    """Return the case's open questions, one statement an ambiguous text, and one for all that was not found."""
    stated = [{"text": each["text"], "source_ids": [each["id"]]} for each in unknowns if not _is_identity(each)]
    identities = [each for each in unknowns if _is_identity(each)]
    shared: dict[str, list[dict[str, Any]]] = {}
    for each in identities:
        if each["status"] == "ambiguous":
            shared.setdefault(each["term"], []).append(each)
    for term, group in shared.items():
        text = f"Which entity “{term}” names stays open: {_catalogs(group)} may mean more than one."
        stated.append({"text": text, "source_ids": _citations(group)})
    missed = [each for each in identities if each["status"] != "ambiguous"]
    if missed:
        terms = ", ".join(f"“{term}”" for term in dict.fromkeys(each["term"] for each in missed))
        text = f"No entry of {_catalogs(missed)} was singled out for {terms}; that does not show that there is none."
        stated.append({"text": text, "source_ids": _citations(missed)})
    return stated


def _is_identity(unknown: dict[str, Any]) -> bool:
    return bool(unknown["id"].startswith("D"))


def _catalogs(group: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(each["catalog"] for each in group))


def _citations(group: list[dict[str, Any]]) -> list[str]:
    mentions = dict.fromkeys(mention for each in group for mention in each["mentions"][:1])
    return [*(each["id"] for each in group), *mentions]
