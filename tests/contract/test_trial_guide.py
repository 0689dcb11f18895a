"""A trial goes as its guide says, costs no more than it says, and is judged by nobody but a person."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from casebound.errors import ProviderError
from casebound.runs import Run, RunOptions
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_command import calls, install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
TRIAL = (GUIDE / "trial.md").read_text(encoding="utf-8")
RUBRIC = (GUIDE / "trial-rubric.md").read_text(encoding="utf-8")
CHECKS = ("Its own grounded search", "Contributor and affected entity", "Identity with provenance")
SHOWN = [
    shlex.split(line)
    for block in re.findall(r"```sh\n(.*?)```", TRIAL, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
IMPORT, CONSTRUCT, RUN, SHOW, EXPLAIN, VERIFY = SHOWN


class Trial:
    """The folder that the guide speaks of, and its commands."""

    def __init__(self, folder, behaviour):
        self.inventory = write_inventory(folder / "project")
        self.folder = self.inventory.folder
        (self.folder / "model.toml").write_text(
            f'[llm]\nprovider = "scripted"\nmodel = "tried"\n[llm.scripted]\nbehaviour = "{behaviour}"\n'
        )
        self._plugins = install_inventory(folder / "plugins")

    def type(self, line, *more):
        assert line[0] == "casebound"
        return run_casebound([*line[1:], *more], plugins=self._plugins, cwd=self.folder)

    def prepare(self):
        for line in (IMPORT, CONSTRUCT):
            assert (self.type(line).returncode, line) == (0, line)


@pytest.mark.spec("A-119", "A-120", "A-123", "A-124")
def test_the_commands_of_the_guide_run_as_they_stand_there(tmp_path):
    trial = Trial(tmp_path, "answer")
    said = []
    for line in SHOWN:
        done = trial.type(line)
        assert (done.returncode, line) == (0, line), done.stdout + done.stderr
        said.append(done.stdout + done.stderr)
        if line is CONSTRUCT:
            assert calls(trial.folder) == []
            assert json.loads(trial.type(SHOW, "--format", "json").stdout)["state"] == "built"
    assert calls(trial.folder) == ["plan", "assessment", "interpretation"]
    shown = json.loads(trial.type(SHOW, "--format", "json").stdout)
    assert (shown["state"], shown["case_id"]) == ("interpreted", "INC-7")
    assert all(shown[part] for part in ("plan", "candidates", "assessment", "interpretation"))
    assert {who["model"] for who in shown["answered_by"].values()} == {"tried"}
    assert all(word in said[SHOWN.index(SHOW)] for word in ("plan", "candidates", "assessment", "interpretation"))
    # A fixture run proves that the parts fit; nothing that anybody could take for a judgement of the model is printed.
    assert not re.search(r"\b(score|grade|quality|accuracy|precision|recall)\b", " ".join(said), re.IGNORECASE)


@pytest.mark.spec("A-122")
def test_a_trial_whose_server_is_busy_says_when_to_repeat_the_command_and_sends_nothing_before(tmp_path):
    trial = Trial(tmp_path, "LLM_RATE_LIMITED")
    trial.prepare()
    first = trial.type(RUN, "--format", "json")
    found = json.loads(first.stdout)
    assert (first.returncode, found["cases"], found["dispatches"]) == (1, {"retry_pending": 1}, 1)
    again = trial.type(RUN, "--format", "json")
    assert (again.returncode, json.loads(again.stdout)["dispatches"]) == (1, 0)
    assert json.loads(again.stdout)["retry_at"] == found["retry_at"]
    assert calls(trial.folder) == ["plan"]


@pytest.mark.spec("A-121", "A-122")
def test_the_same_command_after_the_retry_time_goes_on_within_the_bound(tmp_path):
    inventory = write_inventory(tmp_path)
    inventory.resolve(RaisingProvider(), package_id="trial-1", stop_after="construction")
    options = RunOptions(case_id="INC-7", package_id="trial-1", stop_after="interpretation", max_dispatches=2)
    busy = ProviderError("LLM_TIMEOUT", retryable=True)
    model = InventoryModel(scripted={"plan": [busy]})

    def repeat():
        project = inventory.project(model, phases=True)
        try:
            summary = Run(project, options).execute()
        finally:
            project.close()
        return summary.cases, summary.dispatches, summary.stopped

    assert repeat() == ({"retry_pending": 1}, 1, None)
    assert repeat() == ({"retry_pending": 1}, 0, None)
    inventory.clock.advance(60)
    assert repeat() == ({"assessed": 1}, 2, "max_dispatches")
    assert repeat() == ({"interpreted": 1}, 1, None)
    assert repeat() == ({"interpreted": 1}, 0, None)
    assert model.counts() == {"plan": 2, "assessment": 1, "interpretation": 1}
    assert inventory.package("trial-1").names("analysis") == ["interpretations"]  # and no phase of a plugin


def test_the_guide_names_every_way_in_which_a_trial_may_wait():
    assert [state for state in ("retry_pending", "blocked", "review") if f"- `{state}`" not in TRIAL] == []


@pytest.mark.spec("A-124")
def test_guide_and_rubric_ask_for_the_same_three_checks_and_a_person_answers():
    assert tuple(re.findall(r"^[0-9]\. \*\*(.+?)\.\*\*", TRIAL, re.MULTILINE)) == CHECKS
    rows = [line.split("|") for line in RUBRIC.splitlines() if line.startswith("| **")]
    assert tuple(row[1].split("**")[1].rstrip(".") for row in rows) == CHECKS
    assert [[cell.strip() for cell in row[3:6]] for row in rows] == [["", "", ""]] * 3  # decision, evidence, reason
    for part in ("plan", "candidates", "assessment", "interpretation"):
        assert part in "".join(row[2] for row in rows)
    assert "reviewer, date" in RUBRIC
    assert "by a person" in TRIAL


def test_the_settings_of_the_trial_are_those_of_its_project(tmp_path):
    """`--llm-config` replaces the `[llm]` table alone: the case is frozen with the model that is on trial."""
    trial = Trial(tmp_path, "LLM_AUTH")
    trial.prepare()
    assert 'model = "test-model"' in settings_text()
    assert trial.type(RUN).returncode == 1
    shown = json.loads(trial.type(SHOW, "--format", "json").stdout)
    assert (shown["state"], shown["code"]) == ("blocked", "LLM_AUTH")
    frozen = trial.folder / "trial/cases/trial-1/analysis/interpretations/0001/input.json"
    assert {stage["model"] for stage in json.loads(frozen.read_bytes())["stages"]} == {"tried"}
