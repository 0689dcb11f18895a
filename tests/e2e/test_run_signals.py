"""Ctrl-C and SIGTERM, sent to the real command while it talks to a model server: what is recorded, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from casebound.progress import derive_progress
from casebound.testing.distributions import listen_to_ctrl_c, write_distribution
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Loopback, RecordedRequest, Response
from casebound.testing.runs import rows_of
from casebound.workspace.row import CaseRow

pytest.importorskip("casebound_llm_openai")

REPLIES = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}
PATIENCE_S = 60.0
SIGNALS = [signal.SIGINT, signal.SIGTERM]


class HoldingServer(Loopback):
    """Answers validly, once it is let go; `status` makes it refuse instead."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.status = 200
        self.answer(self._chat)

    def tasks(self) -> list[str]:
        """Return what was asked for, in order of arrival."""
        return [self._message(request)["task"] for request in list(self.requests)]

    def close(self) -> None:
        """Let everybody go, then end."""
        self.go.set()
        super().close()

    def _chat(self, request: RecordedRequest) -> Response:
        self.go.wait(PATIENCE_S)
        message = self._message(request)
        text = json.dumps(REPLIES[message["task"]](message))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return Response(self.status, json.dumps({"choices": [choice], "usage": usage}).encode())

    def _message(self, request: RecordedRequest) -> dict[str, str]:
        message: dict[str, str] = json.loads(json.loads(request.body)["messages"][1]["content"])
        return message


@pytest.fixture
def server() -> Iterator[HoldingServer]:
    with HoldingServer() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: HoldingServer) -> Inventory:
    project = write_inventory(tmp_path / "project")
    project.admit(4)
    configure(project, server)
    return project


def configure(project: Inventory, server: HoldingServer, more: str = "") -> None:
    text = settings_text(more=more).replace('"scripted"', '"openai"')
    project.configure(text + f'\n[llm.openai]\nbase_url = "{server.url}/v1"\n')


def start(project: Inventory, *options: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "casebound", "run", "--workspace", "workspace", "--format", "json", *options],
        cwd=project.folder,
        env={**os.environ},
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        preexec_fn=listen_to_ctrl_c,
    )


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Read standard error until a line holds `word`, and return that line."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    raise AssertionError(f"never said: {word}")


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors
    return process.returncode, output, errors


def states(project: Inventory) -> list[str]:
    return [derive_progress(project.package(f"INC-{number}")).state for number in range(4)]


def is_resumable(project: Inventory, server: HoldingServer) -> bool:
    """Whether nothing was left half written or leased, and a run without an interruption finishes every case."""
    assert list((project.workspace / "tmp").iterdir()) == []
    assert all(row.lease_owner is None for row in rows_of_inventory(project).values())
    return is_finished_by_a_run(project, server)


def is_finished_by_a_run(project: Inventory, server: HoldingServer) -> bool:
    server.go.set()
    status, _, errors = end(start(project))
    assert status == 0, errors
    return states(project) == ["interpreted"] * 4


def rows_of_inventory(project: Inventory) -> dict[str, CaseRow]:
    text = (project.folder / "casebound.toml").read_text()
    project.configure(settings_text())
    try:
        return rows_of(project)
    finally:
        project.configure(text)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_records_what_is_in_flight_and_starts_nothing_new(
    project: Inventory, server: HoldingServer, number: signal.Signals
) -> None:
    process = start(project, "--jobs", "2")
    assert server.wait_for_requests(2)
    process.send_signal(number)
    said = read_until(process, "interrupted")
    assert "waiting for 2 calls in flight" in said
    server.go.set()
    status, output, _ = end(process)
    assert status == 130
    assert json.loads(output)["stopped"] == "interrupted"
    assert server.tasks() == ["plan", "plan"]
    assert sorted(states(project)) == ["admitted", "admitted", "looked_up", "looked_up"]
    assert is_resumable(project, server)
    assert sorted(server.tasks()) == sorted(["plan", "assessment", "interpretation"] * 4)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_ends_at_once_and_every_case_can_go_on(
    project: Inventory, server: HoldingServer, number: signal.Signals
) -> None:
    process = start(project, "--jobs", "2")
    assert server.wait_for_requests(2)
    process.send_signal(number)
    read_until(process, "interrupted")
    process.send_signal(number)
    status, output, _ = end(process)
    assert (status, output) == (130, "")
    assert server.tasks() == ["plan", "plan"]
    assert is_resumable(project, server)
    assert server.tasks().count("plan") == 6  # nobody waited for two replies: they are asked for again


def test_a_signal_ends_a_run_that_waits_for_a_retry(project: Inventory, server: HoldingServer) -> None:
    server.status = 503
    server.go.set()
    process = start(project, "--wait", "--log", "json")
    read = [json.loads(read_until(process, '"retry_pending"')) for _ in range(4)]
    assert {event["state"] for event in read} == {"retry_pending"}
    process.send_signal(signal.SIGTERM)
    status, output, _ = end(process)
    assert (status, json.loads(output)["cases"]) == (130, {"retry_pending": 4})
    assert len(server.tasks()) == 4


def test_a_signal_ends_the_waiting_for_a_turn(project: Inventory, server: HoldingServer) -> None:
    configure(project, server, more="[limits]\nrequests_per_minute = 1\n")
    process = start(project, "--jobs", "4")
    assert server.wait_for_requests(1)
    process.send_signal(signal.SIGINT)
    assert "waiting for 1 call in flight" in read_until(process, "interrupted")
    server.go.set()
    status, output, _ = end(process)
    assert (status, json.loads(output)["dispatches"]) == (130, 1)
    assert server.tasks() == ["plan"]


PHASE = """
import pathlib, time
from casebound import hookimpl
from casebound.specs import Phase

@hookimpl
def casebound_phases():
    return [Phase("endless", after="interpretation", run=f"{__name__}:run")]

def run(package):
    pathlib.Path("endless").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
"""


def test_the_second_signal_waits_for_no_thread(
    project: Inventory, server: HoldingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up, or a phase of a plugin, works in a thread that nobody can end."""
    write_distribution(tmp_path / "plugins", "casebound-endless", PHASE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plugins"))
    server.go.set()
    process = start(project, "--jobs", "1")
    wait_until((project.folder / "endless").exists)
    process.send_signal(signal.SIGINT)
    assert "waiting for what is being recorded" in read_until(process, "interrupted")
    process.send_signal(signal.SIGTERM)
    status, output, _ = end(process)
    assert (status, output) == (130, "")
    (project.folder / "go").touch()
    assert is_finished_by_a_run(project, server)  # its lease is that of a dead process, and free


SLOW_PLUGIN = """
import pathlib, time
from casebound import hookimpl

pathlib.Path("loading").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)

@hookimpl
def casebound_runners():
    return []
"""


def test_a_signal_before_there_is_anything_to_end_in_order_ends_at_once(
    project: Inventory, server: HoldingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(tmp_path / "plugins", "casebound-slow", SLOW_PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "plugins"))
    process = start(project)
    wait_until((project.folder / "loading").exists)
    process.send_signal(signal.SIGTERM)
    status, output, _ = end(process)
    assert (status, output, server.tasks()) == (130, "", [])


def wait_until(condition: Callable[[], bool]) -> None:
    over = threading.Event()
    for _ in range(int(PATIENCE_S * 100)):
        if condition():
            return
        over.wait(0.01)
    raise AssertionError("it never came")


def test_a_reader_that_leaves_ends_the_run_in_order(project: Inventory, server: HoldingServer) -> None:
    """`casebound run | head -1`: what is in flight is recorded, and there is no traceback."""
    server.go.set()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "casebound", "run", "--workspace", "workspace", "--jobs", "1"],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(PATIENCE_S), errors) == (1, "")
    assert states(project).count("interpreted") in (1, 2)
    assert is_resumable(project, server)


def test_a_second_signal_ends_a_run_whose_output_nobody_reads(project: Inventory, server: HoldingServer) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    process = start(project, stderr=writing)
    wait_until(lambda: bool(server.tasks()))
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    for descriptor in (reading, writing):
        os.close(descriptor)
    assert is_finished_by_a_run(project, server)
