"""Letting blocked cases go on: because somebody asked for it, not before their time, and not where anything refuses.

A case in review is never resumed: time mends nothing there, and a person asks anew.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from casebound.clock import format_time
from casebound.contracts.interpretation import Event
from casebound.errors import SettingsError
from casebound.pipeline import Pipeline
from casebound.progress import Progress, derive_progress, latest_revision
from casebound.store.events import EventLog
from casebound.store.package import Package
from casebound.store.preview import Preview, WouldWrite


def check_resumable(package: Package, now: datetime) -> Progress:
    """Return where a case stands that may go on now, as far as its state and its time are concerned.

    Raises:
        SettingsError: `RETRY_LATER` with the time; `RESUME_REFUSED` for a case in review.
    """
    progress = derive_progress(package)
    if progress.state == "review":
        raise SettingsError(
            "RESUME_REFUSED",
            path=str(package.root),
            found=f"state review, {progress.code}",
            hint=f"read the rejected replies below attempts/, then `casebound revise {package.root.name}`",
        )
    if progress.retry_at is not None and now < progress.retry_at:
        raise SettingsError(
            "RETRY_LATER",
            path=str(package.root),
            found=f"state {progress.state}, {progress.code}, now {format_time(now)}",
            expected=f"{format_time(progress.retry_at)} or later",
        )
    return progress


async def resume(pipeline: Pipeline, package: Package, stop_after: str | None = None) -> Progress:
    """End the wait of a case, take it further, and return where it then stands.

    Where settings, plugins, budget or replies refuse it, nothing is written: it stays blocked.

    Raises:
        CaseboundError: as `check_resumable` and `Pipeline.advance`.
    """
    now = pipeline.engine.clock.now()
    progress = check_resumable(package, now)
    if progress.state == "blocked" and progress.event is not None:
        resumed = _resumption(progress.event, now)
        await _try_out(pipeline, package, resumed, stop_after)
        EventLog(package, latest_revision(package)).append(resumed)
    return await pipeline.advance(package, stop_after)


@dataclass(frozen=True, slots=True)
class Resumption:
    """Takes the place of a pipeline where cases go on only because they are resumed."""

    pipeline: Pipeline

    async def advance(self, package: Package, stop_after: str | None = None) -> Progress:
        """Take a case further as `resume` does."""
        return await resume(self.pipeline, package, stop_after)


def _resumption(event: Event, now: datetime) -> Event:
    """Return the event that ends the wait of `event`."""
    return Event(
        kind="resumed",
        code=event.code,
        at=format_time(now),
        retry_at=None,
        detail="resumed by the operator",
        stage=event.stage,
        attempts=event.attempts,
    )


async def _try_out(pipeline: Pipeline, package: Package, resumed: Event, stop_after: str | None) -> None:
    """Go the way of a case that `resumed` lets go on, up to the first thing that would be written or sent.

    Raises:
        CaseboundError: whatever refuses on that way.
    """
    revision = latest_revision(package)
    path = revision.event(EventLog(package, revision).next_number())
    with suppress(WouldWrite):
        await pipeline.advance(Preview(package.root, {path: resumed.to_bytes()}), stop_after)
