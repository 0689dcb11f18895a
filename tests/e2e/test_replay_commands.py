"""A live run over HTTP becomes a file, and the file answers in its place: no key, no server, no code of a vendor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from casebound.api import Project, record
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Loopback, RecordedRequest, Response
from casebound.testing.scripted import FixedClock

CANARY = "cAnArY-77aa"
ACCEPTED = ("plan.json", "candidates.json", "assessment.json", "context.json", "interpretation.json", "summary.md")
ANSWERS = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}


def settings(url: str) -> str:
    text = settings_text().replace('provider = "scripted"', 'provider = "openai"')
    return text + f'[llm.openai]\nbase_url = "{url}/v1"\napi_key_env = "REPLAY_TEST_KEY"\n'


def chat(request: RecordedRequest) -> Response:
    """Answer validly, as a server of the common dialect does."""
    message = json.loads(json.loads(request.body)["messages"][1]["content"])
    choice = {"message": {"content": json.dumps(ANSWERS[message["task"]](message))}, "finish_reason": "stop"}
    return Response(
        body=json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}).encode()
    )


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inventory:
    """A case that a server answered; afterwards the server is gone, and so is the key."""
    with Loopback(CANARY) as server:
        server.answer(chat)
        inventory = write_inventory(tmp_path / "live", settings=settings(server.url))
        with monkeypatch.context() as environment:
            environment.setenv("REPLAY_TEST_KEY", CANARY)
            project = Project.open(inventory.folder / "casebound.toml", clock=FixedClock())
            [result] = project.resolve([inventory.report])
            project.close()
        assert result.state == "interpreted"
        assert len(server.requests) == 3
    return inventory


def case(inventory: Inventory) -> Path:
    return inventory.folder / ".casebound" / "cases" / "INC-7"


def accepted(inventory: Inventory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in case(inventory).rglob("*") if path.name in ACCEPTED}


def copy(live: Inventory, folder: Path) -> Inventory:
    return write_inventory(folder, settings=(live.folder / "casebound.toml").read_text(encoding="utf-8"))


@pytest.mark.spec("A-045", "A-113m")
def test_a_live_run_becomes_an_offline_fixture_with_equal_accepted_bytes(live: Inventory, tmp_path: Path) -> None:
    recording = tmp_path / "replies.json"
    record(case(live), recording)
    assert CANARY.encode() not in recording.read_bytes()
    assert b"127.0.0.1" not in recording.read_bytes()
    empty = copy(live, tmp_path / "empty")
    project = Project.open(empty.folder / "casebound.toml", clock=FixedClock(), replay_from=recording)
    [result] = project.resolve([empty.report])
    project.close()
    assert result.state == "interpreted"
    assert set(accepted(live)) == set(ACCEPTED)
    assert accepted(empty) == accepted(live)


def test_the_commands_record_and_replay_and_verify(live: Inventory, tmp_path: Path) -> None:
    empty = copy(live, tmp_path / "empty")

    def run(*arguments: str) -> CompletedProcess[str]:
        return run_casebound(arguments, cwd=empty.folder)

    done = run("record", str(case(live)), "--out", "replies.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "replies.json\n", "")
    again = run("record", str(case(live)), "--out", "replies.json")
    assert (again.returncode, again.stderr.splitlines()[0]) == (2, "OUTPUT_FILE: the file cannot be written")
    without_key = run("resolve", "report.md")
    assert (without_key.returncode, "SETTINGS_VARIABLE" in without_key.stderr) == (2, True)
    done = run("resolve", "report.md", "--replay-from", "replies.json", "--format", "json")
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert (line["state"], line["tokens"]) == ("interpreted", {"input": 27, "output": 9})
    assert line["replayed"].startswith("sha256:")
    done = run("resolve", "report.md", "--replay-from", "replies.json")  # its case is finished: it is only shown again
    assert f"replies replayed from the recording  {line['replayed']}" in done.stdout
    assert done.stderr == "INC-7 was finished before: nothing was replayed; name an empty --workspace\n"
    assert run("verify", str(case(empty))).returncode == 0
    assert accepted(empty) == accepted(live)


def test_a_replay_imports_neither_a_client_nor_a_provider(live: Inventory, tmp_path: Path) -> None:
    empty = copy(live, tmp_path / "empty")
    script = f"""if True:
        import sys, socket
        socket.socket.connect = None
        from casebound.__main__ import main
        sys.argv = ["casebound", "resolve", "report.md", "--replay-from", {str(case(live))!r}]
        status = main()
        print(*sorted(sys.modules), file=sys.stderr)
        sys.exit(status)
    """
    done = subprocess.run([sys.executable, "-c", script], cwd=empty.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "casebound.llm.replay" in loaded
    assert loaded & {"httpx", "aiohttp", "casebound_llm_openai.provider", "casebound.llm.http.sender"} == set()


def test_a_request_that_differs_never_reaches_the_provider_of_the_settings(tmp_path: Path) -> None:
    plugins = install_inventory(tmp_path / "plugins")
    project = write_inventory(tmp_path / "project", settings=behave("answer"))

    def run(*arguments: str) -> CompletedProcess[str]:
        return run_casebound(arguments, plugins=plugins, cwd=project.folder)

    assert run("resolve", "report.md").returncode == 0
    assert len(calls(project.folder)) == 3
    other = project.folder / "other.txt"
    other.write_text("batch-runner is slow.")
    done = run("resolve", "other.txt", "--replay-from", str(case(project)), "--format", "json")
    line = json.loads(done.stdout)
    assert (done.returncode, line["code"], line["state"]) == (1, "REPLAY_MISMATCH", "researched")
    assert "where: stage plan, attempt 1\n" in line["error"]
    assert "user.sources" in line["error"]
    assert len(calls(project.folder)) == 3
    assert not list((project.folder / ".casebound/cases").glob("c-*/**/attempts/*"))
    done = run("resolve", "other.txt", "--replay-from", "nowhere.json")
    assert (done.returncode, "REPLAY_SOURCE" in done.stderr) == (2, True)
