"""The plugin of the inventory project: how reports cite hosts and services, a role, and a provider that is silent."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.settings_model import Table
from casebound.specs import CatalogOffer, ProviderSpec, ReferencePattern
from casebound.testing.scripted import RaisingProvider


class SilentSettings(Table):
    """`[llm.scripted]` has no keys."""


class SilentProvider(RaisingProvider):
    """Stands in settings where a test puts a scripted provider in its place; asked itself, it raises."""

    def __init__(self, settings: SilentSettings) -> None:
        self.settings = settings


@hookimpl
def casebound_catalogs() -> list[CatalogOffer]:
    """Offer the patterns `host=11` and `service 431`, and the role `owner`."""
    references = (
        ReferencePattern("inventory.host", "host", r"\bhost=(?P<id>[0-9]+)"),
        ReferencePattern("inventory.service", "service", r"\bservice[ =](?P<id>[0-9]+)"),
    )
    return [CatalogOffer(references=references, roles=("owner",))]


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `scripted`."""
    return [ProviderSpec("scripted", settings=f"{__name__}:SilentSettings", factory=f"{__name__}:SilentProvider")]
