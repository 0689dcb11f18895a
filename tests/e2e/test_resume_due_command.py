"""`casebound resume --due` as a command: a line a case, what was left, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from casebound.canonical import digest_of
from casebound.errors import ProviderError
from casebound.progress import derive_progress
from casebound.runs import Run, RunOptions
from casebound.settings import load_settings
from casebound.store import Workspace
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.workspace.index import Index

QUOTA = ProviderError("LLM_QUOTA", retryable=False)
NEVER = datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture
def inventory(tmp_path):
    """Three blocked cases: two have been due for long, the third one will not be for long."""
    inventory = write_inventory(tmp_path / "project")
    inventory.clock.set_now(datetime(2001, 1, 1, tzinfo=UTC))
    for name in inventory.admit(3):
        if name == "INC-2":
            inventory.clock.set_now(NEVER)
        project = inventory.project(InventoryModel(scripted={"plan": [QUOTA]}))
        Run(project, RunOptions(package_id=name)).execute()
        project.close()
    inventory.configure(behave("answer"))
    return inventory


@pytest.fixture
def casebound(inventory, tmp_path):
    plugins = install_inventory(tmp_path / "plugins")
    return lambda *arguments: run_casebound(
        [*arguments, "--workspace", "workspace"], plugins=plugins, cwd=inventory.folder
    )


def test_it_prints_a_line_a_case_and_says_what_it_left(inventory, casebound):
    done = casebound("resume", "--due", "--format", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(line["case_id"], line["state"], line["code"]) for line in lines} == {
        ("INC-0", "interpreted", None),
        ("INC-1", "interpreted", None),
    }
    assert done.returncode == 0
    assert done.stderr == "1 blocked case was left: the next one may go on from 2999-01-01T00:01:00.000Z\n"
    assert sorted(calls(inventory.folder)) == sorted(["plan", "assessment", "interpretation"] * 2)
    again = casebound("resume", "--due")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", done.stderr)


def test_the_commands_of_the_guide_take_up_what_they_say(inventory, casebound):
    guide = (Path(__file__).parents[2] / "docs/guide/waiting.md").read_text(encoding="utf-8")
    block = re.findall(r"```\n(.*?)```", guide, re.DOTALL)[0]
    assert casebound("import", "report.md").returncode == 0
    statuses = {}
    for line in block.splitlines():
        command = line.partition("#")[0].split()[1:]
        statuses[" ".join(command)] = casebound(*command).returncode
    assert statuses == {"status": 0, "resume --due": 0, "run": 1}
    found = [derive_progress(inventory.package(f"INC-{number}")).state for number in (0, 1, 2, 7)]
    assert found == ["interpreted", "interpreted", "blocked", "interpreted"]


@pytest.mark.parametrize(
    ("behaviour", "told", "asked"),
    [("LLM_REQUEST", "blocked", 2), ("LLM_RATE_LIMITED", "retry_pending", 2), ("nonsense", "review", 6)],
)
def test_a_case_that_waits_again_is_told_for_a_person_too_and_the_status_is_1(
    inventory, casebound, behaviour, told, asked
):
    inventory.configure(behave(behaviour))
    done = casebound("resume", "--due")
    assert done.returncode == 1
    assert [f"INC-{number}  {told}  by model" in done.stdout for number in range(3)] == [True, True, False]
    assert len(calls(inventory.folder)) == asked


def test_settings_that_are_missing_are_told_before_any_case_is_touched(inventory, casebound):
    inventory.configure(behave("answer").replace('url = "sqlite:///inventory.db"', 'url_env = "NOBODY_SET_THIS"'))
    before = files(inventory)
    done = casebound("resume", "--due")
    assert (done.returncode, done.stdout) == (2, "")
    assert "NOBODY_SET_THIS" in done.stderr
    assert files(inventory) == before


@pytest.mark.parametrize(("arguments", "found"), [(["INC-0", "--due"], "both"), ([], "neither")])
def test_one_case_or_all_that_are_due_and_nothing_else(inventory, casebound, arguments, found):
    done = casebound("resume", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"found: {found}" in done.stderr
    assert calls(inventory.folder) == []


def test_a_case_that_is_not_blocked_after_all_is_left_as_it_is(inventory, casebound):
    """The index may be behind: it is moved away while somebody resumes the case, and is put back."""
    aside = inventory.folder / "aside.sqlite"
    close_index(inventory)
    (inventory.workspace / "index.sqlite").rename(aside)
    assert casebound("resume", "INC-0").returncode == 0
    aside.rename(inventory.workspace / "index.sqlite")
    before, asked = files(inventory, "INC-0"), len(calls(inventory.folder))
    done = casebound("resume", "--due", "--format", "json")
    assert {json.loads(line)["state"] for line in done.stdout.splitlines()} == {"interpreted"}
    assert files(inventory, "INC-0") == before
    assert len(calls(inventory.folder)) == asked + 3


def files(inventory, case=""):
    root = inventory.workspace / "cases" / case
    return {path.relative_to(root): digest_of(path.read_bytes()) for path in root.rglob("*") if path.is_file()}


def close_index(inventory):
    """Leave nothing of the index in a log beside its file."""
    settings = load_settings(inventory.folder / "casebound.toml")
    Index.open(Workspace(inventory.workspace), settings, inventory.clock).close()
    assert not list(inventory.workspace.glob("index.sqlite-*"))


def test_ctrl_c_twice_ends_at_once_and_the_next_run_goes_on_with_what_was_resumed(inventory, casebound, tmp_path):
    inventory.configure(behave("hang"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "plugins")}
    command = [sys.executable, "-P", "-m", "casebound", "resume", "--due", "--workspace", "workspace"]
    with subprocess.Popen(
        command,
        cwd=inventory.folder,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=listen_to_ctrl_c,
    ) as process:
        assert [process.stderr.readline() for _ in range(2)] == ["hanging\n"] * 2
        process.send_signal(signal.SIGINT)
        assert "nothing new begins, waiting for 2 calls in flight" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stdout.read()) == (130, "")
    inventory.configure(behave("answer"))
    done = casebound("run", "--format", "json")
    assert json.loads(done.stdout)["cases"] == {"blocked": 1, "interpreted": 2}
    assert len(calls(inventory.folder)) == 2 + 2 * 3  # each call that was cut off is unknown, and asked once more
