"""`entity-resolution/input.json`: everything that a resolution may use, frozen before the first call."""

from __future__ import annotations

from collections.abc import Sequence

from casebound.binding import Bound
from casebound.canonical import digest_of
from casebound.contracts.capture import Facts, QueryLimits
from casebound.contracts.case import Case
from casebound.contracts.plan import ResolutionInput, ResolutionLimits
from casebound.errors import SettingsError
from casebound.frozen import freeze_protocol
from casebound.research.catalog import CatalogSource
from casebound.specs import CORE_STAGES


def freeze_resolution(bound: Bound, source: CatalogSource, case: Case, facts: Facts) -> ResolutionInput:
    """Return the input of a fresh resolution.

    Raises:
        SettingsError: a catalog does not fit its table; or the database changed since the facts (`BINDING_CHANGED`).
        ResearchError: the database does not answer.
    """
    resolution, database = bound.settings.entity_resolution, bound.settings.database
    assert resolution is not None  # noqa: S101  # called only where resolution is on
    assert database is not None  # noqa: S101  # settings demand it then
    binding = source.binding()
    if facts.binding is not None and facts.binding != binding:
        raise SettingsError(
            "BINDING_CHANGED",
            found=f"{binding.to_json()}",
            expected=f"{facts.binding.to_json()}",
            where="research/facts.json",
            hint="the facts hold for that state alone: put it back, or resolve the report with --package-id",
        )
    return ResolutionInput(
        case_digest=digest_of(case.to_bytes()),
        facts_digest=digest_of(facts.to_bytes()),
        protocol_version=bound.protocols["plan"].version,
        interpretation_protocol_version=bound.protocols["interpretation"].version,
        protocols=tuple(freeze_protocol(bound.host, bound.protocols[stage]) for stage in CORE_STAGES),
        catalogs=tuple(source.freeze_catalog(catalog) for catalog in bound.catalogs),
        roles=bound.roles,
        limits=ResolutionLimits(
            max_searches=resolution.max_searches,
            max_candidates=resolution.max_candidates,
            max_invalid_responses=resolution.max_invalid_responses,
        ),
        query_limits=QueryLimits(
            max_candidates=resolution.max_candidates,
            scan_rows=database.scan_rows,
            max_bytes=database.max_bytes,
            statement_timeout_s=database.statement_timeout_s,
        ),
        binding=binding,
    )


def changed_settings(bound: Bound, frozen: ResolutionInput) -> list[str]:
    """Return what the settings say otherwise than an unfinished resolution froze, without asking the database."""
    resolution, database = bound.settings.entity_resolution, bound.settings.database
    if resolution is None or database is None:
        return ["[entity_resolution] is absent"]
    found = []
    if database.snapshot_id != frozen.binding.snapshot_id:
        found.append(f"snapshot_id is {database.snapshot_id}, it was {frozen.binding.snapshot_id}")
    now = [(c.name, c.entity_type, c.table, c.id_column, c.name_column, c.locale_column) for c in bound.catalogs]
    then = [(c.name, c.entity_type, c.table, c.id_column, c.name_column, c.locale_column) for c in frozen.catalogs]
    # Column names may differ in case: the frozen ones are spelt as the table spells them.
    if [tuple(str(part).casefold() for part in c) for c in now] != [
        tuple(str(part).casefold() for part in c) for c in then
    ]:
        found.append(f"catalogs are {_names(now)}, they were {_names(then)}")
    found += [f"table {c.table} is no longer allowed" for c in frozen.catalogs if c.table not in database.tables]
    return found


def changed_limits(bound: Bound, frozen: ResolutionInput) -> list[str]:
    """Return which bounds, roles, columns and versions a fresh resolution would freeze otherwise."""
    resolution, database = bound.settings.entity_resolution, bound.settings.database
    if resolution is None or database is None:
        return []
    then = {**frozen.query_limits.to_json(), **frozen.limits.to_json()}
    found = []
    for key, value in then.items():
        now = getattr(resolution, key, getattr(database, key, value))
        if now != value:
            found.append(f"{key} is {now}, it was {value}")
    if bound.roles != frozen.roles:
        found.append("roles are others")
    columns = {catalog.name: {name.lower() for name in catalog.columns} for catalog in frozen.catalogs}
    for catalog in bound.catalogs:
        kept, now = columns.get(catalog.name, set()), {name.lower() for name in catalog.columns}
        if catalog.locale_column:
            now.add(catalog.locale_column.lower())
        if catalog.name in columns and not (kept == now or (catalog.preset and kept <= now)):
            found.append(f"the columns of {catalog.name} are others")
    return found


def _names(catalogs: Sequence[tuple[str | None, ...]]) -> str:
    return ", ".join(f"{catalog[0]} on {catalog[2]}" for catalog in catalogs)
