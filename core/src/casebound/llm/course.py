"""The course of a stage: whose turn it is, and what follows from how the last attempt ended.

Pure, from the frozen policy and from what is on disk: a run that was killed goes on with the same answerer, and
`verify` derives every turn again. The rule:

- A stage's answerers are asked in one order: its provider, then its fallbacks. Each stage begins with the first. A
  reply that does not hold moves nothing: it is corrected by whoever gave it.
- They share `max_retries`. A failure that time may mend (`TRANSIENT`) spends one, and the same answerer is asked again
  after the retry time; so does a call of which nobody knows, under `unknown_calls = "retry"`, and is repeated at once.
- Where no retry is left, or the failure is none that a retry mends, the stage moves on at once, without waiting, if the
  code is one of `fallback_codes` and somebody is left to ask. It inherits the retries that are left, and no others.
- Otherwise the stage stops. Hence a stage meets at most `max_retries` failures and one more for each answerer.
- Each `resume` begins a new count, with the first answerer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from casebound.contracts.interpretation import Answerer, StagePolicy
from casebound.contracts.model_call import Outcome
from casebound.errors import TRANSIENT
from casebound.llm.attempts import Attempt, AttemptLog
from casebound.store.events import EventLog
from casebound.store.layout import ConversationPaths
from casebound.store.package import Package

FAILED = ("provider_error", "unknown")


@dataclass(frozen=True, slots=True)
class Turn:
    """What follows an attempt, or the beginning.

    Attributes:
        place: of the one to ask, among the answerers of the policy.
        retries: how many are left.
        follows: `ask`: at once; `wait`: after the retry time; `stop`: not before somebody resumes.
    """

    place: int
    retries: int
    follows: Literal["ask", "wait", "stop"] = "ask"


def derive_turns(policy: StagePolicy, attempts: Sequence[Attempt], resumed: Collection[int]) -> list[Turn]:
    """Return the turn of each attempt, and last the one that follows them.

    Args:
        policy: as the case froze it.
        attempts: in order; one that is not decided yet changes nothing.
        resumed: the numbers of the attempts after which somebody resumed the stage.
    """
    first = Turn(0, policy.max_retries)
    turns = [first]
    for attempt in attempts:
        turns.append(first if attempt.number in resumed else _after(policy, turns[-1], attempt.outcome))
    return turns


def _after(policy: StagePolicy, turn: Turn, outcome: Outcome | None) -> Turn:
    if outcome is None or outcome.kind not in FAILED:
        return replace(turn, follows="ask")
    unknown = outcome.kind == "unknown"
    mends = policy.unknown_calls == "retry" if unknown else outcome.code in TRANSIENT
    if mends and turn.retries:
        return Turn(turn.place, turn.retries - 1, "ask" if unknown else "wait")
    if outcome.code in policy.fallback_codes and turn.place + 1 < len(policy.answerers):
        return Turn(turn.place + 1, turn.retries)
    return replace(turn, follows="stop")


class Course:
    """The attempts of a stage so far, each with its turn, and what follows.

    Attributes:
        turns: one an attempt, and last the one that follows.
    """

    def __init__(self, policy: StagePolicy, attempts: Sequence[Attempt], resumed: Collection[int]) -> None:
        self.policy = policy
        self.attempts = tuple(attempts)
        self.turns = derive_turns(policy, attempts, resumed)
        self._since = max(resumed, default=0)

    @property
    def next(self) -> Turn:
        """What follows."""
        return self.turns[-1]

    @property
    def answerer(self) -> Answerer:
        """Who makes the next attempt."""
        return self.policy.answerers[self.next.place]

    @property
    def accepted(self) -> int | None:
        """The place of the one whose reply was accepted, None where none was."""
        for attempt, turn in zip(self.attempts, self.turns, strict=False):
            if attempt.outcome is not None and attempt.outcome.kind == "accepted":
                return turn.place
        return None

    @property
    def max_output_tokens(self) -> int:
        """The cap of the next attempt: it grows by the answerer's factor after each of its replies that was cut off."""
        cut = sum(
            turn.place == self.next.place
            and attempt.outcome is not None
            and attempt.outcome.code == "LLM_INCOMPLETE_OUTPUT"
            for attempt, turn in zip(self.attempts, self.turns, strict=False)
        )
        return int(self.answerer.max_output_tokens * Decimal(self.answerer.incomplete_cap_factor) ** cut)

    def failures(self) -> list[tuple[int, Outcome]]:
        """Return the place of each who failed since the stage was last resumed, and how, in order."""
        return [
            (turn.place, attempt.outcome)
            for attempt, turn in zip(self.attempts, self.turns, strict=False)
            if attempt.number > self._since and attempt.outcome is not None and attempt.outcome.kind in FAILED
        ]


def load_course(package: Package, revision: ConversationPaths, policy: StagePolicy) -> Course:
    """Return the course of a stage as it stands on disk. Raises `IntegrityError`."""
    attempts = AttemptLog(package, revision, policy.stage).all()
    return Course(policy, attempts, EventLog(package, revision).resumptions(policy.stage))
