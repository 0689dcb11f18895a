"""`SqlSource`: catalogs in an SQL database, over SQLAlchemy.

Rules:
- Every search of a batch sees one state of the data; if one fails, none has a result.
- Rows are streamed: memory grows with `max_candidates`, not with the table.
- What is kept depends on the rows alone: exact match, then shorter name, then name, then id, then the whole row.
- A search is not made again in a file that is still the same (ADR 19).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Self

from sqlalchemy import Connection

from casebound.clock import Clock, SystemClock
from casebound.contracts.capture import Binding, Capture, CatalogInput, EnrichmentInput, EntityCapture, QueryLimits
from casebound.errors import ResearchError, SettingsError
from casebound.research import sqlite_file
from casebound.research.columns import read_columns
from casebound.research.database import Database
from casebound.research.flags import derive_flags
from casebound.research.fold import check_term, prefilter_pattern
from casebound.research.freeze import check_table, fit_catalog, fit_rule
from casebound.research.matching import LimitMet, Matching, Scan, rows_of_entity
from casebound.research.query import ColumnKind, Query, entity_query, look_up_query, rendered
from casebound.research.remembered import Remembered
from casebound.research.scope import entity_scope, look_up_scope
from casebound.specs import Catalog, EnrichmentRule

_BEGIN_ATTEMPTS = 3


class SqlSource:
    """A `CatalogSource` over SQLite, MariaDB, MySQL or PostgreSQL. Made by `open`."""

    def __init__(self, database: Database, snapshot_id: str, tables: Sequence[str], limits: QueryLimits) -> None:
        self._database = database
        self._snapshot_id = snapshot_id
        self._tables = tuple(tables)
        self._limits = limits
        self._columns: dict[str, dict[str, ColumnKind]] = {}
        self._digest: tuple[sqlite_file.Signature, str] | None = None
        self._digests = sqlite_file.Digests()
        self._digesting = Lock()
        self._remembered = Remembered()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        snapshot_id: str,
        tables: Sequence[str],
        statement_timeout_s: int = 10,
        scan_rows: int = 1_000_000,
        max_bytes: int = 67_108_864,
        clock: Clock | None = None,
    ) -> Self:
        """Return a source; nothing is connected before the first question. See `catalog.open_source`."""
        limits = QueryLimits(
            max_candidates=0, scan_rows=scan_rows, max_bytes=max_bytes, statement_timeout_s=statement_timeout_s
        )
        database = Database(url, tables, statement_timeout_s, clock or SystemClock())
        return cls(database, snapshot_id, tables, limits)

    @property
    def is_file(self) -> bool:
        """Whether the database is an SQLite file."""
        return self._database.path is not None

    def binding(self) -> Binding:
        """Return which state of which database answers now."""
        if (known := self._known_binding()) is not None:
            return known
        with self._reading() as (_, binding):
            return binding

    def _known_binding(self) -> Binding | None:
        """Return which state answers now, where that takes no question to the database."""
        path, known = self._database.path, self._digest
        if path is None:
            return self._bind(None)
        if known is not None and known[0] == self._signature(path):
            return self._bind(known[1])
        return None

    def freeze_catalog(self, catalog: Catalog) -> CatalogInput:
        """Return the catalog with the columns that its table really has, in their real spelling."""
        check_table(catalog.name, catalog.table, self._tables)
        return fit_catalog(catalog, tuple(self._columns_of(catalog.table)))

    def freeze_rule(self, rule: EnrichmentRule) -> EnrichmentInput:
        """Return the rule with the columns that its table really has, in their real spelling."""
        check_table(rule.name, rule.table, self._tables)
        return fit_rule(rule, tuple(self._columns_of(rule.table)))

    def missing_tables(self) -> list[str]:
        """Return which tables of the allowlist do not exist, or may not be read."""
        missing = []
        for table in self._tables:
            try:
                self._columns_of(table)
            except SettingsError as exc:
                if exc.code != "SETTINGS_TABLE":
                    raise
                missing.append(table)
        return missing

    def look_up_all(self, searches: Sequence[tuple[CatalogInput, str]], max_candidates: int) -> list[Capture]:
        """Run every literal look-up in one consistent read transaction; one capture a search, in order."""
        for catalog, term in searches:
            check_table(catalog.name, catalog.table, self._tables)
            check_term(term)
        kinds = [self._kind_of(catalog.table, catalog.name_column) for catalog, _ in searches]
        if not searches:
            return []
        now = self._known_binding()
        known = {} if now is None else self._remembered.of(now, searches, max_candidates)
        if known.keys() == set(searches):
            return [known[search] for search in searches]
        with self._reading() as (connection, binding):
            done = known if binding == now else {}
            for search, kind in zip(searches, kinds, strict=True):
                if search not in done:
                    done[search] = self._look_up(connection, binding, search, kind, max_candidates)
        self._remembered.keep(binding, done, max_candidates)
        return [done[search] for search in searches]

    def entity_rows_all(self, pairs: Sequence[tuple[EnrichmentInput, str]], limit: int) -> list[EntityCapture]:
        """Fetch the rows of every typed id in one consistent read transaction; one capture a pair, in order."""
        for rule, entity_id in pairs:
            check_table(rule.name, rule.table, self._tables)
            check_term(entity_id)
        kinds = [self._kind_of(rule.table, rule.column) for rule, _ in pairs]
        if not pairs:
            return []
        with self._reading() as (connection, binding):
            return [
                self._entity_rows(connection, binding, pair, kind, limit)
                for pair, kind in zip(pairs, kinds, strict=True)
            ]

    def close(self) -> None:
        """Let go of every connection. A second call does nothing."""
        self._database.close()
        self._digests.close()

    def _look_up(
        self,
        connection: Connection,
        binding: Binding,
        search: tuple[CatalogInput, str],
        kind: ColumnKind,
        max_candidates: int,
    ) -> Capture:
        catalog, term = search
        pattern = prefilter_pattern(term, ideographs=self._database.has_unicode(connection))
        query = look_up_query(catalog, pattern, kind, self._limits.scan_rows + 1, self._database.dialect)
        matching = Matching(catalog, term)
        with self._scanning(connection, query, catalog.table) as scan:
            rows = matching.best(scan, max_candidates)
        statement, parameters = rendered(query, self._database.engine.dialect)
        limit_met: LimitMet = scan.limit_met or ("max_candidates" if matching.count > max_candidates else None)
        return Capture(
            catalog=catalog,
            term=term,
            statement=statement,
            parameters=parameters,
            binding=binding,
            limits=self._limits.model_copy(update={"max_candidates": max_candidates}),
            columns=catalog.columns,
            rows=rows,
            matched=matching.count,
            truncated=limit_met is not None,
            limit_met=limit_met,
            scope=look_up_scope(catalog.name, self._snapshot_id, term, bool(rows), scan.limit_met),
            flags=derive_flags(("/term", term), rows),
        )

    def _entity_rows(
        self,
        connection: Connection,
        binding: Binding,
        pair: tuple[EnrichmentInput, str],
        kind: ColumnKind,
        limit: int,
    ) -> EntityCapture:
        rule, entity_id = pair
        query = entity_query(rule, entity_id, kind, self._limits.scan_rows + 1)
        with self._scanning(connection, query, rule.table) as scan:
            # One row more than is kept tells whether there were more.
            rows = rows_of_entity(rule, entity_id, scan, limit + 1)
        statement, parameters = rendered(query, self._database.engine.dialect)
        return EntityCapture(
            rule=rule,
            entity_id=entity_id,
            statement=statement,
            parameters=parameters,
            binding=binding,
            limits=self._limits.model_copy(update={"max_candidates": limit}),
            columns=rule.columns,
            rows=rows[:limit],
            truncated=len(rows) > limit or scan.limit_met is not None,
            scope=entity_scope(rule, self._snapshot_id, entity_id, bool(rows), scan.limit_met),
            flags=derive_flags(("/entity_id", entity_id), rows[:limit]),
        )

    @contextmanager
    def _scanning(self, connection: Connection, query: Query, table: str) -> Iterator[Scan]:
        with closing(self._database.rows(connection, query, table)) as rows:
            yield Scan(rows, scan_rows=self._limits.scan_rows, max_bytes=self._limits.max_bytes)

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, Binding]]:
        """Begin a read transaction, and bind it to exactly the state that it sees."""
        path = self._database.path
        if path is None:
            with self._database.transaction() as connection:
                yield connection, self._bind(None)
            return
        for _ in range(_BEGIN_ATTEMPTS):
            before = self._signature(path)
            with self._database.transaction() as connection:
                digest = self._digest_at(path, before)
                if self._signature(path) == before:
                    yield connection, self._bind(digest)
                    return
        raise ResearchError(
            "RESEARCH_UNAVAILABLE", where=self._database.place(), found="the file is being written all the time"
        )

    def _signature(self, path: Path) -> sqlite_file.Signature:
        with self._database.asking():
            return sqlite_file.signature_of(path)

    def _digest_at(self, path: Path, signature: sqlite_file.Signature) -> str:
        with self._digesting:  # threads that ask at once would all read the whole file
            if self._digest is None or self._digest[0] != signature:
                with self._database.asking():
                    self._digest = (signature, self._digests.digest_of_file(path))
            return self._digest[1]

    def _bind(self, file_digest: str | None) -> Binding:
        return Binding(
            dialect=self._database.dialect,
            database=self._database.name,
            snapshot_id=self._snapshot_id,
            file_digest=file_digest,
        )

    def _kind_of(self, table: str, column: str) -> ColumnKind:
        return self._columns_of(table).get(column, "other")

    def _columns_of(self, table: str) -> dict[str, ColumnKind]:
        if table not in self._columns:
            with self._database.transaction() as connection, self._database.asking(table):
                columns = read_columns(connection, self._database.dialect, table)
            if not columns:
                raise SettingsError(
                    "SETTINGS_TABLE",
                    where=self._database.place(table),
                    found=f"the database has no table {table}, or none that this account may read",
                    hint="correct its name, or let the account read it",
                )
            self._columns[table] = columns
        return self._columns[table]
