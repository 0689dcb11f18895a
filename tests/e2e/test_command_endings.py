"""How commands about cases end, and what a terminal gets: closed pipes, Ctrl-C, a pty, characters that nobody sees."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from casebound.cli.program import run
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.terminal import on_a_terminal

HIDDEN = {"\u200b": "⟦U+200B⟧", "\u202e": "⟦U+202E⟧", "\x1b": "⟦U+001B⟧", "\u00a0": "⟦U+00A0⟧"}


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    return install_inventory(tmp_path / "plugins")


@pytest.fixture
def project(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path / "project", settings=behave("answer"))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "casebound", *arguments]


def variables(plugins: Path, **more: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(plugins), **more}


# --- pipes and signals ------------------------------------------------------------------------------------------------


def test_a_closed_pipe_ends_a_run_quietly_and_leaves_whole_cases(plugins: Path, project: Inventory) -> None:
    reports = []
    for number in range(3):
        (project.folder / f"r{number}.txt").write_text(f"batch-runner and edge-proxy-canary, take {number}.")
        reports.append(f"r{number}.txt")
    process = subprocess.Popen(
        command("resolve", *reports, "--format", "json"),
        cwd=project.folder,
        env=variables(plugins),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["report"] == "r0.txt"
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 1
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert "Exception ignored" not in said
    assert list((project.folder / ".casebound" / "tmp").iterdir()) == []
    whole = run_casebound(["resolve", *reports], plugins=plugins, cwd=project.folder)
    assert whole.returncode == 0
    assert calls(project.folder) == ["plan", "assessment", "interpretation"] * 3


@pytest.mark.parametrize("arguments", [["resolve", "report.md"], ["show", "INC-7"], ["explain", "INC-7"]])
def test_a_reader_that_is_gone_before_the_first_byte_is_no_traceback(
    plugins: Path, project: Inventory, arguments: list[str]
) -> None:
    assert run_casebound(["resolve", "report.md"], plugins=plugins, cwd=project.folder).returncode == 0
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command(*arguments), cwd=project.folder, env=variables(plugins), stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["--version", "resolve report.md", "show INC-7"])
def test_a_stream_that_is_closed_from_the_beginning_is_no_fault_of_anything(
    plugins: Path, project: Inventory, arguments: str, closed: str
) -> None:
    assert run_casebound(["resolve", "report.md"], plugins=plugins, cwd=project.folder).returncode == 0
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -P -m casebound {arguments} {closed}', sys.executable],
        cwd=project.folder,
        env=variables(plugins),
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize("command", ["show", "explain"])
def test_an_output_that_cannot_be_written_is_no_fault_of_the_package(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = write_inventory(tmp_path / "plain")
    project.resolve(InventoryModel())
    project.configure(settings_text().replace('provider = "scripted"', 'provider = "offline"'))
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(sys, "stdout", gone)
    places = {"--project-config": project.folder / "casebound.toml", "--workspace": project.package().root.parents[1]}
    assert run([command, "INC-7", *(str(part) for place in places.items() for part in place)]) == 1
    said = capsys.readouterr().err
    assert "closed file" in said
    assert "VERIFY_FAILED" not in said


def test_ctrl_c_while_a_model_hangs_ends_with_130_and_the_case_goes_on_later(plugins: Path, project: Inventory) -> None:
    project.configure(behave("hang"))
    process = subprocess.Popen(
        command("resolve", "report.md"),
        cwd=project.folder,
        env=variables(plugins),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=listen_to_ctrl_c,
    )
    assert process.stderr is not None
    said = b""
    while not said.endswith(b"hanging\n"):
        line = process.stderr.readline()
        assert line, said
        said += line
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, b"")
    assert b"Traceback" not in errors
    package = project.folder / ".casebound" / "cases" / "INC-7"
    attempt = package / "analysis/interpretations/0001/entity-resolution/attempts/plan-0001"
    assert [path.name for path in attempt.iterdir()] == ["request.json"]
    assert list((project.folder / ".casebound" / "tmp").iterdir()) == []

    project.configure(behave("answer"))
    done = run_casebound(["resolve", "report.md", "--format", "json"], plugins=plugins, cwd=project.folder)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (0, "interpreted")
    assert calls(project.folder) == ["plan", "plan", "assessment", "interpretation"]
    assert run_casebound(["verify", str(package)], plugins=plugins).returncode == 0


# --- a terminal -------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_colours_a_status_line_and_whole_paths(plugins: Path, project: Inventory) -> None:
    environment = variables(plugins, TERM="xterm-256color", COLUMNS="60", LC_ALL="C.UTF-8")
    environment = {name: value for name, value in environment.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    status, output, errors = on_a_terminal(command("resolve", "report.md"), cwd=project.folder, environment=environment)
    assert status == 0, errors
    assert "\x1b[" in output
    assert "edge-proxy-canary" in output
    assert str(project.folder / ".casebound/cases/INC-7/analysis/interpretations/0001/summary.md") in output
    assert "interpretation" in errors  # the last step of the status line
    assert errors.rfind("\x1b[?25h") > errors.rfind("\x1b[?25l") >= 0  # the cursor is there again
    status, output, _ = on_a_terminal(command("explain", "INC-7"), cwd=project.folder, environment=environment)
    assert status == 0
    assert "\x1b[" in output


def test_a_dumb_terminal_gets_no_escapes(plugins: Path, project: Inventory) -> None:
    environment = variables(plugins, TERM="dumb", LC_ALL="C.UTF-8")
    status, output, errors = on_a_terminal(command("resolve", "report.md"), cwd=project.folder, environment=environment)
    assert status == 0, errors
    assert "\x1b" not in output


# --- characters that nobody sees --------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_hidden_characters_and_markup_of_report_and_rows_are_shown_as_text(
    plugins: Path, project: Inventory, terminal: bool
) -> None:
    name = "edge-proxy-canary" + "".join(HIDDEN) + "[red]x[/red]"
    with closing(sqlite3.connect(project.database)) as database:
        database.execute("update hosts set fqdn = ? where id = 12", (name,))
        database.execute("update services set title = ? where id = 431", (f"run{name}",))
        database.commit()
    text = f"---\nid: INC-7\ntitle: T{name}\n---\n\nservice=431: edge-proxy-canary and batch-runner {name}.\n"
    project.report.write_text(text, encoding="utf-8", newline="")
    environment = variables(plugins, TERM="xterm", COLUMNS="400", LC_ALL="C.UTF-8", NO_COLOR="1")
    for arguments in (["resolve", "report.md"], ["explain", "INC-7"], ["show", "INC-7"]):
        if terminal:
            status, output, _ = on_a_terminal(command(*arguments), cwd=project.folder, environment=environment)
        else:
            done = run_casebound(arguments, plugins=plugins, cwd=project.folder)
            status, output = done.returncode, done.stdout
        assert status == 0, output
        assert "".join(HIDDEN.values()) + "[red]x[/red]" in output
        for sign in ("\u200b", "\u202e", "\u00a0"):
            assert sign not in output
        assert "\x1b[red" not in output
        if not terminal:
            assert "\x1b" not in output


def test_a_narrow_encoding_gets_lines_that_it_has(plugins: Path, project: Inventory) -> None:
    narrow = {"PYTHONIOENCODING": "ascii"}
    done = run_casebound(["resolve", "report.md"], plugins=plugins, cwd=project.folder, environment=narrow)
    assert done.returncode == 0, done.stderr
    assert "\n|- host 12" in done.stdout
    assert done.stdout.isascii()


def test_a_file_name_that_is_not_text_ends_cleanly(plugins: Path, project: Inventory) -> None:
    name = os.fsdecode(b"r\xff.md")
    try:
        (project.folder / name).write_bytes(project.report.read_bytes())
    except OSError:
        pytest.skip("capability: this file system takes no such name")
    for form in ("text", "json"):
        done = run_casebound(["resolve", name, "--format", form], plugins=plugins, cwd=project.folder)
        assert "Traceback" not in done.stderr
        assert "CONTRACT" not in done.stderr
        assert done.returncode in (0, 2)
