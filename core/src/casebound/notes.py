"""What the operator is told beside the result of a case that does not move: nothing is asked, and here is why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from casebound.binding import Bound
from casebound.contracts.capture import Facts
from casebound.contracts.case import Build
from casebound.contracts.interpretation import InterpretationInput
from casebound.contracts.plan import ResolutionInput
from casebound.differences import differences_of
from casebound.progress import derive_progress, latest_revision
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.package import Package


def notes_on_finished(package: Package, bound: Bound, *, replays: bool) -> Iterator[str]:
    """Yield what a finished case does not show: that nothing was replayed, and settings at hand that are others.

    Args:
        package: of the case, finished or not.
        bound: the settings at hand.
        replays: whether recorded replies were to answer.
    """
    revision, name = latest_revision(package), package.root.name
    frozen = package.load_if(revision.input, InterpretationInput) if package.exists(revision.seal) else None
    if frozen is None:
        return
    if replays:
        yield f"{name} was finished before: nothing was replayed; name an empty --workspace"
    resolution = package.load_if(revision.resolution_input, ResolutionInput)
    build, facts = package.load_if(layout.BUILD, Build), package.load_if(layout.FACTS, Facts)
    differences = differences_of(bound, frozen, resolution, build, facts)
    if found := (*differences.interpretation, *differences.case):
        command = "resolve --package-id ID REPORT" if differences.case else f"revise {name}"
        yield (
            f"{name} was finished under other settings, and is not asked anew: {'; '.join(found)};"
            f" `casebound {command}` asks anew"
        )


def notes_on_waiting(package: Package, now: datetime) -> Iterator[str]:
    """Yield that a case which waits is not tried: since when, until when, and what makes it go on."""
    progress = derive_progress(package)
    event = progress.event
    early = progress.retry_at is not None and now < progress.retry_at
    if event is None or not (progress.state in ("blocked", "review") or early):
        return
    name = package.root.name
    until = f", until {event.retry_at} at least" if early else ""
    advice = {
        "blocked": f"{'then ' if early else ''}`casebound resume {name}` goes on",
        "review": f"`casebound revise {name}` asks anew",
        "retry_pending": "repeat the command then",
    }[progress.state]
    yield f"{name}: nothing was tried: it waits ({progress.state}, {progress.code}) since {event.at}{until}; {advice}"


def note_on_given_up(package: Package, revision: Revision) -> str:
    """Return that a case begins anew under the same settings, though `revision` would have gone on by itself."""
    name = package.root.name
    return (
        f"{name}: {revision.folder} waited for a retry, and stays as it is; the same is asked anew, and paid for again;"
        f" `casebound run --package-id {name}` goes on with one that waits"
    )
