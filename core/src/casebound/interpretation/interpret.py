"""`interpretation.json` and `hypothesis-context.json`: the accepted reply, and the same taken apart by kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from casebound.canonical import digest_of
from casebound.contracts.case import Case
from casebound.contracts.interpretation import (
    LISTED_STATEMENTS,
    SINGLE_STATEMENTS,
    HypothesisContext,
    HypothesisSource,
    Interpretation,
    InterpretationContext,
    statements_in,
)
from casebound.specs import PromptProtocol

_LABELS = ("basis", "verification", "status", "entity_id")


def derive_interpretation(
    context: InterpretationContext, protocol: PromptProtocol, reply: dict[str, object]
) -> Interpretation:
    """Return the interpretation: the reply verbatim, bound to its prompt, contract and context."""
    return Interpretation(
        contract=protocol.response_contract or protocol.prompt_id,
        prompt_id=protocol.prompt_id,
        context_digest=digest_of(context.to_bytes()),
        reply=reply,
    )


def derive_hypothesis_context(case: Case, interpretation: Interpretation) -> HypothesisContext:
    """Return every statement with its own kind and citations; no kind is promoted to another."""
    return HypothesisContext(
        case_digest=digest_of(case.to_bytes()),
        interpretation_digest=digest_of(interpretation.to_bytes()),
        sources=tuple(_sources(interpretation.reply)),
    )


def _sources(reply: dict[str, Any]) -> Iterator[HypothesisSource]:
    for kind in (*SINGLE_STATEMENTS, *LISTED_STATEMENTS):
        for pointer, statement in statements_in(reply, kind):
            yield HypothesisSource(
                id=pointer,
                kind=kind,
                text=statement.get("text", statement.get("reason", "")),
                source_ids=tuple(statement["source_ids"]),
                labels={key: str(statement[key]) for key in _LABELS if key in statement},
            )
