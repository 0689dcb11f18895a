"""The Codex CLI as an executor of model calls."""

from __future__ import annotations

from casebound import hookimpl
from casebound.specs import ProviderSpec


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `codex`."""
    return [
        ProviderSpec(
            "codex",
            settings=f"{__name__}.settings:CodexSettings",
            factory=f"{__name__}.provider:CodexProvider",
            needs_model=True,
            program=f"{__name__}.provider:bound_program",
        )
    ]
