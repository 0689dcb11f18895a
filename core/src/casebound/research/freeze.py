"""Fitting catalogs and enrichment rules to the columns that a table really has.

A preset loses the columns that its table lacks, but for id and name; what an operator wrote must be exact. Spelling
follows the table: `logtitle` becomes `LogTitle`.
"""

from __future__ import annotations

from collections.abc import Sequence

from casebound.contracts.capture import CatalogInput, EnrichmentInput
from casebound.errors import SettingsError
from casebound.specs import Catalog, EnrichmentRule


def check_table(name: str, table: str, allowlist: Sequence[str]) -> None:
    """Raise `SETTINGS_TABLE` where `table` is not in the operator's allowlist; `name` is who wants it."""
    if table not in allowlist:
        raise SettingsError("SETTINGS_TABLE", found=table, where=name, pointer="database.tables", allowed=allowlist)


def fit_catalog(catalog: Catalog, existing: Sequence[str]) -> CatalogInput:
    """Return `catalog` with the columns among `existing`.

    Raises:
        SettingsError: `SETTINGS_COLUMN`, naming what the table has.
    """
    table = _Table(catalog.name, catalog.table, existing)
    id_column, name_column = table.require(catalog.id_column), table.require(catalog.name_column)
    locale = table.pick((catalog.locale_column,) if catalog.locale_column else (), exact=not catalog.preset)
    columns = table.pick(catalog.columns, exact=not catalog.preset)
    table.require_selected(columns, id_column, name_column)
    return CatalogInput(
        name=catalog.name,
        entity_type=catalog.entity_type,
        table=catalog.table,
        id_column=id_column,
        name_column=name_column,
        columns=tuple(dict.fromkeys(columns + locale)),
        locale_column=locale[0] if locale else None,
    )


def fit_rule(rule: EnrichmentRule, existing: Sequence[str]) -> EnrichmentInput:
    """Return `rule` with the columns among `existing`.

    Raises:
        SettingsError: `SETTINGS_COLUMN`, naming what the table has.
    """
    table = _Table(rule.name, rule.table, existing)
    id_column = table.require(rule.column)
    name_column = table.require(rule.name_column) if rule.name_column else None
    columns = table.pick(rule.columns, exact=not rule.preset)
    descriptions = table.pick(rule.description_columns, exact=not rule.preset)
    table.require_selected(columns, id_column, *((name_column,) if name_column else ()), *descriptions)
    return EnrichmentInput(
        name=rule.name,
        entity_type=rule.entity_type,
        table=rule.table,
        column=id_column,
        columns=columns,
        name_column=name_column,
        description_columns=descriptions,
    )


class _Table:
    def __init__(self, owner: str, table: str, existing: Sequence[str]) -> None:
        self.owner = owner
        self.table = table
        self.existing = existing

    def find(self, wanted: str) -> str | None:
        if wanted in self.existing:
            return wanted
        alike = [name for name in self.existing if name.lower() == wanted.lower()]
        return alike[0] if len(alike) == 1 else None

    def require(self, wanted: str) -> str:
        found = self.find(wanted)
        if found is None:
            raise self._error(wanted)
        return found

    def pick(self, wanted: Sequence[str], *, exact: bool) -> tuple[str, ...]:
        names = [self.require(name) if exact else self.find(name) for name in wanted]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def require_selected(self, columns: Sequence[str], *needed: str) -> None:
        for name in needed:
            if name not in columns:
                raise SettingsError(
                    "SETTINGS_COLUMN",
                    found=f"columns without {name}",
                    where=self.owner,
                    expected="id, name and description columns among the selected columns",
                    hint=f"add {name} to its columns",
                )

    def _error(self, wanted: str) -> SettingsError:
        return SettingsError(
            "SETTINGS_COLUMN", found=wanted, where=f"{self.owner}, table {self.table}", allowed=self.existing
        )
