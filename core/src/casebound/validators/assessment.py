"""Rules for the replies of stage `assessment`.

All but the first look only at resolutions that stand at their own index; the first one reports the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.contracts.findings import Finding
from casebound.specs import Validator
from casebound.validators.plan import unknown_role_1

Reply = Mapping[str, Any]
Context = Mapping[str, Any]


def _judged(reply: Reply, context: Context) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield index, resolution and the table of its search, where the two belong together."""
    for index, (resolution, table) in enumerate(zip(reply["resolutions"], context["candidates"], strict=False)):
        if resolution["search_index"] == table["search_index"]:
            yield index, resolution, table


def resolution_order_1(reply: Reply, context: Context) -> list[Finding]:
    """Exactly one resolution a search, in the order of the searches."""
    expected = [table["search_index"] for table in context["candidates"]]
    found = [resolution["search_index"] for resolution in reply["resolutions"]]
    if found == expected:
        return []
    message = f"search indices {found} were answered, {expected} are asked, in this order"
    allowed = tuple(map(str, expected))
    return [Finding(code="ENTITY_RESOLUTION_RESOLUTION_ORDER", path="/resolutions", message=message, allowed=allowed)]


def unread_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Every cited id is a readable source or a capture of the message."""
    known = {source["id"] for source in context["sources"]} | {table["capture"] for table in context["candidates"]}
    known |= {entity["id"] for entity in context["entities"]} | {name["fact"] for name in context["known_names"]}
    fitting = {index: (table["capture"], *table["mentions"]) for index, _, table in _judged(reply, context)}
    return [
        Finding(
            code="ENTITY_RESOLUTION_UNREAD_SOURCE",
            path=f"/resolutions/{index}/source_ids/{place}",
            message=f"{name} is neither a readable source nor a capture of the message",
            allowed=fitting.get(index, ()),
        )
        for index, resolution in enumerate(reply["resolutions"])
        for place, name in enumerate(resolution["source_ids"])
        if name not in known
    ]


def status_entity_1(reply: Reply, context: Context) -> list[Finding]:
    """An entity is given where, and only where, the status is `selected`."""
    rows = {index: _identities(table) for index, _, table in _judged(reply, context)}
    found = []
    for index, resolution in enumerate(reply["resolutions"]):
        selected = resolution["status"] == "selected"
        if selected != (resolution["entity"] is not None):
            found.append(
                Finding(
                    code="ENTITY_RESOLUTION_STATUS_ENTITY",
                    path=f"/resolutions/{index}/entity",
                    message="selected needs its entity" if selected else "only selected has an entity",
                    allowed=rows.get(index, ()) if selected else ("null",),
                )
            )
    return found


def _identities(table: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{table['entity_type']} {row[0]}" for row in table["rows"]))


def unknown_candidate_1(reply: Reply, context: Context) -> list[Finding]:
    """A selected entity is a row of that very search."""
    found = []
    for index, resolution, table in _judged(reply, context):
        entity = resolution["entity"]
        rows = {(table["entity_type"], row[0]) for row in table["rows"]}
        if entity is not None and (entity["type"], entity["id"]) not in rows:
            found.append(
                Finding(
                    code="ENTITY_RESOLUTION_UNKNOWN_CANDIDATE",
                    path=f"/resolutions/{index}/entity",
                    message="this is no row of the search",
                    allowed=_identities(table),
                )
            )
    return found


def truncated_selection_1(reply: Reply, context: Context) -> list[Finding]:
    """A search that was cut off is never selected from: unseen rows may match as well."""
    return [
        Finding(
            code="ENTITY_RESOLUTION_TRUNCATED_SELECTION",
            path=f"/resolutions/{index}/status",
            message="the search was cut off, so nothing can be selected from it",
            allowed=("ambiguous", "no_match"),
        )
        for index, resolution, table in _judged(reply, context)
        if resolution["status"] == "selected" and table["truncated"]
    ]


def capture_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Every resolution cites the capture of its own search in `source_ids`; naming it in `reason` does not count."""
    return [
        Finding(
            code="ENTITY_RESOLUTION_CAPTURE_SOURCE",
            path=f"/resolutions/{index}/source_ids",
            message=f"the capture {table['capture']} of search {table['search_index']} is not cited",
            allowed=(table["capture"],),
            details={
                "missing_capture": table["capture"],
                "search_index": table["search_index"],
                "mentions": list(table["mentions"]),
            },
        )
        for index, resolution, table in _judged(reply, context)
        if table["capture"] not in resolution["source_ids"]
    ]


def mention_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Every resolution cites at least one source in which the term of its search stands."""
    return [
        Finding(
            code="ENTITY_RESOLUTION_MENTION_SOURCE",
            path=f"/resolutions/{index}/source_ids",
            message=f"no mention of search {table['search_index']} is cited",
            allowed=tuple(table["mentions"]),
        )
        for index, resolution, table in _judged(reply, context)
        if not set(table["mentions"]) & set(resolution["source_ids"])
    ]


VALIDATORS = (
    Validator("assessment", "ENTITY_RESOLUTION_RESOLUTION_ORDER", 1, resolution_order_1),
    Validator("assessment", "ENTITY_RESOLUTION_UNKNOWN_ROLE", 1, unknown_role_1),
    Validator("assessment", "ENTITY_RESOLUTION_UNREAD_SOURCE", 1, unread_source_1),
    Validator("assessment", "ENTITY_RESOLUTION_STATUS_ENTITY", 1, status_entity_1),
    Validator("assessment", "ENTITY_RESOLUTION_UNKNOWN_CANDIDATE", 1, unknown_candidate_1),
    Validator("assessment", "ENTITY_RESOLUTION_TRUNCATED_SELECTION", 1, truncated_selection_1),
    Validator("assessment", "ENTITY_RESOLUTION_CAPTURE_SOURCE", 1, capture_source_1),
    Validator("assessment", "ENTITY_RESOLUTION_MENTION_SOURCE", 1, mention_source_1),
)
