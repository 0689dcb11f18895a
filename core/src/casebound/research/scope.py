"""The fixed sentences that say what a capture covers.

A miss is scoped to catalog, text and snapshot; it proves no absence.
"""

from __future__ import annotations

from casebound.canonical import canonical_bytes
from casebound.contracts.capture import EnrichmentInput

_END = "This covers what is named here and nothing else; what is not listed may exist elsewhere."


def look_up_scope(catalog: str, snapshot: str, term: str, found: bool, limit_met: str | None) -> str:
    """Return the sentence for a literal look-up."""
    where = f"catalog {_quoted(catalog)} in snapshot {_quoted(snapshot)}{_read(limit_met)}"
    if found:
        return f"Names of {where} contain the text {_quoted(term)}. {_END}"
    return f"No name of {where} contains the text {_quoted(term)}. {_END}"


def entity_scope(rule: EnrichmentInput, snapshot: str, entity_id: str, found: bool, limit_met: str | None) -> str:
    """Return the sentence for the rows of a typed id."""
    where = f"table {_quoted(rule.table)} in snapshot {_quoted(snapshot)}{_read(limit_met)}"
    asked = f"the id {_quoted(entity_id)} in column {_quoted(rule.column)}"
    return f"{'Rows' if found else 'No row'} of {where} {'have' if found else 'has'} {asked}. {_END}"


def _read(limit_met: str | None) -> str:
    return f", of the rows read before {limit_met} was met," if limit_met else ""


def _quoted(text: str) -> str:
    return canonical_bytes(text).decode()
