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
from dataclasses import dataclass, fields
from datetime import timedelta
from itertools import islice
from typing import Any, Self, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from casebound.clock import Clock, format_time
from casebound.settings import Settings
from casebound.store import Workspace
from casebound.workspace.connection import Database
from casebound.workspace.lease import is_dead
from casebound.workspace.opening import open_database
from casebound.workspace.place import is_used
from casebound.workspace.row import DERIVED, CaseRow
from casebound.workspace.schema import CASES, META
from casebound.workspace.selection import Selection

Condition: TypeAlias = sa.ColumnElement[bool]

BATCH = 500
_C = CASES.c
_COLUMNS = tuple(each.name for each in fields(CaseRow))
_ROW = [CASES.c[name] for name in _COLUMNS]
_CHANGED = {"changes": CASES.c.changes + 1}
_FREED = {"lease_owner": None, "lease_until": None, **_CHANGED}
_SUMMED = ("calls", "unknown_calls", "input_tokens", "output_tokens", "unreported_calls")


@dataclass(frozen=True, slots=True)
class Counts:
    """The index in numbers.

    Attributes:
        states: how many cases stand in each state that occurs.
        finished: cases with which nothing is left to do.
        leased: cases that somebody works on now.
        calls and what follows: of all cases together, as in `CaseRow`.
    """

    states: Mapping[str, int]
    finished: int
    leased: int
    calls: int
    unknown_calls: int
    input_tokens: int
    output_tokens: int
    unreported_calls: int


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
        insert = self.database.insert(CASES)
        wanted = insert.excluded
        same = _C.changes == wanted.changes - 1
        blank = sa.and_(_C.state == "new", _C.lease_owner.is_(None))
        insert = insert.on_conflict_do_update(
            index_elements=[_C.package_id],
            set_={name: wanted[name] for name in _COLUMNS if name != "changes"} | _CHANGED,
            where=sa.or_(same, blank),
        )
        for batch in _batches(rows):
            with self.database.writing() as connection:
                connection.execute(insert, [_values(row, changes=row.changes + 1) for row in batch])

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

    def idle(self, *, states: Sequence[str] | None = None, after: str = "") -> list[CaseRow]:
        """Return rows of cases that nobody works on, in pages as `rows` does.

        Args:
            states: only rows in one of them, and those whose lease was lost; None: all.
            after: the package id behind which the page begins.
        """
        with self.database.reading() as connection:
            lost = sa.and_(_C.lease_owner.is_not(None), self._free(connection))
            asked = sa.true() if states is None else _C.state.in_(states)
            free = sa.and_(_C.lease_owner.is_(None), asked)
            wanted = sa.select(*_ROW).where(_C.package_id > after, sa.or_(free, lost))
            return [CaseRow(*row) for row in connection.execute(wanted.order_by(_C.package_id).limit(BATCH))]

    def remove(self, rows: Iterable[CaseRow]) -> None:
        """Remove rows that nobody has changed since they were read."""
        gone = sa.delete(CASES).where(_C.package_id == sa.bindparam("id"), _C.changes == sa.bindparam("seen"))
        for batch in _batches(rows):
            with self.database.writing() as connection:
                connection.execute(gone, [{"id": row.package_id, "seen": row.changes} for row in batch])

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
            owner: who gets them, see `lease.new_owner`.
            run: a case that this run had already is not claimed again, but for a retry whose time has come.
            limit: most cases.
            selection: which cases, and how far they are to go.

        Returns:
            The packages; each is to be looked at as its files are, whatever its row said.
        """
        with self.database.writing() as connection:
            lost = [] if selection.resumes else [self._free(connection), _C.lease_owner.is_not(None)]
            found = self._pick(connection, [*lost, *asked_for(selection)], limit) if lost else []
            if len(found) < limit:
                due = [_C.lease_owner.is_(None), *asked_for(selection), *self._due(run, selection)]
                found += self._pick(connection, due, limit - len(found))
            if found:
                mine = {**self._lease(owner), "last_run": run}
                connection.execute(sa.update(CASES).where(_C.package_id.in_(found)).values(mine))
        return found

    def hold(self, owner: str, row: CaseRow) -> bool:
        """Lease one case whatever its state, and add its row where there is none; False where it is leased already."""
        values = _values(row, lease_owner=owner, lease_until=self._until(), changes=1)
        mine = {**self._lease(owner), "last_run": None, "stopped": None}
        with self.database.writing() as connection:
            free = sa.or_(_C.lease_owner.is_(None), self._free(connection))
            insert = self.database.insert(CASES).values(values).returning(_C.package_id)
            held = insert.on_conflict_do_update(index_elements=[_C.package_id], set_=mine, where=free)
            return connection.execute(held).first() is not None

    def renew(self, owner: str) -> None:
        """Make every lease of `owner` last from now on."""
        self._change_all(owner, self._lease(owner))

    def drop(self, owner: str) -> None:
        """Free every lease of `owner`; the rows stay as they are, for cases for which nothing was done."""
        self._change_all(owner, _FREED)

    def release(self, owner: str, row: CaseRow, *, stopped: str | None = None) -> None:
        """Write a row, and free its lease, as `release_all` does for many."""
        self.release_all(owner, [(row, stopped)])

    def release_all(self, owner: str, rows: Iterable[tuple[CaseRow, str | None]]) -> None:
        """Write rows and free their leases, all or none. A case that somebody else leases meanwhile is left to him.

        Args:
            owner: who leases them.
            rows: as derived from the files at the end, each with the code with which the run left it as it was.
        """
        done = [
            _values(row, stopped=code, changes=1) for row, code in sorted(rows, key=lambda pair: pair[0].package_id)
        ]
        insert = self.database.insert(CASES)
        values = {name: insert.excluded[name] for name in (*DERIVED, "stopped")}
        released = insert.on_conflict_do_update(
            index_elements=[_C.package_id],
            set_={**values, **_FREED},
            where=sa.or_(_C.lease_owner.is_(None), _C.lease_owner == owner),
        )
        if done:
            with self.database.writing() as connection:
                connection.execute(released, done)

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
            numbers = {
                "finished": sa.func.count(sa.case((_C.finished, 1))),
                "leased": sa.func.count(sa.case((leased, 1))),
                **{name: _sum(_C[name]) for name in _SUMMED},
            }
            sums = connection.execute(sa.select(*[number.label(name) for name, number in numbers.items()])).one()
        return Counts(states=states, **sums._mapping)

    def next_due(self, run: str, selection: Selection) -> str | None:
        """Return when the next case comes due that this run may claim later, None where none will."""
        fresh = sa.or_(_C.last_run.is_(None), _C.last_run != run, _C.stopped.is_(None))
        waiting = [_C.state == "retry_pending", _C.finished.is_(sa.false()), fresh, *asked_for(selection)]
        if not selection.retries:
            return None
        with self.database.reading() as connection:
            earliest: str | None = connection.scalar(sa.select(sa.func.min(_C.retry_at)).where(*waiting))
        return earliest

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def _pick(self, connection: Connection, conditions: Sequence[Condition], limit: int) -> list[str]:
        wanted = sa.select(_C.package_id).where(*conditions).order_by(_C.position).limit(limit)
        return list(connection.scalars(wanted.with_for_update(skip_locked=True)))

    def _due(self, run: str, selection: Selection) -> list[Condition]:
        due = sa.and_(_C.state == "retry_pending", _C.retry_at <= self._now())
        fresh = sa.or_(_C.last_run.is_(None), _C.last_run != run)
        if selection.resumes:
            return [_C.state.in_(selection.states), _C.retry_at <= self._now(), fresh]
        ways = [sa.and_(_C.state.in_(selection.states), fresh)]
        if selection.retries:
            ways.append(sa.and_(due, sa.or_(fresh, _C.stopped.is_(None))))
        return [_C.finished.is_(sa.false()), sa.or_(*ways)]

    def _free(self, connection: Connection) -> Condition:
        """Return the condition that a lease is free although somebody's name stands on it."""
        leased = sa.select(_C.lease_owner).where(_C.lease_owner.is_not(None)).distinct()
        dead = [owner for owner in connection.scalars(leased) if is_dead(owner)]
        return sa.or_(_C.lease_until <= self._now(), _C.lease_until > self._until(), _C.lease_owner.in_(dead))

    def _change_all(self, owner: str, values: Mapping[str, object]) -> None:
        mine = sa.select(_C.package_id).where(_C.lease_owner == owner).order_by(_C.package_id).with_for_update()
        with self.database.writing() as connection:
            connection.execute(sa.update(CASES).where(_C.package_id.in_(mine)).values(values))

    def _lease(self, owner: str) -> dict[str, object]:
        return {"lease_owner": owner, "lease_until": self._until(), **_CHANGED}

    def _now(self) -> str:
        return format_time(self._clock.now())

    def _until(self) -> str:
        return format_time(self._clock.now() + timedelta(seconds=self._lease_s))


def asked_for(selection: Selection) -> list[Condition]:
    """Return the conditions that a case is one of those selected."""
    named = [
        column.in_(ids)
        for column, ids in ((_C.case_id, selection.case_ids), (_C.package_id, selection.package_ids))
        if ids
    ]
    return [sa.or_(*named)] if named else []


def _values(row: CaseRow, **others: object) -> dict[str, object]:
    return {name: getattr(row, name) for name in _COLUMNS} | others


def _sum(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), sa.BigInteger)


def _batches(rows: Iterable[CaseRow]) -> Iterator[list[CaseRow]]:
    """Yield rows in groups, each in the order in which every transaction locks them."""
    rest = iter(rows)
    while batch := sorted(islice(rest, BATCH), key=lambda row: row.package_id):
        yield batch
