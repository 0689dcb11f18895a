"""What model calls take: at most, before they are made, and as reported, after. What a case has spent, from its files.

The declared worst case of a call: as many tokens as its system text, its user message and its schema have UTF-8 bytes,
and `FRAME_TOKENS` for what a server puts around them; as many tokens of output as the request allows. It counts where
nobody reported better: a call that was sent and never answered, a reply without usage. A server that refuses a request
(`REFUSALS`) has run no model for it: that is a call, without a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from casebound.contracts.model_call import ModelRequest, Outcome, Usage
from casebound.errors import REFUSALS
from casebound.llm.attempts import OUTCOME, REPLY, REQUEST, AttemptLog
from casebound.progress import begun_revisions
from casebound.specs import CORE_STAGES
from casebound.store.layout import ConversationPaths
from casebound.store.package import Package

FRAME_TOKENS = 64

# The conversations of a package: where the attempts of each lie, and its stage.
Conversations: TypeAlias = Callable[[Package], Iterable[tuple[ConversationPaths, str]]]


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens of input and output, and money: of one call, or of many; money is 0 where nobody counts it."""

    calls: int = 0
    tokens: int = 0
    money: Decimal = Decimal(0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


Cost: TypeAlias = Callable[[ModelRequest, int, int], Decimal]
NOTHING = Usage(input_tokens=0, output_tokens=0)


def worst_input(request: ModelRequest) -> int:
    """Return how many tokens of input a call may take at most."""
    return request.readable_bytes + FRAME_TOKENS


def worst_tokens(request: ModelRequest) -> int:
    """Return how many tokens a call may take at most."""
    return worst_input(request) + request.max_output_tokens


def spent_by(request: ModelRequest, usage: Usage, cost: Cost) -> Spent:
    """Return what a call has taken; what `usage` leaves open, or cannot be, is at its worst. Raises as `cost`."""
    input_ = _reported(usage.input_tokens)
    output = _reported(usage.output_tokens)
    input_ = worst_input(request) if input_ is None else input_
    output = request.max_output_tokens if output is None else output
    return Spent(1, input_ + output, cost(request, input_, output))


def _reported(tokens: int | None) -> int | None:
    return None if tokens is None or tokens < 0 else tokens


def conversations_of_case(package: Package) -> Iterator[tuple[ConversationPaths, str]]:
    """Yield every stage of every interpretation of a case."""
    return ((revision, stage) for revision in begun_revisions(package) for stage in CORE_STAGES)


def calls_of(package: Package, conversations: Conversations) -> int:
    """Return how many calls a package holds; none of them is read."""
    return sum(len(AttemptLog(package, paths, stage).numbers()) for paths, stage in conversations(package))


def spent_on(package: Package, conversations: Conversations, cost: Cost) -> Spent:
    """Return what all calls of a package have taken. Raises `IntegrityError`, and as `cost`."""
    total = Spent()
    for paths, stage in conversations(package):
        log = AttemptLog(package, paths, stage)
        for number in log.numbers():
            request = package.load(log.path(number, REQUEST), ModelRequest)
            total += spent_by(request, _usage(package, log, number), cost)
    return total


def _usage(package: Package, log: AttemptLog, number: int) -> Usage:
    if package.exists(log.path(number, REPLY)):
        return log.reply(number).usage
    outcome = package.load_if(log.path(number, OUTCOME), Outcome)
    refused = outcome is not None and outcome.kind == "provider_error" and outcome.code in REFUSALS
    return NOTHING if refused else Usage()
