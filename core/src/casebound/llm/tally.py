"""What the calls of a run come to, as they end: how many were sent, how many are in flight, what they took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from casebound.contracts.model_call import Usage
from casebound.errors import ProviderError
from casebound.llm.permit import Permit


@dataclass(slots=True)
class Tally:
    """Counts of calls.

    Attributes:
        sent: calls that began.
        in_flight: of those, the ones that have not ended.
        input_tokens, output_tokens: of all replies that were read, as reported; None once one call did not report.
    """

    sent: int = 0
    in_flight: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0

    @contextmanager
    def counted(self, permit: Permit) -> Iterator[Permit]:
        """Count one call, which begins now and has ended at the end of the block, or when it says so."""
        call = _Call(self, permit)
        self.sent += 1
        self.in_flight += 1
        try:
            yield call
        finally:
            call.land()
            self.input_tokens = _sum(self.input_tokens, call.usage.input_tokens)
            self.output_tokens = _sum(self.output_tokens, call.usage.output_tokens)


class _Call:
    """A permit that tells the tally what it tells the one behind it."""

    def __init__(self, tally: Tally, permit: Permit) -> None:
        self.usage = Usage()
        self._tally = tally
        self._permit = permit
        self._flies = True

    def land(self) -> None:
        if self._flies:
            self._flies = False
            self._tally.in_flight -= 1

    def over(self) -> None:
        self.land()
        self._permit.over()

    def failed(self, error: ProviderError) -> None:
        self._permit.failed(error)

    def used(self, usage: Usage) -> None:
        self.usage = usage
        self._permit.used(usage)


def _sum(total: int | None, count: int | None) -> int | None:
    return None if total is None or count is None or count < 0 else total + count
