"""`context.json`: everything that an interpretation may cite, frozen before it is asked for."""

from __future__ import annotations

from casebound.canonical import digest_of
from casebound.contracts.interpretation import InterpretationContext, InterpretationInput
from casebound.contracts.stage_facts import StageFacts
from casebound.specs import PromptProtocol


def derive_context(facts: StageFacts, frozen: InterpretationInput, protocol: PromptProtocol) -> InterpretationContext:
    """Return the context that `protocol` derives from the artifacts before it."""
    basis = facts.case if facts.assessment is None else facts.assessment
    return InterpretationContext(
        policy=protocol.context_policy or protocol.prompt_id,
        prompt_id=protocol.prompt_id,
        input_digest=digest_of(frozen.to_bytes()),
        basis=digest_of(basis.to_bytes()),
        context=protocol.context(facts),
    )
