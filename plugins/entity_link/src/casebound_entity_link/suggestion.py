"""How a suggestion follows from what stands in a link's folder: the journal writes it so, and `verify` repeats it."""

from __future__ import annotations

from collections.abc import Sequence

from casebound.canonical import digest_of
from casebound.contracts.interpretation import SealedFile
from casebound.specs import PromptProtocol

from casebound_entity_link.contracts import LinkInput, Suggestion


def derive_suggestion(
    input_: LinkInput, protocol: PromptProtocol, reply: dict[str, object], files: Sequence[SealedFile]
) -> Suggestion:
    """Return the suggestion of an admitted reply, over the `files` before it: pure, so that `verify` can repeat it."""
    return Suggestion(
        prompt_id=protocol.prompt_id,
        contract=protocol.response_contract,
        input_digest=digest_of(input_.to_bytes()),
        reply=reply,
        files=tuple(files),
    )
