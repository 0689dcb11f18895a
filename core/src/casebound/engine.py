"""What all cases of a run share: bound settings, clock, database, providers, and what a step tells to the outside."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from casebound.binding import AnswererModel, Bound, build_provider
from casebound.blocking import Blocking
from casebound.budget import Purse, Reservation
from casebound.clock import Clock, format_time
from casebound.contracts.interpretation import Event, StagePolicy
from casebound.contracts.model_call import ModelRequest
from casebound.errors import ProviderError, ResearchError, SettingsError
from casebound.gate import Gate
from casebound.interpretation.freeze import freeze_policies
from casebound.leave import WISHES, Leave
from casebound.llm.limits import Limiter, Turn
from casebound.llm.permit import UNLIMITED, Permit
from casebound.llm.provider import Provider
from casebound.llm.tally import Tally
from casebound.progress import latest_revision
from casebound.research.catalog import CatalogSource, open_database
from casebound.spending import worst_tokens
from casebound.store.events import SAFETY_DELAY_S, EventLog
from casebound.store.package import Package
from casebound.store.preview import Preview

T = TypeVar("T")

# At most so many connections to the database are open. More of them take no more look-ups through the one interpreter,
# and each costs memory.
_MOST_LOOK_UPS = 8
# The key is refused, or the account is used up: the same server refuses whoever asks next.
_REFUSES_ALL = ("LLM_AUTH", "LLM_QUOTA")


def unheard(error: ProviderError) -> None:
    """Do nothing about a refusal: where one case is asked about, it is that case's alone."""


@dataclass(slots=True)
class Engine:
    """Settings at work: opened on first use, shared by every step of every case, closed once.

    Attributes:
        purse: pays for each call; None: nothing is sent (replies are replayed), so nothing waits and nothing is paid.
        providers: by stage: those of a caller, each in place of everybody who may answer the stage.
        on_step: called with the package and the name of each step that begins, for progress.
        allow: called with each request before it is frozen; raises where it may not be asked at all.
        gate: of the run; every request goes through it.
        tally: counts every request that is sent.
        on_refusal: called on the loop where a server refuses everybody (`LLM_AUTH`, `LLM_QUOTA`) and nobody else may
            answer in its place, before another call gets its turn.
    """

    bound: Bound
    clock: Clock
    purse: Purse | None
    providers: dict[str, Provider] = field(default_factory=dict)
    on_step: Callable[[Package, str], None] = lambda package, step: None
    allow: Callable[[ModelRequest], None] = lambda request: None
    gate: Gate = field(default_factory=Gate)
    tally: Tally = field(default_factory=Tally)
    on_refusal: Callable[[ProviderError], None] = unheard
    _look_ups: Blocking = field(default_factory=lambda: Blocking(_MOST_LOOK_UPS, "casebound-look-up"))
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _source: CatalogSource | None = None
    _policies: tuple[StagePolicy, ...] | None = None
    _built: list[tuple[AnswererModel, Provider]] = field(default_factory=list)
    _limiters: dict[int, Limiter] = field(default_factory=dict)

    def refuse_change(self, differences: Sequence[str], *, hint: str | None = None) -> None:
        """Raise `BINDING_CHANGED` where the settings are not those that an unfinished case froze; `hint`: ways out."""
        if differences:
            found = "; ".join(dict.fromkeys(differences))
            raise SettingsError("BINDING_CHANGED", path=str(self.bound.settings.path), found=found, hint=hint)

    def source(self) -> CatalogSource:
        """Return the operator's database, read only, opened once for all cases. Raises `SettingsError`."""
        with self._opening:  # cases that look something up at once do so in several threads
            if self._source is None:
                self._source = open_database(self.bound.settings)
            return self._source

    async def look_up(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, which asks the database, in a thread. Raises what it raises."""
        source = self._source
        return await self._look_ups.run(work, computes=source is not None and source.is_file)

    def policies(self) -> tuple[StagePolicy, ...]:
        """Return what a fresh interpretation freezes about its stages, made once for all cases."""
        if self._policies is None:
            self._policies = freeze_policies(self.bound)
        return self._policies

    def provider(self, stage: str, place: int = 0) -> Provider:
        """Return the provider of the answerer at `place` of `stage`, built on first use: its secrets are resolved now.

        All that are to be built from the same settings of a provider are one: the rest stands in each request.

        Raises:
            SettingsError: a secret cannot be had.
            PluginError: the provider cannot be built.
        """
        if stage in self.providers:
            return self.providers[stage]
        model = self.bound.stages[stage].answerers[place]
        with self._opening:
            for other, provider in self._built:
                if (other.spec, other.settings) == (model.spec, model.settings):
                    return provider
            built = build_provider(model, self.bound.host, self.bound.settings.llm_path)
            self._built.append((model, built))
            return built

    def prepare_providers(self) -> None:
        """Build everybody who may answer any stage, so that a missing key, or a missing price, is told now.

        Raises:
            SettingsError: as `provider`, and `SETTINGS_PRICE`.
        """
        if self.purse is not None:
            self.purse.require_prices()
        for stage, model in self.bound.stages.items():
            for place in range(len(model.answerers)):
                self.provider(stage, place)

    def limiter(self, stage: str, place: int) -> Limiter:
        """Return the limiter of the answerer at `place` of `stage`: one for all who are the same provider."""
        provider = id(self.provider(stage, place))
        if provider not in self._limiters:
            self._limiters[provider] = Limiter(self.bound.settings.limits, self.clock)
        return self._limiters[provider]

    @asynccontextmanager
    async def permit(self, package: Package, request: ModelRequest, place: int) -> AsyncIterator[Permit]:
        """Give leave for one call of the answerer at `place` of the request's stage, when its turn comes.

        A preview neither waits nor pays.

        Raises:
            Stopped: the run makes no further call.
            SettingsError: as `allow`; `BUDGET_REACHED`.
        """
        self.allow(request)
        self.gate.check()
        if isinstance(package, Preview):
            if self.purse is not None:
                self.purse.check(package, request)
            yield UNLIMITED
        elif self.purse is None:
            self.gate.enter()
            with self.tally.counted(UNLIMITED) as permit:
                yield permit
        else:
            leave = await self._leave(self.purse, package, request, place)
            try:
                with self.tally.counted(leave) as permit:
                    yield permit
            finally:
                leave.end()

    async def _leave(self, purse: Purse, package: Package, request: ModelRequest, place: int) -> Leave:
        """Wait for a turn, then for room in the purse, then go through the gate. Raises as `permit`."""
        turn = await self._turn(request, place)
        reservation = None
        try:
            self.gate.check()
            reservation = await self._reservation(purse, package, request)
            self.gate.enter()
        except BaseException:  # nobody is asked, whatever the reason
            if reservation is not None:
                reservation.give_back()
            turn.give_back()
            raise
        return Leave(turn, reservation, self._refusals(request.stage, place))

    def _refusals(self, stage: str, place: int) -> Callable[[ProviderError], None]:
        """Return what is to hear of the failures of one call: `on_refusal` hears of those that concern all cases."""
        model = self.bound.stages[stage]
        others = model.fallback_codes if place + 1 < len(model.answerers) else ()

        def hear(error: ProviderError) -> None:
            if error.code in _REFUSES_ALL and error.code not in others:
                self.on_refusal(error)

        return hear

    async def _turn(self, request: ModelRequest, place: int) -> Turn:
        limiter, stage = self.limiter(request.stage, place), self.bound.stages[request.stage]
        tokens = worst_tokens(request) if limiter.counts_tokens else 0
        somebody_else = place + 1 < len(stage.answerers) and bool(set(WISHES) & set(stage.fallback_codes))
        at_once = limiter.turn_at_once(request.model, tokens, patient=not somebody_else)
        if at_once is not None:
            return at_once
        return await self.gate.unless_closed(limiter.turn(request.model, tokens, patient=not somebody_else))

    async def _reservation(self, purse: Purse, package: Package, request: ModelRequest) -> Reservation:
        at_once = purse.reserve_at_once(package, request)
        return await self.gate.unless_closed(purse.reserve(package, request)) if at_once is None else at_once

    def block(self, package: Package, stage: str, error: ResearchError) -> None:
        """Record that the case waits for the database, and from when on it may be resumed."""
        now = self.clock.now()
        EventLog(package, latest_revision(package)).append(
            Event(
                kind="blocked",
                code=error.code,
                at=format_time(now),
                retry_at=format_time(now + timedelta(seconds=SAFETY_DELAY_S)),
                detail="; ".join(part for part in (error.found or error.summary, error.where) if part),
                stage=stage,
                attempts=0,
            )
        )

    async def aclose(self) -> None:
        """Let go of the database and of every provider's connections."""
        self._look_ups.close()
        if self._source is not None:
            self._source.close()
            self._source = None
        opened = [*self.providers.values(), *(provider for _, provider in self._built)]
        self._built.clear()
        self._limiters.clear()
        for provider in {id(provider): provider for provider in opened}.values():
            await provider.aclose()
