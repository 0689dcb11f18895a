"""Fault 24 for runs: what a run holds in memory is what is under way, however many cases it has had already."""

from __future__ import annotations

import gc
import re
from collections import Counter
from pathlib import Path

import pytest
from casebound.runs import Run, RunOptions
from casebound.testing.inventory import REPORT, write_inventory
from casebound.testing.inventory_model import SEARCHES, InventoryModel
from casebound.workspace.outcome import Ended

pytestmark = pytest.mark.faults

CASES = 80
WARM = 40  # by then every cache that has a bound is full
# Not what the threads and connections of a pool bring with them: those come when they are needed, up to a bound.
HOLDERS = re.compile(r"casebound\.|_?asyncio\.|builtins\.(list|dict|set|tuple|coroutine|generator|function|cell)$")


class Forgetful(InventoryModel):
    """Keeps no list of what it was asked."""

    async def send(self, request):
        native = await super().send(request)
        self.calls.clear()
        return native


def objects() -> Counter[str]:
    """Return how many objects are alive of each type that may hold on to a case."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if HOLDERS.match(name))


def test_a_run_keeps_nothing_of_the_cases_that_it_has_ended(tmp_path: Path) -> None:
    inventory = write_inventory(tmp_path / "project")
    (tmp_path / "reports").mkdir()
    for number in range(CASES):
        report = REPORT.replace("INC-7", f"INC-{number}")
        (tmp_path / "reports" / f"{number}.md").write_text(report)
    project = inventory.project(Forgetful(SEARCHES))
    project.import_reports([tmp_path / "reports"])
    seen: list[Counter[str]] = []
    ended: list[int] = [0]

    def tell(one: Ended) -> None:
        ended[0] += 1
        assert one.row.state == "interpreted"
        if ended[0] in (WARM, CASES):
            seen.append(objects())

    run = Run(project, RunOptions(jobs=1))
    run.tell = tell
    assert run.execute().exit_status == 0
    project.close()
    early, late = seen
    grown = {name: late[name] - early[name] for name in late if late[name] - early[name] >= (CASES - WARM) // 4}
    assert grown == {}
