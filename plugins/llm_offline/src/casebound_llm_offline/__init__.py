"""A deterministic provider that answers by rules, for every catalog: it knows languages, not domains."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.specs import ProviderSpec, RuleSet


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `offline`."""
    settings, factory = f"{__name__}.provider:OfflineSettings", f"{__name__}.provider:OfflineProvider"
    return [ProviderSpec("offline", settings=settings, factory=factory, resolver="rules")]


@hookimpl
def casebound_rules() -> list[RuleSet]:
    """Offer answers for the three stages of core."""
    return [
        RuleSet("plan", answer=f"{__name__}.plan:answer"),
        RuleSet("assessment", answer=f"{__name__}.assess:answer"),
        RuleSet("interpretation", answer=f"{__name__}.interpret:answer"),
    ]
