"""A provider for Gemini's `generateContent`."""

from __future__ import annotations

from casebound import hookimpl
from casebound.specs import ProviderSpec


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `gemini`."""
    return [
        ProviderSpec(
            "gemini",
            settings=f"{__name__}.settings:GeminiSettings",
            factory=f"{__name__}.provider:GeminiProvider",
            needs_model=True,
        )
    ]
