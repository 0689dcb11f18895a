"""Many processes on one workspace: the index in its file, and commands of every kind at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from casebound.store import Workspace
from casebound.testing.distributions import run_casebound
from casebound.testing.index_place import IndexPlace
from casebound.testing.index_races import IndexRaces
from casebound.testing.inventory import REPORT, write_inventory
from casebound.testing.inventory_command import install_inventory

pytestmark = pytest.mark.faults


class TestIndexFileRaces(IndexRaces):
    @pytest.fixture
    def place(self, tmp_path: Path) -> IndexPlace:
        return IndexPlace.write(tmp_path)


def test_thirty_two_commands_at_once_on_a_new_workspace_do_not_fail(tmp_path: Path) -> None:
    inventory, plugins = write_inventory(tmp_path), install_inventory(tmp_path / "plugins")
    where = ["--project-config", str(tmp_path / "casebound.toml"), "--workspace", str(inventory.workspace)]
    reports = [tmp_path / f"INC-{number}.md" for number in range(24)]
    for report in reports:
        report.write_text(REPORT.replace("INC-7", report.stem))

    def run(words: Sequence[str]) -> CompletedProcess[str]:
        return run_casebound([*words, *where, "--format", "json"], plugins=plugins, cwd=tmp_path, timeout_s=600)

    commands = [["resolve", str(report)] for report in reports]
    for place in range(0, 32, 4):
        commands.insert(place, ["reindex"])
    with ThreadPoolExecutor(32) as together:
        done = list(together.map(run, commands))
    assert [(each.returncode, each.stderr) for each in done if each.returncode or "INDEX" in each.stderr] == []
    assert {json.loads(each.stdout).get("state", "reindexed") for each in done} == {"interpreted", "reindexed"}
    workspace = Workspace(inventory.workspace)
    assert workspace.package_ids() == sorted(report.stem for report in reports)
    assert json.loads(run(["reindex"]).stdout) == {"cases": 24, "states": {"interpreted": 24}}
