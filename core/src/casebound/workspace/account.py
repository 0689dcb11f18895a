"""What the index says about one run, when it ends: where its cases are, and what is left to do of those selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from casebound.workspace.index import Index
from casebound.workspace.schema import CASES
from casebound.workspace.selection import Selection
from casebound.workspace.statements import Condition, asked_for

_C = CASES.c
_WAITING = ("blocked", "review", "retry_pending")


@dataclass(frozen=True, slots=True)
class Account:
    """A run in the index.

    Attributes:
        cases: by state, how many of the selected cases are there.
        had: how many of them the run had.
        left: how many of the selected cases are not done.
        retry_at: when the first of those that wait may go on, None where no time makes a difference.
    """

    cases: Mapping[str, int]
    had: int
    left: int
    retry_at: str | None


def take_account(index: Index, run: str, selection: Selection) -> Account:
    """Return where a run has come. Raises as the index does."""
    asked = asked_for(selection)
    waits, undone = _left(run, selection)
    states = sa.select(_C.state, sa.func.count()).where(*asked).group_by(_C.state)
    had = sa.select(sa.func.count()).where(*asked, _C.last_run == run)
    left = sa.select(sa.func.count()).where(*asked, sa.or_(waits, undone))
    first = sa.select(sa.func.min(_C.retry_at)).where(*asked, waits)
    with index.database.reading() as connection:
        return Account(
            {state: number for state, number in connection.execute(states)},
            connection.scalar(had) or 0,
            connection.scalar(left) or 0,
            connection.scalar(first),
        )


def _left(run: str, selection: Selection) -> tuple[Condition, Condition]:
    """Return which cases wait, and which others are not done."""
    others = sa.or_(_C.last_run.is_(None), _C.last_run != run)
    if selection.resumes:
        return sa.and_(_C.state.in_(selection.states), others), sa.false()  # their time has not come
    prepares = selection.stop_after in ("admission", "construction")
    waits = sa.and_(_C.state.in_(() if prepares else _WAITING), _C.finished.is_(sa.false()))
    undone = sa.and_(
        _C.state.in_(selection.states), _C.finished.is_(sa.false()), sa.or_(others, _C.stopped.is_not(None))
    )
    return waits, sa.or_(undone, _C.state == "broken")
