"""The index of a workspace: a row a case, so that nobody has to read ten thousand folders to know what to do next.

Rules:
- The packages are the truth, and a row follows from them (`casebound.workspace.row`). A lost index loses no case.
- Whoever works on a case leases it, and nobody but its owner changes the row then. A lease is free again when its time
  is past, when it is further ahead than any lease lasts (the clock was set back), and when its owner is certainly dead.
- A case whose lease was lost may have moved on without its row: it is claimed whatever its row says.
- Every call is one transaction. Calls block: an event loop makes them in threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Self

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from casebound.clock import Clock, format_time
from casebound.settings import Settings
from casebound.store import Workspace
from casebound.workspace import statements, totals
from casebound.workspace.connection import Database
from casebound.workspace.lease import is_dead
from casebound.workspace.opening import open_database
from casebound.workspace.row import CaseRow
from casebound.workspace.schema import CASES, META
from casebound.workspace.selection import Selection
from casebound.workspace.statements import COLUMNS, LOST, ROW, UNLEASED

BATCH = 500
_C = CASES.c


class Index:
    """The rows of a workspace; threads may share one.

    Args:
        database: that holds the tables.
        clock: that says which leases are over.
        lease_s: how long a lease lasts that nobody renews, in seconds.
    """

    def __init__(self, database: Database, clock: Clock, lease_s: int) -> None:
        self.database = database
        self._clock = clock
        self._lease_s = lease_s

    @classmethod
    def open(cls, workspace: Workspace, settings: Settings, clock: Clock) -> Self:
        """Open the index of a workspace, and make it where there is none.

        Raises:
            UnavailableError: `INDEX_UNAVAILABLE`.
            IntegrityError: `INDEX_BROKEN`, `INDEX_VERSION`, `INDEX_FOREIGN`.
            SettingsError: the URL cannot be used, its driver is not installed.
        """
        return cls(open_database(workspace, settings), clock, settings.workspace.lease_s)

    # --- rows -------------------------------------------------------------------------------------------------------

    def upsert(self, rows: Iterable[CaseRow]) -> None:
        """Add the rows that the index does not know, and replace those that nobody has changed since they were read.

        What a row was read as says its `changes`; with 0, as it is derived, it is only added, or put in the place of
        one that shows nothing yet (`new`).
        """
        for batch in _batches(rows):
            values = [_values(row, changes=row.changes + 1) for row in batch]
            with self.database.writing() as connection:
                connection.execute(statements.upsert(self.database.insert), values)

    def get(self, package_id: str) -> CaseRow | None:
        """Return the row of a package, None where there is none."""
        with self.database.reading() as connection:
            found = connection.execute(sa.select(*ROW).where(_C.package_id == package_id)).one_or_none()
        return None if found is None else CaseRow(*found)

    def rows(self, *, state: str | None = None, after: str = "", limit: int = BATCH) -> list[CaseRow]:
        """Return rows in the order of package ids, those behind `after`, at most `limit`."""
        wanted = sa.select(*ROW).where(_C.package_id > after).order_by(_C.package_id).limit(limit)
        if state is not None:
            wanted = wanted.where(_C.state == state)
        with self.database.reading() as connection:
            return [CaseRow(*row) for row in connection.execute(wanted)]

    def idle(self, *, states: Sequence[str] | None = None, after: str = "") -> list[CaseRow]:
        """Return rows of cases that nobody works on, in pages as `rows` does.

        Args:
            states: only rows in one of them, and those whose lease was lost; None: all.
            after: the package id behind which the page begins.
        """
        asked = sa.true() if states is None else _C.state.in_(states)
        idle = sa.or_(sa.and_(UNLEASED, asked), LOST)
        wanted = sa.select(*ROW).where(_C.package_id > after, idle).order_by(_C.package_id).limit(BATCH)
        with self.database.reading() as connection:
            return [CaseRow(*row) for row in connection.execute(wanted, self._lost_by(connection))]

    def remove(self, rows: Iterable[CaseRow]) -> None:
        """Remove rows that nobody has changed since they were read."""
        for batch in _batches(rows):
            with self.database.writing() as connection:
                connection.execute(statements.REMOVE, [{"id": row.package_id, "seen": row.changes} for row in batch])

    def phases(self) -> tuple[str, ...]:
        """Return the phases of plugins that `finished` took into account when the rows were last gone through."""
        with self.database.reading() as connection:
            found = connection.scalar(sa.select(META.c.value).where(META.c.key == "phases"))
        return tuple((found or "").split())

    def note_phases(self, phases: Iterable[str]) -> None:
        """Keep what `phases` returns."""
        insert = self.database.insert(META).values(key="phases", value=" ".join(phases))
        with self.database.writing() as connection:
            connection.execute(
                insert.on_conflict_do_update(index_elements=[META.c.key], set_={"value": insert.excluded.value})
            )

    # --- leases -----------------------------------------------------------------------------------------------------

    def claim(self, owner: str, *, run: str, limit: int, selection: Selection) -> list[str]:
        """Lease cases that may go on now, first those whose lease was lost, then in the order of admission.

        Args:
            owner: who gets them, see `lease.new_owner`; what this owner leases already is not claimed again.
            run: a case that this run had already is not claimed again, but for a retry whose time has come.
            limit: most cases.
            selection: which cases, and how far they are to go.

        Returns:
            The packages; each is to be looked at as its files are, whatever its row said.
        """
        with self.database.writing() as connection:
            facts = {**self._lost_by(connection), "by": owner, "run": run}
            found: list[str] = []
            for question in (statements.due,) if selection.resumes else (statements.lost, statements.due):
                if len(found) < limit:
                    found += connection.scalars(question(selection), {**facts, "most": limit - len(found)})
            if found:
                connection.execute(statements.TAKE, {**facts, "ids": found})
        return found

    def hold(self, owner: str, row: CaseRow) -> bool:
        """Lease one case whatever its state, and add its row where there is none; False where it is leased already."""
        added = _values(row, lease_owner=owner, lease_until=self._until(), changes=1)
        with self.database.writing() as connection:
            facts = {**added, **self._lost_by(connection), "by": owner}
            return connection.execute(statements.hold(self.database.insert), facts).first() is not None

    def renew(self, owner: str) -> None:
        """Make every lease of `owner` last from now on."""
        with self.database.writing() as connection:
            connection.execute(statements.RENEW, {"by": owner, "until": self._until()})

    def drop(self, owner: str) -> None:
        """Free every lease of `owner`; the rows stay as they are, for cases for which nothing was done."""
        with self.database.writing() as connection:
            connection.execute(statements.DROP, {"by": owner})

    def release(self, owner: str, row: CaseRow, *, stopped: str | None = None) -> None:
        """Write a row, and free its lease, as `release_all` does for many."""
        self.release_all(owner, [(row, stopped)])

    def release_all(self, owner: str, rows: Iterable[tuple[CaseRow, str | None]]) -> None:
        """Write rows and free their leases, all or none. A case that another owner leases meanwhile is left alone.

        Args:
            owner: who leases them.
            rows: as derived from the files at the end, each with the code with which the run left it as it was.
        """
        ordered = sorted(rows, key=lambda pair: pair[0].package_id)
        if ordered:
            values = [_values(row, stopped=code, changes=1, by=owner) for row, code in ordered]
            with self.database.writing() as connection:
                connection.execute(statements.release(self.database.insert), values)

    def held(self, owner: str) -> list[str]:
        """Return the packages that `owner` leases."""
        with self.database.reading() as connection:
            return list(connection.scalars(statements.HELD, {"by": owner}))

    # --- all of them ------------------------------------------------------------------------------------------------

    def states(self) -> dict[str, int]:
        """Return how many cases are in each state that occurs, in the order of their names."""
        with self.database.reading() as connection:
            return totals.count_states(connection)

    def next_due(self, run: str, selection: Selection) -> str | None:
        """Return when the next case comes due that this run may claim later, None where none will."""
        if not selection.retries:
            return None
        with self.database.reading() as connection:
            earliest: str | None = connection.scalar(statements.next_due(selection), {"run": run})
        return earliest

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def _lost_by(self, connection: Connection) -> dict[str, object]:
        """Return what the condition `LOST` goes by now."""
        dead = [owner for owner in connection.scalars(statements.OWNERS) if is_dead(owner)]
        return {"now": format_time(self._clock.now()), "until": self._until(), "dead": dead}

    def _until(self) -> str:
        return format_time(self._clock.now() + timedelta(seconds=self._lease_s))


def _values(row: CaseRow, **others: object) -> dict[str, object]:
    return {name: getattr(row, name) for name in COLUMNS} | others


def _batches(rows: Iterable[CaseRow]) -> Iterator[list[CaseRow]]:
    """Yield rows in groups, each in the order in which every transaction locks them."""
    rest = iter(rows)
    while batch := sorted(islice(rest, BATCH), key=lambda row: row.package_id):
        yield batch
