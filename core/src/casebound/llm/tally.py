"""What the calls of a run come to, as they end: how many were sent, how many are in flight, what they took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from casebound.contracts.model_call import Usage
from casebound.errors import REFUSALS, ProviderError
from casebound.llm.permit import Permit


@dataclass(slots=True)
class Tally:
    """Counts of calls.

    Attributes:
        prepared: calls that have leave, and are sent as soon as they may.
        sent: calls that were.
        in_flight: of those, the ones that have not ended.
        input_tokens, output_tokens: of all calls that have ended, as reported; none for one that was refused.
        unreported_calls: how many of them did not report both, so that no sum looks whole that is not.
    """

    prepared: int = 0
    sent: int = 0
    in_flight: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unreported_calls: int = 0

    @contextmanager
    def counted(self, permit: Permit) -> Iterator[Permit]:
        """Count one call, if it departs; it has ended at the end of the block, or when it says so."""
        call = _Call(self, permit)
        self.prepared += 1
        try:
            yield call
        finally:
            self.prepared -= not call.departed
            call.land()
            if call.departed and not call.refused:
                self._add(_reported(call.usage.input_tokens), _reported(call.usage.output_tokens))

    def _add(self, input_tokens: int | None, output_tokens: int | None) -> None:
        self.input_tokens += input_tokens or 0
        self.output_tokens += output_tokens or 0
        self.unreported_calls += input_tokens is None or output_tokens is None

    @property
    def begun(self) -> int:
        """How many calls have leave and have not ended: a run that is to end waits for them."""
        return self.prepared + self.in_flight


class _Call:
    """A permit that tells the tally what it tells the one behind it."""

    def __init__(self, tally: Tally, permit: Permit) -> None:
        self.usage = Usage()
        self.departed = False
        self.refused = False
        self._tally = tally
        self._permit = permit
        self._flies = False

    async def depart(self) -> None:
        await self._permit.depart()
        self.departed = self._flies = True
        self._tally.prepared -= 1
        self._tally.sent += 1
        self._tally.in_flight += 1

    def land(self) -> None:
        if self._flies:
            self._flies = False
            self._tally.in_flight -= 1

    def over(self) -> None:
        self.land()
        self._permit.over()

    def failed(self, error: ProviderError) -> None:
        self.refused = error.code in REFUSALS
        self._permit.failed(error)

    def used(self, usage: Usage) -> None:
        self.usage = usage
        self._permit.used(usage)


def _reported(tokens: int | None) -> int | None:
    return None if tokens is None or tokens < 0 else tokens
