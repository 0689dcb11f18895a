"""Sums over an index, made by its database, so that what they cost here does not grow with the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from casebound.workspace.schema import CASES

_C = CASES.c


@dataclass(frozen=True, slots=True)
class Sums:
    """What cases come to.

    Attributes:
        cases, finished: how many there are, and how many of them are done.
        calls: made for them, all their interpretations together.
        input_tokens, output_tokens: what was reported, and no more.
        unreported_calls: how many calls did not report both.
        unknown_calls: how many calls were sent and got no reply that reached the disk.
    """

    cases: int
    finished: int
    calls: int
    input_tokens: int
    output_tokens: int
    unreported_calls: int
    unknown_calls: int


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are in one state for one reason.

    Attributes:
        due: how many of them waited for a time that has come.
        earliest: the earliest `retry_at` of those that may not, None where there is none.
    """

    state: str
    code: str | None
    cases: int
    due: int
    earliest: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A case that does not go on by itself, or that a run left as it was."""

    package_id: str
    case_id: str | None
    state: str
    code: str | None
    retry_at: str | None


@dataclass(frozen=True, slots=True)
class Leased:
    """What somebody has leased: how many cases, and until when the first of the leases lasts."""

    owner: str
    cases: int
    until: str


def count_states(connection: Connection) -> dict[str, int]:
    """Return how many cases are in each state, in the order of their names."""
    found = connection.execute(sa.select(_C.state, sa.func.count()).group_by(_C.state).order_by(_C.state))
    return {state: count for state, count in found}


def sum_cases(connection: Connection, *, since: str | None = None, until: str | None = None) -> Sums:
    """Return what all cases have cost, or those whose last call was decided from `since` to `until`, both included."""
    numbers = ("calls", "input_tokens", "output_tokens", "unreported_calls", "unknown_calls")
    finished = sa.case((_C.finished, 1), else_=0)
    sums = [_sum(finished), *(_sum(_C[name]) for name in numbers)]
    query = sa.select(sa.func.count(), *sums)
    if since is not None and until is not None:
        query = query.where(_C.last_call_at >= since, _C.last_call_at <= until)
    return Sums(*map(int, connection.execute(query).one()))


def group_reasons(connection: Connection, now: str) -> list[Group]:
    """Return the cases that have a code, by state and code."""
    due = _C.retry_at <= now
    query = (
        sa.select(
            _C.state,
            _C.code,
            sa.func.count(),
            _sum(sa.case((due, 1), else_=0)),
            sa.func.min(sa.case((_C.retry_at > now, _C.retry_at))),
        )
        .where(_C.code.is_not(None))
        .group_by(_C.state, _C.code)
        .order_by(_C.state, _C.code)
    )
    return [
        Group(state, code, cases, int(ready), first) for state, code, cases, ready, first in connection.execute(query)
    ]


def group_stops(connection: Connection) -> dict[str, int]:
    """Return how many cases the last run left as they were, by the code that it gave."""
    query = (
        sa.select(_C.stopped, sa.func.count()).where(_C.stopped.is_not(None)).group_by(_C.stopped).order_by(_C.stopped)
    )
    return {code: count for code, count in connection.execute(query)}


def list_waiting(connection: Connection, state: str, limit: int) -> list[Waiting]:
    """Return the first cases of a state that waits: those whose time comes first, then as they were admitted."""
    return list(_waiting(connection, _C.state == state, _C.code, limit))


def list_stopped(connection: Connection, limit: int) -> list[Waiting]:
    """Return the first cases that the last run left as they were, with the code that it gave."""
    return list(_waiting(connection, _C.stopped.is_not(None), _C.stopped, limit))


def _waiting(
    connection: Connection, which: sa.ColumnElement[bool], code: sa.Column[Any], limit: int
) -> Iterator[Waiting]:
    query = (
        sa.select(_C.package_id, _C.case_id, _C.state, code, _C.retry_at)
        .where(which)
        .order_by(sa.func.coalesce(_C.retry_at, ""), _C.position)
        .limit(limit)
    )
    return (Waiting(*row) for row in connection.execute(query))


def group_leases(connection: Connection) -> list[Leased]:
    """Return who has leased cases, by name."""
    query = (
        sa.select(_C.lease_owner, sa.func.count(), sa.func.min(_C.lease_until))
        .where(_C.lease_owner.is_not(None))
        .group_by(_C.lease_owner)
        .order_by(_C.lease_owner)
    )
    return [Leased(*row) for row in connection.execute(query)]


def _sum(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(column), 0)
