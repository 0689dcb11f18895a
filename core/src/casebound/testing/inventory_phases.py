"""A plugin with two phases after interpretation, which spend from a budget that a test can count.

The budget is a number in `<workspace>/hypothesis-budget`; whoever runs a phase takes one from it.
"""

from __future__ import annotations

from pathlib import Path

from casebound.hookspecs import hookimpl
from casebound.specs import Phase

BUDGET = "hypothesis-budget"


def set_budget(workspace: Path, calls: int) -> None:
    """Write how many runs of phases the workspace may still pay for."""
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / BUDGET).write_text(str(calls), encoding="ascii")


def budget_left(workspace: Path) -> int:
    """Return what is left of the budget."""
    return int((workspace / BUDGET).read_text(encoding="ascii"))


@hookimpl
def casebound_phases() -> list[Phase]:
    """Offer `hypothesis` after interpretation and `investigation` after that."""
    return [
        Phase("hypothesis", after="interpretation", run=f"{__name__}:hypothesis"),
        Phase("investigation", after="hypothesis", run=f"{__name__}:investigation"),
    ]


def hypothesis(package: Path) -> None:
    """Write one hypothesis."""
    _spend(package, "hypothesis")


def investigation(package: Path) -> None:
    """Write one investigation."""
    _spend(package, "investigation")


def _spend(package: Path, phase: str) -> None:
    workspace = package.parent.parent
    set_budget(workspace, budget_left(workspace) - 1)
    folder = package / "analysis" / phase
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0001.json").write_text('{"text":"a guess"}', encoding="utf-8")
