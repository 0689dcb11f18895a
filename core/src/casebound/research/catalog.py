"""What the engine asks of a database: the one promise that any source of catalogs keeps.

`casebound.testing.conformance.catalog` holds the suite for it. This module imports no database library; `open_source`
does, when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from casebound.contracts.capture import Binding, Capture, CatalogInput, EnrichmentInput, EntityCapture
from casebound.errors import SettingsError
from casebound.settings import Settings, database_url
from casebound.specs import Catalog, EnrichmentRule


class CatalogSource(Protocol):
    """A read-only database of names.

    Whatever fails is an error, never an empty answer: `RESEARCH_UNAVAILABLE` where the database does not answer, a
    `SettingsError` where the settings do not fit it: `SETTINGS_DATABASE` and `SETTINGS_TABLE` where there is none.
    """

    @property
    def is_file(self) -> bool:
        """Whether this process reads a file itself, and asks no server."""
        ...

    def binding(self) -> Binding:
        """Return which state of which database answers now."""
        ...

    def freeze_catalog(self, catalog: Catalog) -> CatalogInput:
        """Return the catalog with the columns that its table really has, in their real spelling.

        Raises:
            SettingsError: `SETTINGS_TABLE` (also where there is no such table), `SETTINGS_COLUMN`.
            ResearchError: `RESEARCH_UNAVAILABLE`.
        """
        ...

    def freeze_rule(self, rule: EnrichmentRule) -> EnrichmentInput:
        """Return the rule with the columns that its table really has. Raises as `freeze_catalog` does."""
        ...

    def missing_tables(self) -> list[str]:
        """Return which tables of the allowlist do not exist, or may not be read. Raises `ResearchError`."""
        ...

    def look_up_all(self, searches: Sequence[tuple[CatalogInput, str]], max_candidates: int) -> list[Capture]:
        """Run every literal look-up in one consistent read transaction; return one capture a search, in order.

        Raises:
            SettingsError: `CATALOG_TERM`, `SETTINGS_TABLE`, before anything is asked.
            ResearchError: `RESEARCH_UNAVAILABLE`; then no search has a result.
        """
        ...

    def entity_rows_all(self, pairs: Sequence[tuple[EnrichmentInput, str]], limit: int) -> list[EntityCapture]:
        """Fetch the rows of every typed id in one consistent read transaction; return one capture a pair, in order.

        Raises:
            SettingsError: `CATALOG_TERM`, `SETTINGS_TABLE`, before anything is asked.
            ResearchError: `RESEARCH_UNAVAILABLE`; then no pair has a result.
        """
        ...

    def close(self) -> None:
        """Let go of every connection. A second call does nothing."""
        ...


def open_source(
    url: str,
    *,
    snapshot_id: str,
    tables: Sequence[str],
    statement_timeout_s: int = 10,
    scan_rows: int = 1_000_000,
    max_bytes: int = 67_108_864,
) -> CatalogSource:
    """Return a source for a database URL; nothing is connected before the first question.

    Args:
        url: an SQLAlchemy URL of SQLite, MariaDB, MySQL or PostgreSQL. It is never shown and never written.
        snapshot_id: the operator's name for the present state of the database.
        tables: the allowlist; no other table is read.
        statement_timeout_s: seconds for one query, connecting included.
        scan_rows: most rows that one query may read.
        max_bytes: most bytes that one query may read.

    Raises:
        SettingsError: `SETTINGS_VALUE` for a URL that cannot be used, `SETTINGS_DRIVER` for a driver not installed.
    """
    from casebound.research.source import SqlSource

    return SqlSource.open(
        url,
        snapshot_id=snapshot_id,
        tables=tables,
        statement_timeout_s=statement_timeout_s,
        scan_rows=scan_rows,
        max_bytes=max_bytes,
    )


def open_database(settings: Settings) -> CatalogSource:
    """Return the project's database, read only; nothing is connected before the first question.

    Raises:
        SettingsError: there is no `[database]`, its variable is not set, or its URL cannot be used.
    """
    url = database_url(settings)
    database = settings.database
    assert database is not None  # noqa: S101  # database_url has refused that
    try:
        return open_source(
            url.reveal(),
            snapshot_id=database.snapshot_id,
            tables=database.tables,
            statement_timeout_s=database.statement_timeout_s,
            scan_rows=database.scan_rows,
            max_bytes=database.max_bytes,
        )
    except SettingsError as exc:
        raise exc.placed(str(settings.path), database.key) from None
