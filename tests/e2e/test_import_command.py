"""`casebound import`, in a process of its own: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import casebound
import pytest
from casebound.contracts.case import Admission
from casebound.settings import load_settings
from casebound.store import Workspace, layout
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.verification import verify_package
from casebound.workspace.index import Index

OF_GH = [
    {
        "author": {"login": "reporter"},
        "body": f"The host edge-proxy-canary does not answer. Try {number}.\r\n",
        "comments": [{"author": {"login": "x"}, "body": "Same here.", "createdAt": "2026-03-01T10:00:00Z"}],
        "createdAt": "2026-03-01T09:00:00Z",
        "labels": [{"name": "bug"}],
        "number": number,
        "state": "OPEN",
        "title": f"Proxy down {number}",
        "url": f"https://github.com/acme/router/issues/{number}",
    }
    for number in range(1, 4)
]
OF_REST = [
    {
        "url": "https://api.github.com/repos/acme/router/issues/12",
        "html_url": "https://github.com/acme/router/issues/12",
        "repository_url": "https://api.github.com/repos/acme/router",
        "number": 12,
        "title": "Proxy down",
        "body": None,
        "user": {"login": "reporter"},
        "comments": 3,
        "labels": [{"name": "bug"}],
    },
    {
        "url": "https://api.github.com/repos/acme/router/issues/13",
        "html_url": "https://github.com/acme/router/pull/13",
        "number": 13,
        "title": "Mend it",
        "body": "",
        "comments": 0,
        "pull_request": {"url": "https://api.github.com/repos/acme/router/pulls/13"},
    },
]


@pytest.fixture
def project(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path / "project", settings=behave("LLM_AUTH"))


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    return install_inventory(tmp_path / "plugins")


def run(project: Inventory, plugins: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_casebound(["import", *arguments], plugins=plugins, cwd=project.folder)


def piped(project: Inventory, plugins: Path, data: bytes, *arguments: str) -> dict[str, object]:
    command = [sys.executable, "-P", "-m", "casebound", "import", "--format", "json", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    done = subprocess.run(command, input=data, cwd=project.folder, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def workspace(project: Inventory) -> Workspace:
    return Workspace(project.folder / ".casebound")


def test_exports_files_and_folders_are_imported_at_once(project: Inventory, plugins: Path) -> None:
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    (project.folder / "rest.json").write_text(json.dumps(OF_REST, indent=2))
    (project.folder / "more").mkdir()
    (project.folder / "more" / "lines.jsonl").write_text('{"id": "a", "body": "A"}\n{"id": "b", "bo\n')
    done = run(project, plugins, "gh.json", "rest.json", "more", "report.md", "--format", "json")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    (refused,) = answer.pop("refused")
    assert answer == {"imported": 6, "known": 0, "passed_over": 1, "refused_total": 1}
    assert (refused["report"], refused["code"]) == ("more/lines.jsonl, line 2", "REPORT_SYNTAX")
    assert done.stderr.splitlines() == [
        "1 pull request passed over: no report",
        "1 issue with comments that the export does not hold;"
        " `gh issue list --json number,title,body,comments,url` exports them",
    ]
    ids = workspace(project).package_ids()
    assert ids == ["INC-7", "a", "router#1", "router#12", "router#2", "router#3"]
    package = workspace(project).package("router#1")
    admission = package.load(layout.ADMISSION, Admission)
    assert json.loads(package.require(layout.source(admission.file))) == OF_GH[0]


def test_a_second_import_adds_nothing(project: Inventory, plugins: Path) -> None:
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    first, second = run(project, plugins, "gh.json"), run(project, plugins, "gh.json")
    assert (first.returncode, first.stdout, first.stderr) == (0, "3 imported, 0 known\n", "")
    assert (second.returncode, second.stdout) == (0, "0 imported, 3 known\n")


def test_standard_input_may_be_an_array_lines_or_a_report(project: Inventory, plugins: Path) -> None:
    imported = [
        piped(project, plugins, json.dumps(OF_GH).encode(), "-")["imported"],
        piped(project, plugins, b'\xef\xbb\xbf{"id": "a", "body": "A"}\r\n{"id": "b", "body": "B"}', "-")["imported"],
        piped(project, plugins, json.dumps(OF_GH[0] | {"url": "https://h/o/r/issues/1"}, indent=1).encode(), "-")[
            "imported"
        ],
        piped(project, plugins, b"# Down\n\nThe host is down.\n", "-", "--package-id", "down")["imported"],
        piped(project, plugins, b"[]", "-")["imported"],
        piped(project, plugins, b'{"id": "c", "body": "C"}', "/dev/stdin")["imported"],
    ]
    assert imported == [3, 2, 1, 1, 0, 1]
    files = {name: workspace(project).package(name).load(layout.ADMISSION, Admission).file for name in ("a", "down")}
    assert files == {"a": "stdin.jsonl", "down": "stdin.md"}


def test_the_index_knows_what_was_imported(project: Inventory, plugins: Path) -> None:
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    assert run(project, plugins, "gh.json").returncode == 0
    index = Index.open(workspace(project), load_settings(project.folder / "casebound.toml"), project.clock)
    assert [(row.package_id, row.state) for row in index.rows()] == [(f"router#{n}", "admitted") for n in (1, 2, 3)]
    index.close()


@pytest.mark.spec("A-119")
def test_preparing_asks_no_model(project: Inventory, plugins: Path) -> None:
    """The provider raises on any call, and logs it first; the database is not there."""
    project.database.unlink()
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    assert run(project, plugins, "gh.json").returncode == 0
    for number in (1, 2, 3):
        package = workspace(project).package(f"router#{number}")
        assert package.names("") == ["admission.json", "package.json", "source"]
    done = run_casebound(["run", "--stop-after", "construction"], plugins=plugins, cwd=project.folder)
    assert done.returncode == 0, done.stderr
    for number in (1, 2, 3):
        package = workspace(project).package(f"router#{number}")
        assert package.exists(layout.CASE)
        assert verify_package(package.root, project.host()).answer == "unfinished"  # and what is there holds
    assert calls(project.folder) == []


def test_the_python_call_does_what_the_command_does(project: Inventory, monkeypatch) -> None:
    project.configure('[project]\nname = "p"\n[llm]\nprovider = "offline"\n')
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    monkeypatch.chdir(project.folder)
    for imported, known in ((3, 0), (0, 3)):
        summary = casebound.import_reports("gh.json")
        assert (summary.imported, summary.known, summary.exit_status) == (imported, known, 0)
    fresh = casebound.import_reports(project.report, workspace=project.folder / "other", package_id="mine")
    assert fresh.to_json() == {"imported": 1, "known": 0, "passed_over": 0, "refused": [], "refused_total": 0}


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        ((), 2, "Missing argument"),
        (("nothing.md",), 1, "REPORT_UNREADABLE"),
        (("two.jsonl", "--package-id", "x"), 2, "USAGE"),
        (("report.md", "--project-config", "nothing.toml"), 2, "SETTINGS_FILE"),
        (("report.md", "--workspace", "/dev/null/x"), 3, "WORKSPACE_WRITE"),
    ],
)
def test_each_end_has_its_exit_status(project: Inventory, plugins: Path, arguments, status, word) -> None:
    (project.folder / "two.jsonl").write_text('{"id": "a", "body": "A"}\n{"id": "b", "body": "B"}\n')
    done = run(project, plugins, *arguments)
    assert (done.returncode, word in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_standard_input_that_is_closed_is_refused(project: Inventory, plugins: Path) -> None:
    command = f'"{sys.executable}" -P -m casebound import - report.md <&-'
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    done = subprocess.run(
        ["sh", "-c", command], cwd=project.folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "1 imported, 0 known, 1 refused\n")
    assert "REPORT_UNREADABLE" in done.stderr


def test_a_pipe_is_told_now_and_then_and_a_name_that_is_no_text_is_shown(project: Inventory, plugins: Path) -> None:
    (project.folder / "many.jsonl").write_text("5\n" * 2001)
    with open(os.fsencode(project.folder) + b"/\xff\x1b.md", "wb") as file:
        file.write(b"\0")
    done = run(project, plugins, "many.jsonl", ".", "--format", "json")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if "imported" in line][:2] == [
        f"0 imported, 0 known, {count} refused" for count in (1000, 2000)
    ]
    answer = json.loads(done.stdout)
    assert (len(answer["refused"]), answer["refused_total"]) == (50, 4003)
    assert "\x1b" not in done.stderr


def test_a_terminal_gets_a_bar(project: Inventory, plugins: Path) -> None:
    (project.folder / "gh.json").write_text(json.dumps(OF_GH))
    terminal, inside = pty.openpty()
    command = [sys.executable, "-P", "-m", "casebound", "import", "gh.json"]
    environment = {**os.environ, "PYTHONPATH": str(plugins), "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        command, cwd=project.folder, env=environment, stdout=subprocess.PIPE, stderr=inside, timeout=60
    )
    os.close(inside)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert (done.returncode, done.stdout) == (0, b"3 imported, 0 known\n")
    assert "100%" in shown
    assert "3 imported, 0 known" in shown


def test_ctrl_c_leaves_whole_cases_and_the_same_command_goes_on(project: Inventory, plugins: Path) -> None:
    lines = [json.dumps({"id": f"r-{number}", "body": "B"}).encode() + b"\n" for number in range(1, 401)]
    command = [sys.executable, "-P", "-m", "casebound", "import", "-", "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(plugins)}
    with subprocess.Popen(
        command,
        cwd=project.folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=listen_to_ctrl_c,
    ) as process:
        process.stdin.write(b"".join(lines[:200]) + b'{"id": "last", "body": "' + b" " * (1 << 17))
        process.stdin.flush()  # it has read the 200, and waits for more of the last
        while len(workspace(project).package_ids()) < 190:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the same command goes on" in told
    for name in workspace(project).package_ids():
        assert workspace(project).package(name).exists(layout.ADMISSION)
    answer = piped(project, plugins, b"".join(lines), "-")
    assert answer["imported"] + answer["known"] == 400
    assert answer["known"] >= 190


def test_a_folder_without_a_report_is_told_and_is_no_error(project: Inventory, plugins: Path) -> None:
    (project.folder / "empty").mkdir()
    done = run(project, plugins, "empty")
    assert (done.returncode, done.stdout) == (0, "0 imported, 0 known\n")
    assert done.stderr == "nothing that is a report was found\n"
