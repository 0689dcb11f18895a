"""Leave for one call: a turn of its provider's limiter and a reservation of the run's purse, told the same things."""

from __future__ import annotations

from collections.abc import Callable

from casebound.budget import Reservation
from casebound.contracts.model_call import Usage
from casebound.errors import REFUSALS, ProviderError
from casebound.llm.limits import Turn

# What a server says when it wants everybody to wait, and not only whoever asked.
WISHES = ("LLM_RATE_LIMITED", "LLM_UNAVAILABLE")


class Leave:
    """A `casebound.llm.permit.Permit` whose end its giver tells; `hear` is called with what its provider fails with."""

    __slots__ = ("_hear", "_reservation", "_turn")

    def __init__(self, turn: Turn, reservation: Reservation, hear: Callable[[ProviderError], None]) -> None:
        self._hear = hear
        self._turn = turn
        self._reservation = reservation

    async def depart(self) -> None:
        """Wait for a place among the calls in flight."""
        await self._turn.depart()

    def over(self) -> None:
        """The call has ended: another may be in flight."""
        self._turn.over()

    def failed(self, error: ProviderError) -> None:
        """Hold every call of the model whose server asks to wait; a call that it refused took no token."""
        if error.code in WISHES and error.retry_after is not None and error.retry_after > 0:
            self._turn.pause(error.retry_after)
        if error.code in REFUSALS:
            self._reservation.refused()
        self._hear(error)

    def used(self, usage: Usage) -> None:
        """Count what was reported; where less than both figures was, the worst case stays for the other."""
        self._reservation.used(usage)
        if usage.input_tokens is not None and usage.output_tokens is not None:
            self._turn.used(max(0, usage.input_tokens) + max(0, usage.output_tokens))

    def end(self) -> None:
        """Nothing more will be told."""
        self._turn.end()
        self._reservation.end()
