"""A provider for OpenAI (Chat Completions or Responses) and every server that speaks the same."""

from __future__ import annotations

from casebound import hookimpl
from casebound.specs import ProviderSpec


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `openai`."""
    return [
        ProviderSpec(
            "openai",
            settings=f"{__name__}.settings:OpenAISettings",
            factory=f"{__name__}.provider:OpenAIProvider",
            needs_model=True,
        )
    ]
