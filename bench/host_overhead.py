"""CPU of the host itself, per case, with a model that answers at once: plan, four look-ups, assessment, interpretation.

Every artifact is flushed to the disk as in production. Prints JSON: milliseconds of CPU per case, split by step.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from casebound.api import Project
from casebound.contracts.model_call import ModelRequest
from casebound.store import Package
from casebound.testing.inventory_model import InventoryModel, message_of, plan_reply

CASES = 40
SETTINGS = """\
[project]
name = "bench"
plugins = ["llm-offline"]
[database]
url = "sqlite:///world.db"
snapshot_id = "bench-1"
tables = ["hosts"]
[entity_resolution]
[[entity_resolution.catalog]]
name = "inventory.host"
entity_type = "host"
table = "hosts"
id_column = "id"
name_column = "fqdn"
columns = ["id", "fqdn", "site"]
[llm]
provider = "offline"
"""


class Instant(InventoryModel):
    """Answers every stage validly from its request, at once; plans a search for each of the four hosts of a report."""

    def answer(self, request: ModelRequest) -> dict[str, object]:
        """Return the answer to `request`."""
        if request.stage != "plan":
            return super().answer(request)
        message = message_of(request)
        names = [word.strip(".,;") for word in message["sources"][1]["text"].split() if word.startswith("node-")]
        return plan_reply(message, [("inventory.host", name, "affected_subject") for name in names[:4]])


def report(number: int) -> dict[str, str]:
    """Return title and body of a report that names four hosts."""
    one, two, three, four = (f"node-{(number * 4 + place) % 1000:04d}.alpha" for place in range(4))
    text = f"The backup of {one} and {two} failed while {three} was down; {four} is fine."
    return {"title": f"Backup {number}", "body": f"{text}\n\n## Expected behavior\n\nEvery host has its backup.\n"}


def prepare(folder: Path, cases: int) -> list[Path]:
    """Write settings, a database of 1,000 hosts, and reports that name four of them each."""
    database = sqlite3.connect(folder / "world.db")
    with database:
        database.execute("CREATE TABLE hosts (id INTEGER PRIMARY KEY, fqdn TEXT, site TEXT)")
        rows = [(number, f"node-{number:04d}.alpha", f"site {number % 7}") for number in range(1000)]
        database.executemany("INSERT INTO hosts VALUES (?, ?, ?)", rows)
    database.close()
    (folder / "casebound.toml").write_text(SETTINGS)
    reports = []
    for number in range(cases):
        path, parts = folder / f"report-{number}.md", report(number)
        path.write_text(f"# {parts['title']}\n\n{parts['body']}")
        reports.append(path)
    return reports


class StepClock:
    """Sums CPU time by the step that was running."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._step, self._since = "admission", time.process_time()

    def begin(self, step: str) -> None:
        """Book the time so far to the step that ends."""
        now = time.process_time()
        self.spent[self._step] += now - self._since
        self._step, self._since = step, now

    def __call__(self, package: Package, step: str) -> None:
        """Take a report of the pipeline."""
        self.begin(step)


def measure(cases: int = CASES) -> dict[str, object]:
    """Return CPU milliseconds per case, in all and by step (a step's own time lasts until the next one begins)."""
    folder = Path(tempfile.mkdtemp(prefix="casebound-bench-"))
    reports = prepare(folder, cases + 1)
    provider = Instant()
    project = Project.open(
        folder / "casebound.toml", providers=dict.fromkeys(("plan", "assessment", "interpretation"), provider)
    )
    list(project.resolve(reports[:1]))  # imports and first touches are not the host's overhead per case
    clock = StepClock()
    project.on_step = clock
    begin = time.process_time()
    for result in project.resolve(reports[1:]):
        if result.state != "interpreted":
            sys.exit(f"a case ended {result.state}: {result.error}")
        clock.begin("admission")
    total = time.process_time() - begin
    per_case = {step: round(seconds * 1000 / cases, 2) for step, seconds in sorted(clock.spent.items())}
    return {"cpu_ms_per_case": round(total * 1000 / cases, 2), "by_step": per_case, "package": result.package}


if __name__ == "__main__":
    print(json.dumps(measure()))
