"""What calls that may still be made can take at most: of each one by its policy, of all by every cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

Amount = TypeVar("Amount", int, Decimal)
_MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Caps:
    """Most calls, tokens and money; None where nothing caps them."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Most:
    """What some calls take at most; money is None where somebody who may be asked has no price."""

    calls: int = 0
    tokens: int = 0
    money: Decimal | None = Decimal(0)

    def __add__(self, other: Most) -> Most:
        money = None if self.money is None or other.money is None else self.money + other.money
        return Most(self.calls + other.calls, self.tokens + other.tokens, money)

    def within(self, caps: Caps) -> Most:
        """Return the least of this and the caps."""
        money = None if self.money is None else least(self.money, caps.money)
        return Most(least(self.calls, caps.calls), least(self.tokens, caps.tokens), money)


class Possible:
    """Calls that may be made, by what each one takes: memory grows with how different they are, not how many."""

    def __init__(self) -> None:
        self._tokens: Counter[int] = Counter()
        self._money: Counter[Decimal] = Counter()
        self._priced = True

    def add(self, tokens: int, price: Decimal | None) -> None:
        """Add a call with so many tokens, of this price for a million; None: nobody gave one."""
        self._tokens[tokens] += 1
        if price is None:
            self._priced = False
        else:
            self._money[price * tokens / _MILLION] += 1

    def update(self, other: Possible, most: int) -> None:
        """Add the `most` largest calls of another one."""
        self._tokens.update(dict(_largest(other._tokens, most)))
        self._money.update(dict(_largest(other._money, most)))
        self._priced = self._priced and other._priced

    def most(self, calls: int | None) -> Most:
        """Return what so many of the calls take at most, all of them for None."""
        number = least(self._tokens.total(), calls)
        tokens = sum(one * times for one, times in _largest(self._tokens, number))
        money = sum((one * times for one, times in _largest(self._money, number)), Decimal(0))
        return Most(number, tokens, money if self._priced else None)


def least(amount: Amount, cap: Amount | None) -> Amount:
    """Return the smaller one of what is needed and what is allowed, which nothing may limit."""
    return amount if cap is None else min(amount, cap)


def _largest(amounts: Counter[Amount], most: int) -> Iterator[tuple[Amount, int]]:
    for amount in sorted(amounts, reverse=True):
        if most <= 0:
            return
        yield amount, min(most, amounts[amount])
        most -= amounts[amount]
