"""World of Warcraft world databases for casebound: the only place that knows this game."""

from __future__ import annotations

from collections.abc import Sequence

from casebound import hookimpl
from casebound.specs import CatalogOffer, Demo

from casebound_catalog_vcore.catalogs import CATALOGS
from casebound_catalog_vcore.enrichment import ENRICHMENTS
from casebound_catalog_vcore.references import REFERENCES
from casebound_catalog_vcore.settings_text import SETTINGS_TEXT
from casebound_catalog_vcore.vocabulary import HEADINGS, ROLES


@hookimpl
def casebound_catalogs() -> Sequence[CatalogOffer]:
    """Offer the presets, the ways in which reports cite ids, the roles, the headings and the settings of `init`."""
    return [
        CatalogOffer(
            catalogs=CATALOGS,
            references=REFERENCES,
            enrichments=ENRICHMENTS,
            roles=ROLES,
            headings=HEADINGS,
            settings_text=SETTINGS_TEXT,
        )
    ]


@hookimpl
def casebound_demos() -> Sequence[Demo]:
    """Offer the Brewfest sample."""
    return [Demo("vcore", folder="casebound_catalog_vcore.demo:fill")]
