"""What all cases of a run share: bound settings, clock, database, providers, and what a step tells to the outside."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from casebound.binding import AnswererModel, Bound, build_provider
from casebound.clock import Clock, format_time
from casebound.contracts.interpretation import Event
from casebound.contracts.model_call import ModelRequest
from casebound.errors import ResearchError, SettingsError
from casebound.gate import Gate
from casebound.llm.permit import UNLIMITED, Permit
from casebound.llm.provider import Provider
from casebound.llm.tally import Tally
from casebound.progress import latest_revision
from casebound.research.catalog import CatalogSource, open_database
from casebound.store.events import SAFETY_DELAY_S, EventLog
from casebound.store.package import Package
from casebound.store.preview import Preview


@dataclass(slots=True)
class Engine:
    """Settings at work: opened on first use, shared by every step of every case, closed once.

    Attributes:
        spend: called with the package before each request; raises `BUDGET_REACHED` where nothing more may be sent.
        providers: by stage: those of a caller, each in place of everybody who may answer the stage.
        on_step: called with the package and the name of each step that begins, for progress.
        allow: called with each request before it is frozen; raises where it may not be asked at all.
        gate: of the run; every request goes through it.
        tally: counts every request that is sent.
    """

    bound: Bound
    clock: Clock
    spend: Callable[[Package], None]
    providers: dict[str, Provider] = field(default_factory=dict)
    on_step: Callable[[Package, str], None] = lambda package, step: None
    allow: Callable[[ModelRequest], None] = lambda request: None
    gate: Gate = field(default_factory=Gate)
    tally: Tally = field(default_factory=Tally)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _source: CatalogSource | None = None
    _built: list[tuple[AnswererModel, Provider]] = field(default_factory=list)

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
        for other, provider in self._built:
            if (other.spec, other.settings) == (model.spec, model.settings):
                return provider
        built = build_provider(model, self.bound.host, self.bound.settings.llm_path)
        self._built.append((model, built))
        return built

    def prepare_providers(self) -> None:
        """Build everybody who may answer any stage, so that a missing key is told now. Raises as `provider`."""
        for stage, model in self.bound.stages.items():
            for place in range(len(model.answerers)):
                self.provider(stage, place)

    @asynccontextmanager
    async def permit(self, package: Package, request: ModelRequest, place: int) -> AsyncIterator[Permit]:
        """Give leave for one call of the answerer at `place` of the request's stage. Raises as `allow` and `spend`.

        Raises:
            Stopped: the run makes no further call.
        """
        self.allow(request)
        self.gate.check()
        self.spend(package)
        if isinstance(package, Preview):
            yield UNLIMITED
            return
        self.gate.enter()
        with self.tally.counted(UNLIMITED) as permit:
            yield permit

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
        if self._source is not None:
            self._source.close()
            self._source = None
        opened = [*self.providers.values(), *(provider for _, provider in self._built)]
        self._built.clear()
        for provider in {id(provider): provider for provider in opened}.values():
            await provider.aclose()
