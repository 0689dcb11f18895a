"""What an index asks its database. Each statement is built once: to build one costs more than to run it.

Parameters: `by` (an owner), `now` and `until` (when a lease ends that begins now), `dead` (owners that are), `run`.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeAlias

import sqlalchemy as sa

from casebound.workspace.connection import Insert
from casebound.workspace.row import DERIVED, CaseRow
from casebound.workspace.schema import CASES
from casebound.workspace.selection import Selection

Condition: TypeAlias = sa.ColumnElement[bool]

_C = CASES.c
_BY, _NOW, _UNTIL, _RUN = (sa.bindparam(name, type_=_C.lease_owner.type) for name in ("by", "now", "until", "run"))
_CHANGED = {"changes": _C.changes + 1}
_LEASE = {"lease_owner": _BY, "lease_until": _UNTIL, **_CHANGED}
_FREED = {"lease_owner": None, "lease_until": None, **_CHANGED}

COLUMNS = tuple(each.name for each in fields(CaseRow))
ROW = [_C[name] for name in COLUMNS]

OWNERS = sa.select(_C.lease_owner).where(_C.lease_owner.is_not(None)).distinct()
UNLEASED: Condition = _C.lease_owner.is_(None)
# A lease that is free although somebody's name stands on it: past, further ahead than any lasts, or of a dead process.
LOST: Condition = sa.and_(
    _C.lease_owner.is_not(None),
    sa.or_(_C.lease_until <= _NOW, _C.lease_until > _UNTIL, _C.lease_owner.in_(sa.bindparam("dead", expanding=True))),
)

TAKE = (
    sa.update(CASES).where(_C.package_id.in_(sa.bindparam("ids", expanding=True))).values({**_LEASE, "last_run": _RUN})
)
HELD = sa.select(_C.package_id).where(_C.lease_owner == _BY)
_MINE = _C.package_id.in_(HELD.order_by(_C.package_id).with_for_update())
RENEW = sa.update(CASES).where(_MINE).values(_LEASE)
DROP = sa.update(CASES).where(_MINE).values(_FREED)
REMOVE = sa.delete(CASES).where(_C.package_id == sa.bindparam("id"), _C.changes == sa.bindparam("seen"))


@lru_cache
def lost(selection: Selection) -> sa.Select[Any]:
    """Return the question for cases whose lease somebody else has lost, whatever their rows show."""
    # `+ 0`: found by who leases them, and then sorted, for they are few; not searched for in the order of admission.
    return _first(_C.position + 0, LOST, _C.lease_owner != _BY, *asked_for(selection))


@lru_cache
def due(selection: Selection) -> sa.Select[Any]:
    """Return the question for cases that may go on now and that nobody leases."""
    return _first(_C.position, UNLEASED, *asked_for(selection), *_left_to(selection))


@lru_cache
def next_due(selection: Selection) -> sa.Select[Any]:
    """Return the question for the time at which the next case comes due that only waits for it."""
    waits = [_C.state == "retry_pending", _C.finished.is_(sa.false()), sa.or_(_fresh(), _C.stopped.is_(None))]
    return sa.select(sa.func.min(_C.retry_at)).where(*waits, *asked_for(selection))


def asked_for(selection: Selection) -> list[Condition]:
    """Return the conditions that a case is one of those selected."""
    named = [
        column.in_(ids)
        for column, ids in ((_C.case_id, selection.case_ids), (_C.package_id, selection.package_ids))
        if ids
    ]
    return [sa.or_(*named)] if named else []


@lru_cache
def upsert(insert: Insert) -> sa.Insert:
    """Return what adds a row, or replaces one that is as it was read, or one that shows nothing yet."""
    wanted = insert(CASES)
    same = _C.changes == wanted.excluded.changes - 1
    blank = sa.and_(_C.state == "new", UNLEASED)
    values = {name: wanted.excluded[name] for name in COLUMNS if name != "changes"}
    return _on_conflict(wanted, {**values, **_CHANGED}, sa.or_(same, blank))


@lru_cache
def hold(insert: Insert) -> sa.Insert:
    """Return what leases one case whatever its state, and tells its id if it did."""
    taken = {**_LEASE, "last_run": None, "stopped": None}
    return _on_conflict(insert(CASES), taken, sa.or_(UNLEASED, LOST)).returning(_C.package_id)


@lru_cache
def release(insert: Insert) -> sa.Insert:
    """Return what writes a row and frees its lease, unless it is somebody else's."""
    wanted = insert(CASES)
    values = {name: wanted.excluded[name] for name in (*DERIVED, "stopped")}
    return _on_conflict(wanted, {**values, **_FREED}, sa.or_(UNLEASED, _C.lease_owner == _BY))


def _on_conflict(insert: Any, values: dict[str, Any], where: Condition) -> sa.Insert:  # noqa: ANN401  # of two databases
    found: sa.Insert = insert.on_conflict_do_update(index_elements=[_C.package_id], set_=values, where=where)
    return found


def _first(order: sa.ColumnElement[Any], *conditions: Condition) -> sa.Select[Any]:
    ordered = sa.select(_C.package_id).where(*conditions).order_by(order)
    return ordered.limit(sa.bindparam("most")).with_for_update(skip_locked=True)


def _left_to(selection: Selection) -> list[Condition]:
    come = _C.retry_at <= _NOW
    if selection.resumes:
        return [_C.state.in_(selection.states), come, _fresh()]
    ways = [sa.and_(_C.state.in_(selection.states), _fresh())]
    if selection.retries:
        ways.append(sa.and_(_C.state == "retry_pending", come, sa.or_(_fresh(), _C.stopped.is_(None))))
    return [_C.finished.is_(sa.false()), sa.or_(*ways)]


def _fresh() -> Condition:
    return sa.or_(_C.last_run.is_(None), _C.last_run != _RUN)
