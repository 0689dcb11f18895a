"""A case that goes through everything: corrections, an outage of the model server, an ambiguous name, enrichment.

`TroubledCase.advance` takes it forward from whatever is on disk, as an operator would: `resolve`, and `resume` where
the case is blocked. Its accepted files are the same however often it is interrupted.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from casebound.api import Project
from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.progress import Progress, derive_progress
from casebound.store import Package
from casebound.testing.faults import LoggingModel, Point, watch
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_model import Search

CASE = "INC-9"
SEARCHES: tuple[Search, ...] = (
    ("inventory.host", "edge-proxy-canary", "affected_subject"),
    ("inventory.host", "mail-relay", "participant"),
    ("inventory.host", "edge-proxy-canary", "participant"),
)
REPORT = f"""\
---
id: {CASE}
title: edge-proxy-canary does not answer during service 431
---

## Current behaviour

While service=431 was running, edge-proxy-canary stopped answering. The mail-relay was silent, and service 440 too.

## Expected behaviour

edge-proxy-canary answers within two seconds.
"""
ACCEPTED = (
    "package.json",
    "admission.json",
    "build.json",
    "case.json",
    "source/",
    "research/",
    "input.json",
    "plan.json",
    "entity-resolution/captures/",
    "candidates.json",
    "assessment.json",
    "context.json",
    "interpretation.json",
    "summary.md",
    "hypothesis-context.json",
)


class TroubledModel(LoggingModel):
    """A `LoggingModel` whose key is refused when it is first asked for an assessment."""

    async def send(self, request: ModelRequest) -> NativeReply:
        """Log and answer; raise what a server without a valid key would lead to."""
        native = await super().send(request)
        if request.stage == "assessment" and request.attempt == 1:
            raise ProviderError("LLM_AUTH", retryable=False, found="401")
        return native


@dataclass(slots=True)
class TroubledCase:
    """The inventory project with that case, and what its model server logged.

    Attributes:
        runs: how many processes have worked on it; each starts an hour after the one before.
    """

    inventory: Inventory

    @classmethod
    def write(cls, folder: Path) -> TroubledCase:
        """Write the project into `folder`."""
        return cls(write_inventory(folder, report=REPORT))

    @property
    def log(self) -> Path:
        """The log of the model server."""
        return self.inventory.folder / "server.log"

    @property
    def root(self) -> Path:
        """The folder of the package."""
        return self.inventory.workspace / "cases" / CASE

    def model(self, point: Point = lambda name: None) -> LoggingModel:
        """Return the model that answers."""
        return TroubledModel(self.log, point=point, searches=SEARCHES, stumbles=("plan", "interpretation"))

    def project(self, model: Provider) -> Project:
        """Open the project."""
        return self.inventory.project(model)

    def advance(self, point: Point = lambda name: None) -> Progress:
        """Go on until the case is finished; `point` is called wherever it may be interrupted."""
        self.inventory.clock.advance(3600)
        with watch(point):
            for _ in range(9):
                with closing(self.project(self.model(point))) as project:
                    progress = derive_progress(Package(self.root)) if self.root.exists() else Progress("new")
                    if progress.state == "interpreted":
                        return progress
                    self.inventory.clock.advance(timedelta(hours=1).total_seconds())
                    if progress.state == "blocked":
                        project.resume(CASE)
                    else:
                        next(iter(project.resolve([self.inventory.report])))
        raise AssertionError(f"the case does not end: {progress}")

    def files(self) -> dict[str, bytes]:
        """Return path and bytes of every file of the package, nothing where there is none."""
        if not self.root.exists():
            return {}
        return {path: data for path, data in Package(self.root).files() if data is not None}


def accepted(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files that an interruption may not change: all but attempts, feedback, events and the seal."""
    return {
        path: data
        for path, data in files.items()
        if "/attempts/" not in path and any(part in path or path.startswith(part) for part in ACCEPTED)
    }
