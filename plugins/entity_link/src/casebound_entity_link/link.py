"""A link as it stands on disk: state, suggestion and decisions, from its files alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeVar

from casebound.clock import parse_time
from casebound.contracts.base import Artifact
from casebound.contracts.interpretation import Event
from casebound.errors import CaseboundError, IntegrityError, SettingsError
from casebound.llm.attempts import Attempt, AttemptLog
from casebound.llm.course import load_course
from casebound.store.events import EventLog
from casebound.store.package import Package

from casebound_entity_link import layout
from casebound_entity_link.contracts import Decision, LinkedEntity, LinkInput, Suggestion

A = TypeVar("A", bound=Artifact)
State = Literal["proposed", "suggested", "retry_pending", "blocked", "review"]

# What no file of a link can say, and no count of them: see the benchmark for the only measurement there is.
SEMANTIC_REVIEW = "pending"


@contextmanager
def whole_paths(package: Package) -> Iterator[None]:
    """Let an error name a file of `package` by its whole path: there are many links, and each has an `input.json`."""
    try:
        yield
    except IntegrityError as exc:
        if exc.path and not exc.path.startswith(f"{package.root}/"):
            inner, exc.path = exc.path, None
            exc.placed(f"{package.root}/{inner}")
        raise


class LinkFolder(Package):
    """The folder of a link, read and written like that of a case; its errors name whole paths."""

    def require(self, path: str) -> bytes:
        """Return the bytes at `path`. Raises as `Package.require`."""
        with whole_paths(self):
            return super().require(path)

    def load(self, path: str, model: type[A]) -> A:
        """Return the artifact at `path`. Raises as `Package.load`."""
        with whole_paths(self):
            return super().load(path, model)

    def load_if(self, path: str, model: type[A]) -> A | None:
        """Return the artifact at `path`, None where there is nothing. Raises as `Package.load_if`."""
        with whole_paths(self):
            return super().load_if(path, model)


@dataclass(frozen=True)
class Link:
    """One link. `package` is its folder."""

    package: Package

    @property
    def name(self) -> str:
        """The folder's name, which is the digest of the question."""
        return self.package.root.name

    def is_begun(self) -> bool:
        """Tell whether anything stands in the folder; a process that was killed at once leaves it empty."""
        try:
            return bool(self.package.names(""))
        except SettingsError:
            return True  # no folder, or one that cannot be read: whoever reads it is told

    @cached_property
    def input(self) -> LinkInput:
        """The frozen input. Raises `IntegrityError` where it is not what the folder's name says."""
        input_ = self.package.load(layout.INPUT, LinkInput)
        if layout.folder_name(input_.question) != self.name:
            raise IntegrityError("STORE_DIGEST", path=f"{self.package.root}/{layout.INPUT}")
        return input_

    @property
    def suggestion(self) -> Suggestion | None:
        """The admitted suggestion, None while there is none."""
        return self.package.load_if(layout.SUGGESTION, Suggestion)

    @property
    def log(self) -> AttemptLog:
        """The attempts."""
        return AttemptLog(self.package, layout.PATHS, layout.STAGE)

    @property
    def events(self) -> EventLog:
        """The events."""
        return EventLog(self.package, layout.PATHS)

    def attempts(self) -> list[Attempt]:
        """Return every attempt, in order."""
        return self.log.all()

    def decisions(self) -> list[Decision]:
        """Return every decision, oldest first; the last one counts. Raises `IntegrityError`."""
        return [self.package.load(layout.decision(number), Decision) for number in self.decision_numbers()]

    def decision_numbers(self) -> list[int]:
        """Return the numbers of all decisions, in order."""
        return layout.decision_numbers(self.package.names(layout.DECISIONS))

    # --- what it waits for ------------------------------------------------------------------------------------------

    def waiting(self) -> Event | None:
        """Return the event that says what the link waits for; None where it waits for nothing."""
        event = None if self.suggestion is not None else self.events.last()
        if event is None or event.kind == "resumed":
            return None
        numbers = self.log.numbers()
        overtaken = event.kind == "retry_pending" and bool(numbers) and numbers[-1] > event.attempts
        return None if overtaken else event

    @property
    def state(self) -> State:
        """Where the link stands; `proposed` means that it can go on at once."""
        if self.suggestion is not None:
            return "suggested"
        event = self.waiting()
        return "proposed" if event is None else event.kind  # type: ignore[return-value]  # `resumed` waits for nothing

    @property
    def retry_at(self) -> datetime | None:
        """Not before this time may it go on; None where no time makes a difference."""
        event = self.waiting()
        return parse_time(event.retry_at) if event and event.retry_at else None

    # --- for programs -----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the line that `link propose`, `list` and `decide` print."""
        suggestion, decisions, event = self.suggestion, self.decisions(), self.waiting()
        return {
            "link": self.name,
            "folder": str(self.package.root),
            "state": self.state,
            "code": event.code if event else None,
            "retry_at": event.retry_at if event else None,
            "left": _side(self.input.left, self.input.context["left"]),
            "right": _side(self.input.right, self.input.context["right"]),
            "suggestion": suggestion.reply if suggestion else None,
            "decision": decisions[-1].to_json() if decisions else None,
            "decisions": len(decisions),
            "semantic_review": SEMANTIC_REVIEW,
            "answered_by": self._answered_by(),
            "calls": len(self.log.numbers()),
            "error": event.detail if event else None,
        }

    def shown(self) -> dict[str, Any]:
        """Return what `link show` prints: the line, what the model saw, every attempt and every decision."""
        return {
            **self.to_json(),
            "context": self.input.context,
            "attempts": [
                {
                    "attempt": attempt.number,
                    "outcome": attempt.outcome.kind if attempt.outcome else None,
                    "code": attempt.outcome.code if attempt.outcome else None,
                    "findings": [finding.to_json() for finding in attempt.outcome.findings] if attempt.outcome else [],
                }
                for attempt in self.attempts()
            ],
            "all_decisions": [decision.to_json() for decision in self.decisions()],
        }

    def _answered_by(self) -> dict[str, Any] | None:
        place = load_course(self.package, layout.PATHS, self.input.policy).accepted
        if place is None:
            return None
        who = self.input.policy.answerers[place]
        return {"provider": who.provider, "model": who.model, "resolver": who.resolver, "fallback": place > 0}


@dataclass(frozen=True, slots=True)
class Damaged:
    """A link that cannot be read; `error` says at which file, and why."""

    link: Link
    error: CaseboundError

    def to_json(self) -> dict[str, Any]:
        """Return its line for `link list`: the keys of every link, with None for what nobody can know."""
        return {
            "link": self.link.name,
            "folder": str(self.link.package.root),
            "state": "does_not_hold",
            "code": self.error.code,
            "retry_at": None,
            "left": None,
            "right": None,
            "suggestion": None,
            "decision": None,
            "decisions": None,
            "semantic_review": SEMANTIC_REVIEW,
            "answered_by": None,
            "calls": None,
            "error": str(self.error),
        }


def looked_at(link: Link) -> Link | Damaged:
    """Return the link, or what is wrong with it, after a look at all that a list or a count of links reads."""
    try:
        link.shown()
    except CaseboundError as exc:
        return Damaged(link, exc)
    return link


def _side(linked: LinkedEntity, shown: dict[str, Any]) -> dict[str, Any]:
    return {
        "package": linked.package_id,
        "case_id": linked.case_id,
        "entity": linked.entity,
        "type": linked.type,
        "id": linked.canonical_id,
        "name": shown["name"],
        "mentions": list(linked.mentions),
    }
