"""The purse of a run: how many calls, tokens and how much money it may take, and a case. A cap is never passed.

Rules:
- Before a call its worst case (`casebound.spending`) is set aside; once it is known what it took, the rest comes back.
- A call that would not fit waits while others in flight may give room back, and is refused when none of them is left.
- A case pays for all its interpretations: a new one does not open a new purse. What a case has spent stands in its
  files, and is read only where there is a cap on it; what the run has spent is known here only.
- One call of a case is made at a time, and by one process: hence a case has nothing set aside.

A provider that takes more than its declared worst case (it does not honour `max_output_tokens`, or adds a text of its
own) can pass a cap by that much, once: what it reports counts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from decimal import Decimal

from casebound.contracts.model_call import ModelRequest, Usage
from casebound.errors import SettingsError
from casebound.prices import Prices, money_of, money_text
from casebound.progress import begun_revisions
from casebound.settings_model import Budget
from casebound.spending import NOTHING, Conversations, Spent, calls_of, conversations_of_case, spent_by, spent_on
from casebound.store.package import Package
from casebound.words import counted


class Reservation:
    """What is set aside for one call until it is known what the call took. Told twice, the first word counts."""

    __slots__ = ("_open", "_purse", "_request", "_worst")

    def __init__(self, purse: Purse, request: ModelRequest, worst: Spent) -> None:
        self._purse = purse
        self._request = request
        self._worst = worst
        self._open = True

    def used(self, usage: Usage) -> None:
        """The call was answered, and its provider reports these tokens."""
        if self._open:
            self._purse.pay(self._request, usage)
            self._settle(self._purse.taken(self._request, usage))

    def refused(self) -> None:
        """The server refused the call: it took no token."""
        self.used(NOTHING)

    def end(self) -> None:
        """Nothing more will be told: where nothing was, the call counts at its worst."""
        if self._open:
            self._purse.pay(self._request, Usage())
            self._settle(self._worst)

    def give_back(self) -> None:
        """The call is not made."""
        self._settle(Spent())

    def _settle(self, taken: Spent) -> None:
        if self._open:
            self._open = False
            self._purse.settle(self._worst, taken)


class Purse:
    """What one run may spend.

    Args:
        budget: the caps.
        prices: asked only where money is capped.
        conversations: of a package that pays as a case does.
        payer: what such a package is called in messages.

    Attributes:
        is_priced: whether the settings give any price.
        paid: what the calls of the run cost, as reported; None once one of them did not report, or has no price.
    """

    def __init__(
        self,
        budget: Budget,
        prices: Prices,
        conversations: Conversations = conversations_of_case,
        payer: str = "case",
    ) -> None:
        self._run = _Caps(budget.run_calls, budget.run_tokens, budget.run_money)
        self._case = _Caps(budget.case_calls, budget.case_tokens, budget.case_money)
        self._prices = prices
        self._conversations = conversations
        self._payer = payer
        self.is_priced = prices.given
        self.paid: Decimal | None = Decimal(0)
        self._spent = Spent()
        self._aside = Spent()
        self._waiting: deque[asyncio.Event] = deque()

    @property
    def spent(self) -> Spent:
        """What the calls of the run that have ended took at most; tokens and money are 0 where no cap counts them."""
        return self._spent

    def require_prices(self) -> None:
        """Refuse to start under a cap on money without a price of everybody who may be asked.

        Raises:
            SettingsError: `SETTINGS_PRICE`.
        """
        if self._run.money or self._case.money:
            self._prices.require()

    def check(self, package: Package, request: ModelRequest | None = None) -> None:
        """Refuse where the call of `request` would not fit; without one, where no further call would.

        Raises:
            SettingsError: `BUDGET_REACHED`, with the cap that would be passed; `SETTINGS_PRICE`.
        """
        worst = Spent(1, 1) if request is None else self.taken(request, Usage())
        self._check_run(worst)
        self._check_case(package, worst)

    def reserve_at_once(self, package: Package, request: ModelRequest) -> Reservation | None:
        """Set the worst case of a call aside; None where that waits for calls in flight. Raises as `check`."""
        worst = self.taken(request, Usage())
        self._check_run(worst)
        self._check_case(package, worst)
        return None if self._waiting or not self._fits(worst) else self._set_aside(request, worst)

    async def reserve(self, package: Package, request: ModelRequest) -> Reservation:
        """Set the worst case of a call aside, once calls in flight have given room back. Raises as `check`.

        Who waits longest comes first. Cancelled, it leaves nothing behind.
        """
        self.check(package, request)
        worst, changed = self.taken(request, Usage()), asyncio.Event()
        self._waiting.append(changed)
        try:
            while self._waiting[0] is not changed or not self._fits(worst):
                await changed.wait()
                changed.clear()
                self._check_run(worst)
            return self._set_aside(request, worst)
        finally:
            self._waiting.remove(changed)
            self._wake_first()

    # --- what a reservation tells -----------------------------------------------------------------------------------

    def taken(self, request: ModelRequest, usage: Usage) -> Spent:
        """Return what a call took, as far as a cap counts it. Raises `SETTINGS_PRICE`."""
        if not (self._run.counts_tokens or self._case.counts_tokens):
            return Spent(1)
        return spent_by(request, usage, self._cost)

    def pay(self, request: ModelRequest, usage: Usage) -> None:
        """Add what a call cost, where anybody knows."""
        if self.is_priced and self.paid is not None:
            cost = money_of(usage, self._prices.price(request))
            self.paid = None if cost is None else self.paid + cost

    def settle(self, aside: Spent, taken: Spent) -> None:
        """Put what was set aside for a call back, and pay what it took."""
        self._aside -= aside
        self._spent += taken
        self._wake_first()

    # --- caps -------------------------------------------------------------------------------------------------------

    def _set_aside(self, request: ModelRequest, worst: Spent) -> Reservation:
        self._aside += worst
        return Reservation(self, request, worst)

    def _fits(self, worst: Spent) -> bool:
        return self._run.passed_by(self._spent + self._aside + worst) is None

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].set()

    def _cost(self, request: ModelRequest, input_tokens: int, output_tokens: int) -> Decimal:
        if not (self._run.money or self._case.money):
            return Decimal(0)
        return self._prices.cost(request, input_tokens, output_tokens)

    def _check_run(self, worst: Spent) -> None:
        """Refuse what would not fit even if every call in flight took nothing but itself."""
        least = self._spent + Spent(self._aside.calls)
        if kind := self._run.passed_by(least + worst):
            raise self._run.reached(f"run_{kind}", "in this run", least, worst)

    def _check_case(self, package: Package, worst: Spent) -> None:
        caps = self._case
        if not (caps.calls or caps.counts_tokens):
            return
        spent = (
            spent_on(package, self._conversations, self._cost)
            if caps.counts_tokens
            else Spent(calls_of(package, self._conversations))
        )
        if kind := caps.passed_by(spent + worst):
            revisions = len(begun_revisions(package))
            among = f", in {counted(revisions, 'interpretation')}" if revisions else ""
            raise caps.reached(f"case_{kind}", f"for this {self._payer}{among}", spent, worst)


@dataclass(frozen=True, slots=True)
class _Caps:
    """Most of each; 0: no limit."""

    calls: int
    tokens: int
    money: Decimal

    @property
    def counts_tokens(self) -> bool:
        return bool(self.tokens or self.money)

    def passed_by(self, spent: Spent) -> str | None:
        """Return which cap `spent` is above, None where it is above none."""
        if self.calls and spent.calls > self.calls:
            return "calls"
        if self.tokens and spent.tokens > self.tokens:
            return "tokens"
        return "money" if self.money and spent.money > self.money else None

    def reached(self, key: str, whose: str, spent: Spent, worst: Spent) -> SettingsError:
        """Return the refusal of a call that takes at most `worst`, after `spent`, under the cap at `key`."""
        if key.endswith("calls"):
            found, most = f"{counted(spent.calls, 'call')} {whose}", f"{self.calls}"
        elif key.endswith("tokens"):
            found = f"{counted(spent.tokens, 'token')} {whose}, and the next call may take {worst.tokens}"
            most = f"{self.tokens}"
        else:
            next_call = money_text(worst.money)
            found = f"{money_text(spent.money)} of money {whose}, and the next call may take {next_call}"
            most = money_text(self.money)
        return SettingsError("BUDGET_REACHED", pointer=f"budget.{key}", found=found, expected=f"at most {most}")
