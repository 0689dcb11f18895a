"""How a workspace stands: what is done, what waits for whom, what it has cost, and who is at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from casebound.clock import Clock, format_time
from casebound.errors import SettingsError, UnavailableError
from casebound.settings import Settings
from casebound.store import Workspace
from casebound.workspace import totals
from casebound.workspace.index import Index
from casebound.workspace.lease import is_dead, process_of
from casebound.workspace.reindex import reconcile
from casebound.workspace.totals import Group, Sums, Waiting

MOST_LISTED = 50
RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that has leased cases.

    Attributes:
        host, process: where it runs, and its number there.
        cases: how many.
        until: when its leases end unless it renews them.
        lives: False where it has certainly ended, or has let its leases run out: the next run takes its cases.
    """

    host: str
    process: str
    cases: int
    until: str
    lives: bool


@dataclass(frozen=True, slots=True)
class Status:
    """A workspace at one moment; `to_json` is what `status --format json` prints.

    Attributes:
        at: that moment.
        states: how many cases are in each state.
        spent: what all cases have cost.
        recent: the same of those whose last call was decided in the hour before; `calls` and tokens are all of theirs.
        reasons: the cases that wait, or are broken, by state and code.
        blocked, review: the first of them.
        stops: how many cases the last run left as they were, by code; `stopped` are the first of them.
        workers: who has leased cases.
        unknown_cases: packages that the index does not know, because it could not be brought up to date.
        error: why not, None where it is.
    """

    at: str
    states: dict[str, int]
    spent: Sums
    recent: Sums
    reasons: Sequence[Group]
    blocked: Sequence[Waiting]
    review: Sequence[Waiting]
    stops: dict[str, int]
    stopped: Sequence[Waiting]
    workers: Sequence[Worker]
    unknown_cases: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the documented keys."""
        spent, recent = self.spent, self.recent
        return {
            "at": self.at,
            "states": dict(self.states),
            "cases": spent.cases,
            "finished": spent.finished,
            "calls": spent.calls,
            "unknown_calls": spent.unknown_calls,
            "tokens": {
                "input": spent.input_tokens,
                "output": spent.output_tokens,
                "unreported_calls": spent.unreported_calls,
            },
            "rate": {
                "seconds": int(RECENT.total_seconds()),
                "cases": recent.cases,
                "finished": recent.finished,
                "calls": recent.calls,
            },
            "waiting": [asdict(group) for group in self.reasons],
            "blocked": [_told(case) for case in self.blocked],
            "blocked_total": self.states.get("blocked", 0),
            "review": [_told(case) for case in self.review],
            "review_total": self.states.get("review", 0),
            "stopped": [_told(case) for case in self.stopped],
            "stopped_total": sum(self.stops.values()),
            "leased": [asdict(worker) for worker in self.workers],
            "index": {"unknown_cases": self.unknown_cases, "error": self.error},
        }


def take_status(workspace: Workspace, settings: Settings, clock: Clock, phases: Sequence[str]) -> Status:
    """Return how a workspace stands, after its index was brought up to date, where that can be.

    Args:
        workspace: which may be one that nobody can write, as long as it has an index.
        settings: that may name the index.
        clock: as of `read_status`.
        phases: the names of what plugins put behind the interpretation.

    Raises:
        SettingsError: there is no workspace (`USAGE`).
        UnavailableError: `INDEX_UNAVAILABLE`.
    """
    if not workspace.cases.is_dir():
        expected = "the folder of a workspace; `casebound import` makes one"
        raise SettingsError(
            "USAGE", pointer="--workspace", path=str(workspace.root), found="no cases", expected=expected
        )
    index = Index.open(workspace, settings, clock)
    try:
        try:
            reconcile(index, workspace, phases)
        except UnavailableError as exc:
            status = read_status(index, clock, settings.workspace.lease_s)
            unknown = max(0, len(workspace.package_ids()) - status.spent.cases)
            return replace(status, unknown_cases=unknown, error=str(exc))
        return read_status(index, clock, settings.workspace.lease_s)
    finally:
        index.close()


def read_status(index: Index, clock: Clock, lease_s: int) -> Status:
    """Return how the workspace of an index stands, all of it at one moment.

    Args:
        index: whose rows are up to date as far as anybody knows.
        clock: that says what is due, and what was lately.
        lease_s: how long a lease lasts, in seconds.

    Raises:
        UnavailableError: `INDEX_UNAVAILABLE`.
    """
    moment = clock.now()
    now, longest = format_time(moment), format_time(moment + timedelta(seconds=lease_s))
    with index.database.reading() as connection:
        stops = totals.group_stops(connection)
        return Status(
            at=now,
            states=totals.count_states(connection),
            spent=totals.sum_cases(connection),
            recent=totals.sum_cases(connection, since=format_time(moment - RECENT), until=now),
            reasons=totals.group_reasons(connection, now),
            blocked=totals.list_waiting(connection, "blocked", MOST_LISTED),
            review=totals.list_waiting(connection, "review", MOST_LISTED),
            stops=stops,
            stopped=totals.list_stopped(connection, MOST_LISTED) if stops else (),
            workers=[
                Worker(
                    *process_of(leased.owner),
                    cases=leased.cases,
                    until=leased.until,
                    lives=now < leased.until <= longest and not is_dead(leased.owner),
                )
                for leased in totals.group_leases(connection)
            ],
        )


def _told(case: Waiting) -> dict[str, str | None]:
    return {"package": case.package_id, "case_id": case.case_id, "code": case.code, "retry_at": case.retry_at}
