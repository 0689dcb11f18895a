"""The state of a case, from its files alone: how far it is, what it waits for, and what comes next.

A case has one interpretation, or several: each `revise` begins a further one, and the newest one speaks for the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from casebound.clock import parse_time
from casebound.contracts.interpretation import Event
from casebound.llm.attempts import AttemptLog
from casebound.store import layout
from casebound.store.events import EventLog
from casebound.store.layout import Revision
from casebound.store.package import Package

State = Literal[
    "new",
    "admitted",
    "built",
    "researched",
    "planned",
    "looked_up",
    "assessed",
    "interpreted",
    "retry_pending",
    "blocked",
    "review",
]
WAITING = ("retry_pending", "blocked", "review")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a case stands.

    Attributes:
        state: the furthest accepted step, or what the case waits for.
        code: why it waits, None where it does not.
        retry_at: not before this time may it go on, None where no time makes a difference.
        event: the event that made it wait.
    """

    state: State
    code: str | None = None
    retry_at: datetime | None = None
    event: Event | None = None


def has_begun(package: Package, revision: Revision) -> bool:
    """Tell whether anything is frozen for an interpretation; a killed process may leave a folder without."""
    return any(package.exists(path) for path in revision.beginnings)


def begun_revisions(package: Package) -> list[Revision]:
    """Return the interpretations of a package that have begun, oldest first."""
    numbers = {int(name) for name in package.names(layout.INTERPRETATIONS) if name.isdecimal()}
    return [revision for revision in map(Revision, sorted(numbers)) if has_begun(package, revision)]


def latest_revision(package: Package) -> Revision:
    """Return the newest interpretation of a package that has begun; the first where none has."""
    return newest(begun_revisions(package))


def newest(begun: Sequence[Revision]) -> Revision:
    """Return the last of the interpretations that have begun; the first one of all where none has."""
    return begun[-1] if begun else Revision()


def derive_progress(package: Package, revision: Revision | None = None) -> Progress:
    """Return where the case stands. Raises `IntegrityError` for an event that cannot be read.

    Args:
        package: of the case.
        revision: its newest interpretation, where that is known; None: it is looked for.
    """
    revision = revision or latest_revision(package)
    reached = _reached(package, revision)
    if reached == "interpreted":
        return Progress(reached)
    event = EventLog(package, revision).last()
    if event is None or event.kind == "resumed" or _overtaken(package, revision, event):
        return Progress(reached)
    retry_at = parse_time(event.retry_at) if event.retry_at else None
    return Progress(event.kind, event.code, retry_at, event)


def is_finished(package: Package, progress: Progress, phases: Iterable[str]) -> bool:
    """Tell whether nothing is left to do for a case that has come so far, the `phases` of plugins included."""
    if progress.state != "interpreted":
        return False
    names = tuple(phases)
    if not names:
        return True
    revision = latest_revision(package)
    return all(package.exists(layout.phase_mark(name, revision)) for name in names)


def _reached(package: Package, revision: Revision) -> State:
    steps: tuple[tuple[State, str], ...] = (
        ("interpreted", revision.seal),
        ("assessed", revision.assessment),
        ("looked_up", revision.candidates),
        ("planned", revision.plan),
        ("researched", layout.FACTS),
        ("built", layout.CASE),
        ("admitted", layout.ADMISSION),
    )
    return next((state for state, path in steps if package.exists(path)), "new")


def _overtaken(package: Package, revision: Revision, event: Event) -> bool:
    """Tell whether a retry has begun since a `retry_pending` event; a block lasts until it is resumed."""
    if event.kind != "retry_pending":
        return False
    numbers = AttemptLog(package, revision, event.stage).numbers()
    return bool(numbers) and numbers[-1] > event.attempts
