"""`casebound run` in a process of its own: what it takes, what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Protocol

import casebound
import pytest
from casebound.testing.distributions import run_casebound, write_distribution
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.terminal import on_a_terminal

KEYS = {"cases", "had", "left", "dispatches", "tokens", "stopped", "retry_at", "refused", "refused_total"}


class Run(Protocol):
    def __call__(self, *arguments: str) -> CompletedProcess[str]: ...


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    return install_inventory(tmp_path / "plugins")


@pytest.fixture
def project(tmp_path: Path) -> Inventory:
    project = write_inventory(tmp_path / "project")
    project.admit(3)
    project.configure(behave("answer"))
    return project


@pytest.fixture
def run(plugins: Path, project: Inventory) -> Run:
    def run(*arguments: str) -> CompletedProcess[str]:
        given = ("run", "--workspace", "workspace", *arguments)
        return run_casebound(given, plugins=plugins, cwd=project.folder, python=("-W", "error::ResourceWarning"))

    return run


def answer(done: CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- what it prints ---------------------------------------------------------------------------------------------------


def test_a_program_gets_one_object_and_nothing_else_on_standard_output(run: Run, project: Inventory) -> None:
    done = run("--format", "json")
    assert done.returncode == 0, done.stderr
    assert set(answer(done)) == KEYS
    assert answer(done)["cases"] == {"interpreted": 3}
    assert answer(done)["dispatches"] == len(calls(project.folder)) == 9
    assert done.stderr == ""


def test_a_pipe_gets_a_line_a_case_that_ended_and_the_sum(run: Run) -> None:
    done = run()
    lines = done.stdout.splitlines()
    assert sorted(lines[:3]) == ["INC-0  interpreted", "INC-1  interpreted", "INC-2  interpreted"]
    assert lines[3].startswith("3 cases  3 taken further, 9 model calls, tokens 900 in, 90 out")
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_case_that_is_refused_is_told_and_the_sum_says_what_is_left(run: Run, project: Inventory) -> None:
    assert run("--package-id", "INC-1", "--max-dispatches", "1").returncode == 1
    project.configure(behave("answer").replace('model = "test-model"', 'model = "other"'))
    done = run()
    assert done.returncode == 1
    assert done.stderr.startswith("INC-1: BINDING_CHANGED: ")
    assert "Traceback" not in done.stderr
    assert "refused  1, each left as it was" in done.stdout
    assert "left     1 case not done: casebound run --workspace workspace goes on" in done.stdout


def test_a_log_has_an_object_a_line_with_the_case_and_no_word_of_a_report(run: Run, project: Inventory) -> None:
    done = run("--log", "json", "--format", "json")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert {event["event"] for event in events} == {"step", "ended", "over"}
    assert all(event["case"] == event["package"] for event in events[:-1])
    assert {event["case"] for event in events[:-1]} == {"INC-0", "INC-1", "INC-2"}
    assert {event["step"] for event in events if event["event"] == "step"} == {
        "construction", "research", "plan", "look-up", "assessment", "interpretation",
    }  # fmt: skip
    assert all(event["at"].endswith("Z") for event in events)
    over = dict(events[-1])
    assert {key: over[key] for key in KEYS} == answer(done)
    assert "edge-proxy" not in done.stderr


def test_a_log_leaves_standard_output_to_the_sum(run: Run) -> None:
    done = run("--log", "json")
    assert done.stdout.startswith("3 cases  3 taken further, 9 model calls")
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()][-1] == "over"


def test_a_log_tells_a_command_that_failed_too(run: Run) -> None:
    done = run("--log", "json", "--stop-after", "later")
    [event] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, done.stdout) == (2, "")
    assert (event["event"], event["code"]) == ("failed", "USAGE")


def test_a_terminal_sees_the_run_while_it_goes_and_its_sum_at_the_end(plugins: Path, project: Inventory) -> None:
    environment = {**os.environ, "PYTHONPATH": str(plugins), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    environment = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-P", "-m", "casebound", "run", "--workspace", "workspace"]
    status, output, errors = on_a_terminal(command, cwd=project.folder, environment=environment)
    assert status == 0, errors
    for word in ("under way", "calls in flight", "tokens"):
        assert word in errors
    assert errors.rfind("\x1b[?25h") > errors.rfind("\x1b[?25l") >= 0  # the cursor is there again
    assert "3 cases" in output
    assert "INC-0" not in output + errors
    dumb = {**environment, "TERM": "dumb"}
    status, output, errors = on_a_terminal(command, cwd=project.folder, environment=dumb)
    assert (status, "\x1b" in output + errors) == (0, False)


# --- what it takes ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-120")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--case-id", "INC-1"),
        ("--package-id", "INC-1"),
        ("--case-id", "INC-1", "--package-id", "INC-1"),
        ("--stop-after", "construction"),
        ("--max-dispatches", "0"),
        ("--llm-config", "llm.toml"),
        ("--project-config", "casebound.toml"),
        ("--project", "casebound.toml"),
        ("--jobs", "2"),
        ("--wait",),
    ],
)
def test_the_options_of_a_trial_are_taken(run: Run, project: Inventory, arguments: tuple[str, ...]) -> None:
    (project.folder / "llm.toml").write_text('[llm]\nprovider = "scripted"\nmodel = "of another file"\n')
    done = run("--format", "json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    number = 1 if "--case-id" in arguments or "--package-id" in arguments else 3
    assert sum(answer(done)["cases"].values()) == number
    stages = {"--stop-after": [], "--max-dispatches": []}.get(arguments[0], ["plan", "assessment", "interpretation"])
    assert sorted(calls(project.folder)) == sorted(stages * number)


@pytest.mark.spec("A-119")
def test_preparing_succeeds_where_no_model_can_be_asked(run: Run, project: Inventory) -> None:
    project.configure(behave("answer").replace('"scripted"', '"openai"').replace("[llm.scripted]\nbehaviour", "#"))
    done = run("--stop-after", "construction", "--format", "json")
    assert (done.returncode, answer(done)["cases"], calls(project.folder)) == (0, {"built": 3}, [])


@pytest.mark.spec("A-121")
def test_one_dispatch_is_one_call_and_the_next_command_goes_on(run: Run, project: Inventory) -> None:
    done = run("--max-dispatches", "1", "--format", "json")
    assert (done.returncode, answer(done)["stopped"]) == (1, "max_dispatches")
    assert calls(project.folder) == ["plan"]
    assert run().returncode == 0
    assert len(calls(project.folder)) == 9


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--case-id", "INC-9"), "CASE_UNKNOWN"),
        (("--package-id", "INC-9"), "CASE_UNKNOWN"),
        (("--stop-after", "later"), "USAGE"),
        (("--project-config", "nowhere.toml"), "SETTINGS_FILE"),
    ],
)
def test_what_cannot_be_done_is_a_message_and_status_2(
    run: Run, project: Inventory, arguments: tuple[str, ...], code: str
) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr.split(":")[0]) == (2, "", code)
    assert not (project.workspace / "index.sqlite").exists()


def test_two_processes_share_a_workspace_and_ask_for_no_case_twice(plugins: Path, project: Inventory) -> None:
    command = [sys.executable, "-P", "-m", "casebound", "run", "--workspace", "workspace", "--jobs", "2"]
    variables = {**os.environ, "PYTHONPATH": str(plugins)}
    both = [
        subprocess.Popen([*command, "--format", "json"], cwd=project.folder, env=variables, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert sorted(calls(project.folder)) == sorted(["plan", "assessment", "interpretation"] * 3)
    assert sum(one["had"] for one in answers) == 3
    assert sum(one["dispatches"] for one in answers) == 9


# --- other places -----------------------------------------------------------------------------------------------------

RUNNER = '''
import asyncio
from casebound import hookimpl
from casebound.specs import Runner

@hookimpl
def casebound_runners():
    return [Runner("programs", run=f"{__name__}:run")]

async def run(jobs, most):
    """Each case in a process of its own, one after the other."""
    async for job in jobs:
        process = await asyncio.create_subprocess_exec(*job.command, stdout=asyncio.subprocess.DEVNULL)
        await process.wait()
'''


def test_a_runner_of_a_plugin_may_work_on_each_case_in_a_process_of_its_own(
    run: Run, plugins: Path, project: Inventory
) -> None:
    write_distribution(plugins, "casebound-programs", RUNNER)
    project.configure(behave("answer") + '\n[workspace]\nrunner = "programs"\n')
    done = run("--format", "json")
    assert done.returncode == 0, done.stderr
    assert (answer(done)["cases"], answer(done)["had"], answer(done)["left"]) == ({"interpreted": 3}, 3, 0)
    assert len(calls(project.folder)) == 9


def test_a_runner_that_breaks_ends_the_run_and_is_named(run: Run, plugins: Path, project: Inventory) -> None:
    write_distribution(
        plugins, "casebound-programs", RUNNER.replace("async for job in jobs:", "async for job in 1 / 0:")
    )
    project.configure(behave("answer") + '\n[workspace]\nrunner = "programs"\n')
    done = run("--format", "json")
    assert done.returncode == 1
    assert answer(done)["stopped"] == "PLUGIN_BROKEN"
    assert calls(project.folder) == []


def test_the_lease_of_somebody_else_is_not_worked_under(run: Run, project: Inventory) -> None:
    run("--stop-after", "admission")
    done = run("--package-id", "INC-1", "--leased", "nobody")
    assert (done.returncode, done.stderr.split(":")[0], calls(project.folder)) == (1, "CASE_BUSY", [])


def test_more_cases_at_once_than_the_system_has_files_for_are_refused(project: Inventory, plugins: Path) -> None:
    command = f"ulimit -n 200; exec '{sys.executable}' -P -m casebound run --workspace workspace --jobs"
    variables = {**os.environ, "PYTHONPATH": str(plugins)}
    for jobs, status in ((64, 2), (1, 0)):
        done = subprocess.run(
            ["bash", "-c", f"{command} {jobs}"], cwd=project.folder, env=variables, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        if status:
            assert "1 at most" in done.stderr


def test_the_python_call_returns_what_the_command_prints(project: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    project.configure(behave("answer").replace('"scripted"', '"offline"').replace("[llm.scripted]\nbehaviour", "#"))
    summary = casebound.run(workspace="workspace", stop_after="construction", jobs=2)
    assert (summary.cases, summary.exit_status) == ({"built": 3}, 0)
