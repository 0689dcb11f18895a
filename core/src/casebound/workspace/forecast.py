"""What a run would send, and at most spend: nothing is sent, and nothing is written.

The next request of each case is derived as the run would derive it, up to where it would be sent; the database is asked
what that needs. What a later stage is asked depends on the replies before it: there only the number of calls and the
length of the answers have a bound: the least of what the case's policy, `--max-dispatches` and each cap allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from casebound.budget import Purse
from casebound.clock import Clock
from casebound.contracts.case import Admission
from casebound.contracts.interpretation import Answerer, InterpretationInput, StagePolicy
from casebound.contracts.model_call import ModelRequest
from casebound.engine import Engine
from casebound.errors import CaseboundError
from casebound.llm.course import Course, load_course
from casebound.offers import CORE_PHASES
from casebound.pipeline import Pipeline
from casebound.prices import Prices, money_text
from casebound.progress import Progress, derive_progress, is_finished, latest_revision
from casebound.spending import calls_of, conversations_of_case, spent_on, worst_input
from casebound.store import Package, Workspace, layout
from casebound.store.preview import Trial
from casebound.workspace.bounds import Caps, Most, Possible
from casebound.workspace.selection import Selection

MOST_REFUSED = 20
_SILENT = ("admission", "construction", "research")  # phases up to which nobody is asked
_LAST = CORE_PHASES[-1]


@dataclass(slots=True)
class Forecast:
    """What a run would do; sums over the cases that it would take.

    Attributes:
        cases: by state, how many it would take.
        next: how many of them next ask which stage; `none`: those that ask nobody, or wait before they do.
        calls: how many of those next requests policies and caps let a run send.
        input_tokens, output_tokens: of these, at most.
        money: what they cost at most, None where somebody who would be asked has no price.
        calls_at_most, output_tokens_at_most: of all stages to the end of the cases.
        output_money_at_most: what that output costs, None as for `money`.
        limits: caps of `[budget]` and `--max-dispatches` that hold for the run or a case, as far as there are any.
        refused: the first cases that cannot go on, or whose next call does not fit under a cap (`BUDGET_REACHED`),
            with code and error; `refused_total` counts them all.
    """

    cases: Counter[str] = field(default_factory=Counter)
    next: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money: Decimal | None = Decimal(0)
    calls_at_most: int = 0
    output_tokens_at_most: int = 0
    output_money_at_most: Decimal | None = Decimal(0)
    limits: dict[str, int | str] = field(default_factory=dict)
    refused: list[dict[str, str]] = field(default_factory=list)
    refused_total: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return what `run --dry-run --format json` prints."""
        return {
            "cases": dict(sorted(self.cases.items())),
            "next": dict(sorted(self.next.items())),
            "next_requests": {
                "calls": self.calls,
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "money": _text(self.money),
            },
            "at_most": {
                "calls": self.calls_at_most,
                "output_tokens": self.output_tokens_at_most,
                "output_money": _text(self.output_money_at_most),
            },
            "limits": self.limits,
            "refused": self.refused,
            "refused_total": self.refused_total,
        }


def _text(money: Decimal | None) -> str | None:
    return None if money is None else money_text(money)


class _Asked(Exception):
    """The next request of a case was derived."""

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request.stage)
        self.request = request


async def forecast(
    engine: Engine,
    pipeline: Pipeline,
    workspace: Workspace,
    selection: Selection,
    *,
    wait: bool = False,
    max_dispatches: int | None = None,
) -> Forecast:
    """Return what a run over `selection` would do; packages are read one after another.

    Args:
        engine: whose settings say who is asked.
        pipeline: that of the engine.
        workspace: whose packages there are.
        selection: which of them.
        wait: whether pending retries would be waited for.
        max_dispatches: most calls of the run.
    """
    found = Forecast(limits=_limits(engine, max_dispatches))
    seer = _Seer(engine, pipeline, selection.stop_after, found)
    allow, engine.allow = engine.allow, _stop
    try:
        for package, progress in _taken(engine, workspace, selection, wait, seer.refuse):
            found.cases[progress.state] += 1
            await seer.look(package, progress)
    finally:
        engine.allow = allow
    seer.settle(max_dispatches)
    return found


def _stop(request: ModelRequest) -> None:
    raise _Asked(request)


def _limits(engine: Engine, max_dispatches: int | None) -> dict[str, int | str]:
    budget = engine.bound.settings.budget
    limits: dict[str, int | str] = {} if max_dispatches is None else {"max_dispatches": max_dispatches}
    for name, most in budget:
        if most:
            limits[name] = money_text(most) if isinstance(most, Decimal) else most
    return limits


def _taken(
    engine: Engine,
    workspace: Workspace,
    selection: Selection,
    wait: bool,
    refuse: Callable[[Package, CaseboundError], None],
) -> Iterator[tuple[Package, Progress]]:
    """Yield the packages that a run would take, with where they stand."""
    now, phases = engine.clock.now(), engine.bound.host.phases
    for name in selection.package_ids or workspace.package_ids():
        package = workspace.package(name)
        try:
            if selection.case_ids:
                admission = package.load_if(layout.ADMISSION, Admission)
                if admission is None or admission.case_id not in selection.case_ids:
                    continue
            progress = derive_progress(package)
            due = wait or progress.retry_at is None or progress.retry_at <= now
            retries = progress.state == "retry_pending" and selection.retries and due
            left = progress.state in selection.states and not is_finished(package, progress, phases)
            if retries or left:
                yield package, progress
        except CaseboundError as exc:
            refuse(package, exc)


class _Later:
    """A clock that shows what another one will show."""

    def __init__(self, clock: Clock, moment: datetime) -> None:
        self._moment = max(clock.now(), moment)
        self.monotonic = clock.monotonic
        self.sleep = clock.sleep

    def now(self) -> datetime:
        return self._moment


class _Seer:
    """Looks at one case after another, and adds up."""

    def __init__(self, engine: Engine, pipeline: Pipeline, stop_after: str | None, found: Forecast) -> None:
        self._engine = engine
        self._pipeline = pipeline
        self._stop_after = stop_after
        self._found = found
        self._prices = Prices(engine.bound)
        self._purse = Purse(engine.bound.settings.budget, self._prices)
        self._inputs, self._outputs = Possible(), Possible()  # of the next requests
        self._possible, self._most = Possible(), Most()  # of all that may follow

    def refuse(self, package: Package, error: CaseboundError) -> None:
        self._found.refused_total += 1
        if len(self._found.refused) < MOST_REFUSED:
            self._found.refused.append({"package": package.root.name, "code": error.code, "error": str(error)})

    async def look(self, package: Package, progress: Progress) -> None:
        """Find out what the case asks next, and count it."""
        trial = Trial(package.root)
        if progress.state == "interpreted" or self._stop_after in _SILENT:
            self._found.next["none"] += 1
            return
        clock = self._engine.clock
        try:
            if progress.retry_at is not None:  # the run would wait for it
                self._engine.clock = _Later(clock, progress.retry_at)
            request = await self._next_request(trial)
            if request is None:
                self._found.next["none"] += 1
            else:
                self._count(trial, request)
        except CaseboundError as exc:
            self.refuse(package, exc)
        finally:
            self._engine.clock = clock

    async def _next_request(self, trial: Trial) -> ModelRequest | None:
        try:
            await self._pipeline.advance(trial, _LAST)  # never into a phase of a plugin, which would write
        except _Asked as asked:
            return asked.request
        return None

    def _count(self, trial: Trial, request: ModelRequest) -> None:
        """Count the next request of a case and those that may follow. Raises `BUDGET_REACHED` where it does not fit."""
        self._purse.check(trial, request)
        input_, output = worst_input(request), request.max_output_tokens
        price = self._prices.price(request)
        self._found.next[request.stage] += 1
        self._inputs.add(input_, None if price is None else price.input)
        self._outputs.add(output, None if price is None else price.output)
        revision, possible = latest_revision(trial), Possible()
        policies = trial.load(revision.input, InterpretationInput).stages
        stages = [policy.stage for policy in policies]
        for policy in policies[stages.index(request.stage) :]:
            price_of_output = self._dearest(policy)
            for tokens in _longest_outputs(policy, load_course(trial, revision, policy)):
                possible.add(tokens, price_of_output)
        left = self._left(trial)
        most = possible.most(left.calls).within(left)
        self._most += most
        self._possible.update(possible, most.calls)

    def _dearest(self, policy: StagePolicy) -> Decimal | None:
        prices = [self._prices.price_of(policy.stage, one.provider, one.model) for one in policy.answerers]
        outputs = [price.output for price in prices if price is not None]
        return max(outputs) if len(outputs) == len(prices) else None

    def _left(self, trial: Trial) -> Caps:
        """Return what a case may still take; its files are read only where there is a cap on that."""
        budget = self._engine.bound.settings.budget
        calls = max(0, budget.case_calls - calls_of(trial, conversations_of_case)) if budget.case_calls else None
        if not (budget.case_tokens or budget.case_money):
            return Caps(calls)
        spent = spent_on(trial, conversations_of_case, self._prices.cost if budget.case_money else _free)
        tokens = budget.case_tokens - spent.tokens if budget.case_tokens else None
        return Caps(calls, tokens, budget.case_money - spent.money if budget.case_money else None)

    def settle(self, max_dispatches: int | None) -> None:
        """Write the sums, each one the least of what policies and caps allow."""
        budget, found = self._engine.bound.settings.budget, self._found
        calls = [most for most in (max_dispatches, budget.run_calls or None) if most is not None]
        caps = Caps(min(calls, default=None), budget.run_tokens or None, budget.run_money or None)
        inputs, outputs = self._inputs.most(caps.calls), self._outputs.most(caps.calls)
        found.calls, found.money = inputs.calls, (inputs + outputs).within(caps).money
        found.input_tokens, found.output_tokens = inputs.within(caps).tokens, outputs.within(caps).tokens
        most = self._possible.most(caps.calls).within(caps)
        most = most.within(Caps(self._most.calls, self._most.tokens, self._most.money))
        found.calls_at_most, found.output_tokens_at_most, found.output_money_at_most = (
            most.calls,
            most.tokens,
            most.money,
        )


def _free(request: ModelRequest, input_tokens: int, output_tokens: int) -> Decimal:
    return Decimal(0)


def _invalid_left(course: Course) -> int:
    invalid = sum(one.outcome is not None and one.outcome.kind == "invalid" for one in course.attempts)
    return course.policy.max_invalid_responses - invalid


def _failures_left(course: Course) -> int:
    """Return how many further calls may fail: those that are retried, and one of each who may be asked."""
    turn = course.next
    return turn.retries + len(course.policy.answerers) - turn.place


def _longest_outputs(policy: StagePolicy, course: Course) -> Iterator[int]:
    """Yield the longest output of each further call of a stage; the last one is a failure that ends it, or a reply.

    Each reply that was cut off lets the next one be longer.
    """
    invalid = _invalid_left(course)
    for cut in range(invalid):
        yield max(_cap(one, course, cut) for one in policy.answerers)
    for _ in range(_failures_left(course) - 1):
        yield max(_cap(one, course, invalid - 1) for one in policy.answerers)


def _cap(answerer: Answerer, course: Course, cut: int) -> int:
    """Return the longest answer of somebody after so many further replies that were cut off."""
    so_far = sum(one.outcome is not None and one.outcome.code == "LLM_INCOMPLETE_OUTPUT" for one in course.attempts)
    return int(answerer.max_output_tokens * Decimal(answerer.incomplete_cap_factor) ** (so_far + cut))
