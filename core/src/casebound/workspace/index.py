"""The index of a workspace: a row a case, so that nobody has to read ten thousand folders to know what to do next.

Rules:
- The packages are the truth, and a row follows from them (`casebound.workspace.row`). A lost index loses no case.
- Whoever works on a case leases it, and nobody but its owner changes the row then. A lease is free again when its time
  is past, when it is further ahead than any lease lasts (the clock was set back), and when its owner is certainly dead.
- A case whose lease was lost may have moved on without its row: it is claimed whatever its row says.
- Every call is one transaction. Calls block: an event loop makes them in threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from itertools import islice
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from casebound.clock import Clock, format_time
from casebound.errors import SettingsError
from casebound.settings import Settings, index_url
from casebound.store import Workspace
from casebound.workspace.connection import Database
from casebound.workspace.lease import is_dead
from casebound.workspace.opening import prepare
from casebound.workspace.place import index_file, is_used
from casebound.workspace.row import DERIVED, CaseRow
from casebound.workspace.schema import CASES
from casebound.workspace.selection import Selection

BATCH = 500
_C = CASES.c
_COLUMNS = tuple(each.name for each in fields(CaseRow))
_ROW = [CASES.c[name] for name in _COLUMNS]
_FREED = {"lease_owner": None, "lease_until": None}
_SUMMED = ("calls", "unknown_calls", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Counts:
    """The index in numbers.

    Attributes:
        states: how many cases stand in each state that occurs.
        finished: cases with which nothing is left to do.
        leased: cases that somebody works on now.
        calls, unknown_calls: of all cases together, as in `CaseRow`.
        input_tokens, output_tokens: the same; None where some case does not know.
    """

    states: Mapping[str, int]
    finished: int
    leased: int
    calls: int
    unknown_calls: int
    input_tokens: int | None
    output_tokens: int | None


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
        self._insert: Any = sqlite.insert if database.path is not None else postgresql.insert

    @classmethod
    def open(cls, workspace: Workspace, settings: Settings, clock: Clock) -> Self:
        """Open the index of a workspace, and make it where there is none.

        Raises:
            UnavailableError: `INDEX_UNAVAILABLE`.
            IntegrityError: `INDEX_BROKEN`, `INDEX_VERSION`, `INDEX_FOREIGN`.
            SettingsError: the URL cannot be used, its driver is not installed.
        """
        url = index_url(settings)
        try:
            database = Database(index_file(workspace) if url is None else url.reveal())
        except SettingsError as exc:
            raise exc.placed(str(settings.path), settings.workspace.key) from None
        prepare(database, None if url is None else str(workspace.root))
        return cls(database, clock, settings.workspace.lease_s)

    @classmethod
    def open_if_used(cls, workspace: Workspace, settings: Settings, clock: Clock) -> Self | None:
        """Open the index where the workspace has one; None where nobody has made any. Raises as `open`."""
        return cls.open(workspace, settings, clock) if is_used(workspace, settings) else None

    # --- rows -------------------------------------------------------------------------------------------------------

    def upsert(self, rows: Iterable[CaseRow]) -> None:
        """Add the rows that the index does not know, and replace those that nobody has changed since they were read.

        What a row was read as says its `changes`; with 0, as it is derived, it is only added, or put in the place of
        one that shows nothing yet (`new`).
        """
        insert = self._insert(CASES)
        wanted = insert.excluded
        same = _C.changes == wanted.changes - 1
        blank = sa.and_(_C.state == "new", _C.lease_owner.is_(None))
        insert = insert.on_conflict_do_update(
            index_elements=[_C.package_id],
            set_={name: wanted[name] for name in _COLUMNS if name != "changes"} | {"changes": _C.changes + 1},
            where=sa.or_(same, blank),
        )
        for batch in _batches(rows):
            with self.database.writing() as connection:
                connection.execute(insert, [asdict(replace(row, changes=row.changes + 1)) for row in batch])

    def get(self, package_id: str) -> CaseRow | None:
        """Return the row of a package, None where there is none."""
        with self.database.reading() as connection:
            found = connection.execute(sa.select(*_ROW).where(_C.package_id == package_id)).one_or_none()
        return None if found is None else CaseRow(*found)

    def rows(self, *, state: str | None = None, after: str = "", limit: int = BATCH) -> list[CaseRow]:
        """Return rows in the order of package ids, those behind `after`, at most `limit`."""
        wanted = sa.select(*_ROW).where(_C.package_id > after).order_by(_C.package_id).limit(limit)
        if state is not None:
            wanted = wanted.where(_C.state == state)
        with self.database.reading() as connection:
            return [CaseRow(*row) for row in connection.execute(wanted)]

    # --- leases -----------------------------------------------------------------------------------------------------

    def claim(self, owner: str, *, run: str, limit: int, selection: Selection) -> list[str]:
        """Lease cases that may go on now, first those whose lease was lost, then in the order of admission.

        Args:
            owner: who gets them, see `lease.new_owner`.
            run: a case that this run had already is not claimed again, but for a retry whose time has come.
            limit: most cases.
            selection: which cases, and how far they are to go.

        Returns:
            The packages; each is to be looked at as its files are, whatever its row said.
        """
        with self.database.writing() as connection:
            free = self._free(connection)
            found = self._pick(connection, [free, _C.lease_owner.is_not(None), *asked_for(selection)], limit)
            if len(found) < limit:
                due = [_C.lease_owner.is_(None), *asked_for(selection), *self._due(run, selection)]
                found += self._pick(connection, due, limit - len(found))
            if found:
                lease = {"lease_owner": owner, "lease_until": self._until(), "changes": _C.changes + 1}
                connection.execute(sa.update(CASES).where(_C.package_id.in_(found)).values(lease))
        return found

    def hold(self, owner: str, row: CaseRow) -> bool:
        """Lease one case whatever its state, and add its row where there is none; False where it is leased already."""
        lease = {"lease_owner": owner, "lease_until": self._until(), "changes": _C.changes + 1}
        with self.database.writing() as connection:
            free = sa.or_(_C.lease_owner.is_(None), self._free(connection))
            values = asdict(replace(row, lease_owner=owner, lease_until=self._until(), changes=1))
            insert = (
                self._insert(CASES)
                .values(values)
                .on_conflict_do_update(index_elements=[_C.package_id], set_=lease, where=free)
            )
            return connection.execute(insert).rowcount == 1

    def renew(self, owner: str) -> None:
        """Make every lease of `owner` last from now on."""
        mine = sa.select(_C.package_id).where(_C.lease_owner == owner).order_by(_C.package_id).with_for_update()
        with self.database.writing() as connection:
            connection.execute(
                sa.update(CASES)
                .where(_C.package_id.in_(mine))
                .values(lease_until=self._until(), changes=_C.changes + 1)
            )

    def release(self, owner: str, row: CaseRow, *, run: str | None = None, stopped: str | None = None) -> None:
        """Write a row, and free its lease, as `release_all` does for many."""
        self.release_all(owner, [(row, stopped)], run=run)

    def release_all(self, owner: str, rows: Iterable[tuple[CaseRow, str | None]], *, run: str | None = None) -> None:
        """Write rows and free their leases, all or none.

        A case that somebody else leases meanwhile is left to him.

        Args:
            owner: who leases them.
            rows: as derived from the files at the end, each with the code with which the run left it as it was.
            run: the run that had them; None: no run.
        """
        ordered = sorted(rows, key=lambda pair: pair[0].package_id)
        wanted = self._insert(CASES)
        values = {name: wanted.excluded[name] for name in (*DERIVED, "last_run", "stopped")}
        insert = wanted.on_conflict_do_update(
            index_elements=[_C.package_id],
            set_={**values, **_FREED, "changes": _C.changes + 1},
            where=sa.or_(_C.lease_owner.is_(None), _C.lease_owner == owner),
        )
        if ordered:
            written = [asdict(replace(row, last_run=run, stopped=code, changes=1)) for row, code in ordered]
            with self.database.writing() as connection:
                connection.execute(insert, written)

    def drop(self, owner: str) -> None:
        """Free every lease of `owner`; the rows stay as they are, for cases that nothing was done for."""
        mine = sa.select(_C.package_id).where(_C.lease_owner == owner).order_by(_C.package_id).with_for_update()
        with self.database.writing() as connection:
            freed = sa.update(CASES).where(_C.package_id.in_(mine)).values(**_FREED, changes=_C.changes + 1)
            connection.execute(freed)

    def held(self, owner: str) -> list[str]:
        """Return the packages that `owner` leases."""
        with self.database.reading() as connection:
            return list(connection.scalars(sa.select(_C.package_id).where(_C.lease_owner == owner)))

    # --- sums -------------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return how many cases stand where, and what all of them have cost."""
        with self.database.reading() as connection:
            leased = sa.and_(_C.lease_owner.is_not(None), sa.not_(self._free(connection)))
            per_state = sa.select(_C.state, sa.func.count()).group_by(_C.state).order_by(_C.state)
            states = {state: number for state, number in connection.execute(per_state)}
            sums = sa.select(
                *(sa.func.count(sa.case((condition, 1))) for condition in (_C.finished, leased)),
                *(sa.cast(sa.func.coalesce(sa.func.sum(_C[name]), 0), sa.BigInteger) for name in _SUMMED),
                *(sa.func.count() - sa.func.count(_C[name]) for name in ("input_tokens", "output_tokens")),
            )
            finished, leases, calls, unknown, tokens_in, tokens_out, no_in, no_out = connection.execute(sums).one()
        return Counts(
            states=states,
            finished=finished,
            leased=leases,
            calls=calls,
            unknown_calls=unknown,
            input_tokens=None if no_in else tokens_in,
            output_tokens=None if no_out else tokens_out,
        )

    def next_due(self, run: str, selection: Selection) -> str | None:
        """Return when the next case comes due that this run may claim later, None where none will."""
        fresh = sa.or_(_C.last_run.is_(None), _C.last_run != run, _C.stopped.is_(None))
        waiting = [_C.state == "retry_pending", _C.finished.is_(sa.false()), fresh, *asked_for(selection)]
        if not selection.retries:
            return None
        with self.database.reading() as connection:
            return connection.scalar(sa.select(sa.func.min(_C.retry_at)).where(*waiting))

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def _pick(self, connection: Connection, conditions: Sequence[Any], limit: int) -> list[str]:
        wanted = sa.select(_C.package_id).where(*conditions).order_by(_C.position).limit(limit)
        return list(connection.scalars(wanted.with_for_update(skip_locked=True)))

    def _due(self, run: str, selection: Selection) -> list[Any]:
        due = sa.and_(_C.state == "retry_pending", _C.retry_at <= self._now())
        fresh = sa.or_(_C.last_run.is_(None), _C.last_run != run)
        ways = [sa.and_(_C.state.in_(selection.states), fresh)]
        if selection.retries:
            ways.append(sa.and_(due, sa.or_(fresh, _C.stopped.is_(None))))
        return [_C.finished.is_(sa.false()), sa.or_(*ways)]

    def _free(self, connection: Connection) -> Any:
        """Return the condition that a lease is free although somebody's name stands on it."""
        leased = sa.select(_C.lease_owner).where(_C.lease_owner.is_not(None)).distinct()
        dead = [owner for owner in connection.scalars(leased) if is_dead(owner)]
        return sa.or_(_C.lease_until <= self._now(), _C.lease_until > self._until(), _C.lease_owner.in_(dead))

    def _now(self) -> str:
        return format_time(self._clock.now())

    def _until(self) -> str:
        return format_time(self._clock.now() + timedelta(seconds=self._lease_s))


def asked_for(selection: Selection) -> list[Any]:
    """Return the conditions that a case is one of those selected."""
    named = [
        column.in_(ids)
        for column, ids in ((_C.case_id, selection.case_ids), (_C.package_id, selection.package_ids))
        if ids
    ]
    return [sa.or_(*named)] if named else []


def _batches(rows: Iterable[CaseRow]) -> Iterator[list[CaseRow]]:
    """Yield rows in groups, each in the order in which every transaction locks them."""
    rest = iter(rows)
    while batch := sorted(islice(rest, BATCH), key=lambda row: row.package_id):
        yield batch
