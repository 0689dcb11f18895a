"""Rules for the replies of stage `plan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.contracts.findings import Finding
from casebound.specs import Validator

Reply = Mapping[str, Any]
Context = Mapping[str, Any]


def search_limit_1(reply: Reply, context: Context) -> list[Finding]:
    """At most `limits.max_searches` searches."""
    most = context["limits"]["max_searches"]
    found = len(reply["searches"])
    if found <= most:
        return []
    message = f"{found} searches are proposed, at most {most} are allowed"
    return [Finding(code="ENTITY_RESOLUTION_SEARCH_LIMIT", path="/searches", message=message, allowed=(str(most),))]


def unknown_catalog_1(reply: Reply, context: Context) -> list[Finding]:
    """Every catalog is one of those that the operator configured."""
    names = tuple(catalog["name"] for catalog in context["catalogs"])
    return [
        Finding(
            code="ENTITY_RESOLUTION_UNKNOWN_CATALOG",
            path=f"/searches/{index}/catalog",
            message="this catalog is not configured",
            allowed=names,
        )
        for index, search in enumerate(reply["searches"])
        if search["catalog"] not in names
    ]


def unknown_role_1(reply: Reply, context: Context) -> list[Finding]:
    """Every role is one of those that the frozen input lists."""
    roles = tuple(context["roles"])
    return [
        Finding(
            code="ENTITY_RESOLUTION_UNKNOWN_ROLE",
            path=f"/{key}/{index}/role",
            message="this role is not one of the case",
            allowed=roles,
        )
        for key in ("searches", "resolutions")
        for index, item in enumerate(reply.get(key, ()))
        if item["role"] not in roles
    ]


def unread_source_1(reply: Reply, context: Context) -> list[Finding]:
    """Every cited source was given to the model as readable."""
    readable = tuple(source["id"] for source in context["sources"])
    known = frozenset(readable)
    return [
        Finding(
            code="ENTITY_RESOLUTION_UNREAD_SOURCE",
            path=f"/searches/{index}/source_ids/{place}",
            message=f"{name} is no readable source",
            allowed=readable,
        )
        for index, search in enumerate(reply["searches"])
        for place, name in enumerate(search["source_ids"])
        if name not in known
    ]


def ungrounded_term_1(reply: Reply, context: Context) -> list[Finding]:
    """Every term occurs, code point for code point, in at least one source that its search cites."""
    texts = {source["id"]: source["text"] for source in context["sources"]}
    found = []
    for index, search in enumerate(reply["searches"]):
        term = search["term"]
        if any(term in texts.get(name, "") for name in search["source_ids"]):
            continue
        elsewhere = tuple(name for name, text in texts.items() if term in text)
        found.append(
            Finding(
                code="ENTITY_RESOLUTION_UNGROUNDED_TERM",
                path=f"/searches/{index}/term",
                message="the term does not stand, character for character, in any source that the search cites",
                details={"sources_that_hold_it": list(elsewhere)},
            )
        )
    return found


def duplicate_search_1(reply: Reply, context: Context) -> list[Finding]:
    """No two searches have the same catalog, term and role."""
    return list(_duplicates(reply))


def _duplicates(reply: Reply) -> Iterator[Finding]:
    first: dict[tuple[str, str, str], int] = {}
    for index, search in enumerate(reply["searches"]):
        key = (search["catalog"], search["term"], search["role"])
        if key in first:
            yield Finding(
                code="ENTITY_RESOLUTION_DUPLICATE_SEARCH",
                path=f"/searches/{index}",
                message=f"the same catalog, term and role as search {first[key]}",
            )
        first.setdefault(key, index)


VALIDATORS = (
    Validator("plan", "ENTITY_RESOLUTION_SEARCH_LIMIT", 1, search_limit_1),
    Validator("plan", "ENTITY_RESOLUTION_UNKNOWN_CATALOG", 1, unknown_catalog_1),
    Validator("plan", "ENTITY_RESOLUTION_UNKNOWN_ROLE", 1, unknown_role_1),
    Validator("plan", "ENTITY_RESOLUTION_UNREAD_SOURCE", 1, unread_source_1),
    Validator("plan", "ENTITY_RESOLUTION_UNGROUNDED_TERM", 1, ungrounded_term_1),
    Validator("plan", "ENTITY_RESOLUTION_DUPLICATE_SEARCH", 1, duplicate_search_1),
)
