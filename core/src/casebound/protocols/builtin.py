"""The prompt protocols that core ships, registered through the same hook as any other plugin's."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.specs import PromptProtocol


@hookimpl
def casebound_protocols() -> list[PromptProtocol]:
    """Offer every built-in version."""
    from casebound.protocols.registry import built_in_protocols

    return built_in_protocols()
