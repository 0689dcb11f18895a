"""Leave to make one model call.

A stage asks for it before it freezes a request: where a run stops, or a budget is reached, no request is left behind
that nobody sent. It departs when the request is frozen, and tells how the call ended, so that limits and budgets know.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from casebound.contracts.model_call import ModelRequest, Usage
from casebound.errors import ProviderError


class Permit(Protocol):
    """Leave for one call. Telling it never raises; where nothing is told, nobody knows what the call has cost."""

    async def depart(self) -> None:
        """Wait, with everything prepared, until the call may be sent."""
        ...

    def over(self) -> None:
        """The call has ended, whatever came of it: somebody else may now be in flight."""
        ...

    def failed(self, error: ProviderError) -> None:
        """The provider failed, or its server said so."""
        ...

    def used(self, usage: Usage) -> None:
        """A reply was read, and its provider reports these tokens."""
        ...


# Asked with the request and the place of its answerer; it raises, before it is entered, where the call may not be made.
AskPermit: TypeAlias = Callable[[ModelRequest, int], AbstractAsyncContextManager[Permit]]


class Unlimited:
    """Leave that nobody counts."""

    async def depart(self) -> None:
        """Do not wait."""

    def over(self) -> None:
        """Do nothing."""

    def failed(self, error: ProviderError) -> None:
        """Do nothing."""

    def used(self, usage: Usage) -> None:
        """Do nothing."""


UNLIMITED = Unlimited()
