"""The events of one conversation: why it waits, since when, until when, and that it was resumed. Append only."""

from __future__ import annotations

from collections.abc import Iterable

from casebound.contracts.interpretation import Event
from casebound.store.layout import ConversationPaths
from casebound.store.package import Package

# Whatever a case waits for, a server or a database, it goes on no sooner than this.
SAFETY_DELAY_S = 60


class EventLog:
    """Reads and appends the events of one interpretation, or of whatever else a model is asked about."""

    def __init__(self, package: Package, revision: ConversationPaths) -> None:
        self._package = package
        self._revision = revision

    def numbers(self) -> list[int]:
        """Return the numbers of all events, in order."""
        names = self._package.names(self._revision.events)
        return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal())

    def all(self) -> list[Event]:
        """Return every event, oldest first. Raises `IntegrityError`."""
        return [self._package.load(self._revision.event(number), Event) for number in self.numbers()]

    def last(self) -> Event | None:
        """Return the newest event, None where there is none."""
        numbers = self.numbers()
        return self._package.load(self._revision.event(numbers[-1]), Event) if numbers else None

    def next_number(self) -> int:
        """Return the number that the next event gets."""
        return max(self.numbers(), default=0) + 1

    def append(self, event: Event) -> None:
        """Add an event. The caller holds the package."""
        self._package.create_artifact(self._revision.event(self.next_number()), event)

    def resumptions(self, stage: str) -> frozenset[int]:
        """Return the number of attempts that `stage` had each time when it was resumed. Raises `IntegrityError`."""
        return resumptions(self.all(), stage)

    def covers(self, stage: str, attempt: int) -> bool:
        """Tell whether a wait for the failure of this very attempt is recorded already."""
        return any(
            event.stage == stage and event.attempts == attempt and event.kind != "resumed" for event in self.all()
        )


def resumptions(events: Iterable[Event], stage: str) -> frozenset[int]:
    """Return after which attempts of `stage` somebody resumed it."""
    return frozenset(event.attempts for event in events if event.kind == "resumed" and event.stage == stage)
