"""What the index says about one run, when it ends: where its cases are, and what is left to do of those selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from casebound.workspace.index import Index, asked_for
from casebound.workspace.schema import CASES
from casebound.workspace.selection import Selection

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
    prepares = selection.stop_after in ("admission", "construction")
    waits = sa.and_(_C.state.in_(() if prepares else _WAITING), _C.finished.is_(sa.false()))
    not_had = sa.or_(_C.last_run.is_(None), _C.last_run != run, _C.stopped.is_not(None))
    undone = sa.and_(_C.state.in_(selection.states), _C.finished.is_(sa.false()), not_had)
    states = sa.select(_C.state, sa.func.count()).where(*asked).group_by(_C.state)
    had = sa.select(sa.func.count()).where(*asked, _C.last_run == run)
    left = sa.select(sa.func.count()).where(*asked, sa.or_(waits, undone, _C.state == "broken"))
    first = sa.select(sa.func.min(_C.retry_at)).where(*asked, waits)
    with index.database.reading() as connection:
        return Account(
            dict(connection.execute(states).tuples().all()),
            connection.scalar(had) or 0,
            connection.scalar(left) or 0,
            connection.scalar(first),
        )
