"""Runs over an inventory's cases for tests: with a model whose calls wait, and with whatever watches beside the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from typing import Any, TypeAlias

from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.llm.provider import Provider
from casebound.runs import Run, RunOptions
from casebound.testing.inventory import Inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider
from casebound.workspace.index import Index
from casebound.workspace.outcome import Ended, RunSummary
from casebound.workspace.row import CaseRow

# Runs on the event loop of a run, beside it, and is given it.
Beside: TypeAlias = Callable[[Run], Coroutine[Any, Any, None]]

_PATIENCE_S = 60.0


class HeldModel(InventoryModel):
    """A model whose calls wait until `go` is set, and are answered then.

    Attributes:
        in_flight: how many wait now.
        most: how many ever did at once.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # those of InventoryModel
        super().__init__(**options)
        self.in_flight = self.most = 0
        self.go = asyncio.Event()

    async def send(self, request: ModelRequest) -> NativeReply:
        """Wait, then answer."""
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await self.go.wait()
        finally:
            self.in_flight -= 1
        return await super().send(request)


def execute(
    inventory: Inventory,
    provider: Provider | Mapping[str, Provider],
    *beside: Beside,
    tell: Callable[[Ended], None] = lambda ended: None,
    phases: bool = False,
    **options: Any,  # noqa: ANN401  # those of RunOptions
) -> RunSummary:
    """Run over the cases of an inventory, and return what came of it; what fails in `beside` ends it and fails here."""
    project = inventory.project(provider, phases=phases)
    watching: list[asyncio.Future[None]] = []

    def began(task: asyncio.Task[None]) -> None:
        def end(one: asyncio.Future[None]) -> None:
            if not one.cancelled() and one.exception() is not None:
                task.cancel()

        for one in beside:
            watching.append(asyncio.ensure_future(one(run)))
            watching[-1].add_done_callback(end)

    with closing(project):
        run = Run(project, RunOptions(**options))
        run.tell = tell
        try:
            return run.execute(began)
        finally:
            for one in watching:
                if one.done():
                    one.result()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition. Raises `TimeoutError` where it does not come."""
    async with asyncio.timeout(_PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


def rows_of(inventory: Inventory) -> dict[str, CaseRow]:
    """Return the rows of the inventory's index, by package."""
    project = inventory.project(RaisingProvider())
    with closing(project), closing(Index.open(project.workspace, project.settings, project.clock)) as index:
        return {row.package_id: row for row in index.rows()}
