"""What the settings at hand would freeze otherwise than a finished case did, said without asking database or model."""

from __future__ import annotations

from dataclasses import dataclass

from casebound.binding import Bound
from casebound.contracts.capture import EnrichmentInput, Facts
from casebound.contracts.case import Build
from casebound.contracts.interpretation import InterpretationInput
from casebound.contracts.plan import ResolutionInput
from casebound.intake.build import freeze_build
from casebound.interpretation.freeze import changed_policies
from casebound.resolution.freeze import changed_limits, changed_settings
from casebound.specs import EnrichmentRule


@dataclass(frozen=True, slots=True)
class Differences:
    """One phrase a difference.

    Attributes:
        interpretation: a new revision would freeze it.
        case: only a fresh case of the report would, for a revision keeps case and facts.
    """

    interpretation: tuple[str, ...]
    case: tuple[str, ...]


def differences_of(
    bound: Bound,
    frozen: InterpretationInput,
    resolution: ResolutionInput | None,
    build: Build | None,
    facts: Facts | None,
) -> Differences:
    """Return what is frozen of a case and would now be another."""
    case = []
    if build is not None and build != freeze_build(bound.references, bound.headings):
        case.append("typed ids or headings are others")
    if facts is not None and facts.binding is not None:
        case += _changed_rules(bound, facts)
    found = changed_policies(bound, frozen)
    if resolution is not None:
        found = [*changed_settings(bound, resolution), *changed_limits(bound, resolution), *found]
    elif bound.settings.entity_resolution is not None:
        found.append("[entity_resolution] is there, it was absent")
    interpretation = tuple(text for text in dict.fromkeys(found) if text not in case)
    return Differences(interpretation, tuple(dict.fromkeys(case)))


def _changed_rules(bound: Bound, facts: Facts) -> list[str]:
    database, now = bound.settings.database, {rule.name: rule for rule in bound.enrichments}
    found = []
    if database is not None and facts.binding is not None and database.snapshot_id != facts.binding.snapshot_id:
        found.append(f"snapshot_id is {database.snapshot_id}, it was {facts.binding.snapshot_id}")
    types = {rule.entity_type for rule in facts.rules}
    frozen = {rule.name for rule in facts.rules}
    found += [f"the enrichment {name} is new" for name in now if now[name].entity_type in types and name not in frozen]
    found += [f"the enrichment {rule.name} is another" for rule in facts.rules if not _fits(now.get(rule.name), rule)]
    return found


def _fits(now: EnrichmentRule | None, frozen: EnrichmentInput) -> bool:
    """Tell whether `frozen` may be what `now` became: spelling follows the table, presets lose columns."""
    if now is None:
        return False
    own = (now.entity_type, now.table, now.column.lower(), (now.name_column or "").lower())
    theirs = (frozen.entity_type, frozen.table, frozen.column.lower(), (frozen.name_column or "").lower())
    columns, kept = {name.lower() for name in now.columns}, {name.lower() for name in frozen.columns}
    described, kept_too = ({name.lower() for name in rule.description_columns} for rule in (now, frozen))
    exact = columns == kept and described == kept_too
    return own == theirs and (exact or (now.preset and kept <= columns and kept_too <= described))
