"""`bench live` and `bench compare` as commands, from the guide and against a server that counts what arrives."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from casebound.bench.corpus import load_corpus
from casebound.canonical import digest_of
from casebound.cli.program import run
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response

for plugin in ("casebound_bench_entity_link", "casebound_entity_link", "casebound_llm_offline", "casebound_llm_openai"):
    pytest.importorskip(plugin)

from casebound_bench_entity_link.corpus import LinkCorpus  # noqa: E402  # only where the plugin is installed

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "benchmark.md"
KEY = "canary-live-0123456789"
CORPUS = resources.files("casebound_bench_entity_link") / "corpora/entity-link-review-v1.json"
CASES = tuple(case.case_id for case in load_corpus(Path(str(CORPUS)), LinkCorpus).corpus.in_split("development"))


def fill_in(form: Path, corpus: Path) -> None:
    """Write what a person would into a copy of the form."""
    content = json.loads(form.read_bytes())
    content["reviewer"] = json.loads(corpus.read_bytes())["authors"][0]
    content["reviewedAt"], content["reviewedBeforeOutputs"] = "2026-01-01T08:00:00.000Z", True
    for decision in content["decisions"]:
        decision["decision"], decision["rationale"] = "approved", "read, and in order"
    form.write_text(json.dumps(content), encoding="utf-8")


def answer_same(request: RecordedRequest) -> Response:
    """Answer every case with `same_object`, as a server of chat completions does."""
    message = json.loads(json.loads(request.body)["messages"][1]["content"])
    sides = {
        side: {
            "entityId": message[side]["entityId"],
            "mentionIds": [message[side]["mentions"][0]["mentionId"]],
        }
        for side in ("left", "right")
    }
    reply = {"version": "entity-link-suggestion/v1", "assessment": "same_object", "rationale": "They are one.", **sides}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(reply)}}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    body = {"choices": [choice], "usage": usage, "model": "tiny-served", "id": "r-1"}
    return Response(body=json.dumps(body).encode(), headers={"content-type": "application/json"})


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(KEY) as loopback:
        loopback.answer(answer_same)
        yield loopback


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reviewed")
    assert run(["bench", "prepare", "entity-link", "--output", str(folder / "draft")]) == 0
    form = folder / "author-review.json"
    form.write_bytes((folder / "draft/author-review.template.json").read_bytes())
    fill_in(form, folder / "draft/corpus.json")
    flags = ["--self-review", str(form), "--output", str(folder / "bundle")]
    assert run(["bench", "prepare", "entity-link", *flags]) == 0
    return folder / "bundle"


def prepare(reviewed: Path, out: Path, *more: str, executor: str = "offline", cases=CASES, calls=None) -> int:
    flags = ["--bundle", str(reviewed), "--out", str(out), "--executor", executor, "--cases", ",".join(cases)]
    flags += ["--split", "development", "--max-calls", str(len(cases) if calls is None else calls)]
    return run(["bench", "live", "prepare", *flags, *more])


def plan_id(out: Path) -> str:
    return str(json.loads((out / "plan.json").read_bytes())["planId"])


def execution(out: Path) -> list[str]:
    """Return the command that executes the plan of `out`."""
    return ["bench", "live", "execute", "--out", str(out), "--confirm-plan", plan_id(out)]


def local(folder: Path, server: Loopback, more: str = "") -> list[str]:
    config = folder / "local.toml"
    config.write_text(f'[llm]\n{more}\n[llm.openai]\nbase_url = "{server.url}/v1"\napi_key_env = "T_LIVE_KEY"\n')
    return ["--llm-config", str(config), "--model", "tiny"]


# --- the guide ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-111", "B-118b")
def test_the_commands_of_the_guide_run_from_freezing_to_comparing(tmp_path: Path, server: Loopback) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    freeze, review, plan, confirm, count, model, compare, complete = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (settings,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    sh(freeze, tmp_path)
    fill_in(tmp_path / "author-review.json", tmp_path / "draft/corpus.json")
    assert "ready for exploration: yes; as gold: no" in sh(review, tmp_path)
    sh(plan, tmp_path)
    assert "complete: yes; stopped: no" in sh(confirmed(confirm, tmp_path / "rules"), tmp_path)
    assert "admitted 6" in sh(count, tmp_path)
    settings = settings.replace("http://127.0.0.1:8080", server.url)
    (tmp_path / "local.toml").write_text(settings, encoding="utf-8")
    prepared, executed = model.rsplit("casebound", 1)
    sh(prepared, tmp_path)
    assert server.requests == []
    sh(confirmed("casebound" + executed, tmp_path / "model"), tmp_path)
    assert len(server.requests) == 6
    assert "--complete-requests" in sh(compare, tmp_path, status=2)
    report = sh(complete, tmp_path)
    assert "comparison of complete requests; differs: maxOutputTokens, timeoutS, executor, model" in report
    for case in CASES:
        assert f"{case} 1" in report


def sh(commands: str, runs: Path, status: int = 0) -> str:
    """Run commands of the guide as a shell would; return what they printed."""
    commands = commands.replace('export RUNS="$(mktemp -d)"\n', "")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, "RUNS": str(runs), "PATH": path}
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=runs, env=environment, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == status, (commands, done.stdout, done.stderr)
    return done.stdout + done.stderr


def confirmed(commands: str, out: Path) -> str:
    assert commands.count("sha256:…") == 1
    return commands.replace("sha256:…", plan_id(out))


# --- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-114", "B-115")
def test_a_wrong_number_of_calls_or_a_case_of_another_split_is_refused(reviewed, tmp_path, capsys) -> None:
    assert prepare(reviewed, tmp_path / "run", calls=5) == 2
    assert "5 calls for 6 cases" in capsys.readouterr().err
    validation = next(
        case["caseId"]
        for case in json.loads((reviewed / "corpus.json").read_bytes())["cases"]
        if case["split"] == "validation"
    )
    assert prepare(reviewed, tmp_path / "run", cases=(*CASES[:1], validation)) == 2
    assert "another split needs a plan and a folder of its own" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("B-103", "B-118")
def test_execute_demands_the_confirmation_of_exactly_this_plan(reviewed, tmp_path, capsys) -> None:
    out = tmp_path / "run"
    assert prepare(reviewed, out, cases=CASES[:1]) == 0
    assert run(["bench", "live", "execute", "--out", str(out)]) == 2
    assert run(["bench", "live", "execute", "--out", str(out), "--confirm-plan", "sha256:" + "1" * 64]) == 2
    assert "BENCH_LIVE" in capsys.readouterr().err
    assert sorted(path.name for path in out.iterdir()) == ["plan.json", "requests"]


@pytest.mark.spec("B-111", "B-118b")
def test_each_command_takes_the_repository_and_refuses_a_run_inside_it(reviewed, tmp_path, capsys) -> None:
    repository, out = ["--repository", str(GUIDE.parents[2])], tmp_path / "run"
    assert prepare(reviewed, out, *repository, cases=CASES[:1]) == 0
    execute = execution(out)
    check = ["bench", "live", "check", "--out", str(out)]
    assert [run([*command, *repository]) for command in (execute, check)] == [0, 0]
    capsys.readouterr()
    around = ["--repository", str(tmp_path)]
    assert [run([*command, *around]) for command in (execute, check)] == [2, 2]
    assert capsys.readouterr().err.count("BENCH_OUTPUT") == 2
    assert prepare(reviewed, tmp_path / "other", *around, cases=CASES[:1]) == 2
    assert not (tmp_path / "other").exists()


@pytest.mark.spec("B-126", "B-127")
def test_check_exits_zero_for_a_run_that_is_not_complete(reviewed, tmp_path, capsys) -> None:
    out = tmp_path / "run"
    assert prepare(reviewed, out, cases=CASES[:2]) == 0
    capsys.readouterr()
    assert run(["bench", "live", "check", "--out", str(out), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["complete"], found["stopped"], found["called"], found["maxCalls"]) == (False, False, 0, 2)


@pytest.mark.spec("B-124", "B-125", "B-128")
def test_a_server_that_fails_is_asked_once_and_the_run_stays_stopped(reviewed, tmp_path, server, monkeypatch) -> None:
    monkeypatch.setenv("T_LIVE_KEY", KEY)
    server.answer(answer_same, Response(status=429, headers={"retry-after": "1"}), answer_same)
    out = tmp_path / "run"
    assert prepare(reviewed, out, *local(tmp_path, server), executor="openai") == 0
    execute = execution(out)
    for _ in range(2):
        assert run(execute) == 1
        assert len(server.requests) == 2
    record = json.loads((out / "slots/0002/record.json").read_bytes())
    assert (record["status"], record["failure"]["code"]) == ("call_failure", "LLM_RATE_LIMITED")
    assert (out / "slots/0002/native.bin").exists()  # what the server said stands archived, failure or not
    assert run(["bench", "check", str(reviewed), "--captures", str(out / "captures.json")]) == 1


def test_a_connection_that_breaks_is_kept_as_a_failure_without_evidence(
    reviewed, tmp_path, server, monkeypatch
) -> None:
    monkeypatch.setenv("T_LIVE_KEY", KEY)
    server.answer(Response(fault=Fault.CUT))
    out = tmp_path / "run"
    assert prepare(reviewed, out, *local(tmp_path, server), executor="openai") == 0
    assert run(execution(out)) == 1
    assert json.loads((out / "slots/0001/ending.json").read_bytes())["code"] == "LLM_UNAVAILABLE"
    assert len(server.requests) == 1


@pytest.mark.spec("B-130")
def test_ctrl_c_ends_a_call_as_cancelled_and_a_repeated_command_does_not_make_it_again(
    reviewed, tmp_path, server, monkeypatch
) -> None:
    monkeypatch.setenv("T_LIVE_KEY", KEY)
    server.answer(Response(fault=Fault.HANG))
    out = tmp_path / "run"
    assert prepare(reviewed, out, *local(tmp_path, server), executor="openai") == 0
    execute = execution(out)
    command = [sys.executable, "-m", "casebound", *execute]
    with subprocess.Popen(command, preexec_fn=listen_to_ctrl_c, stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert server.wait_for_requests(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "slot 1 was cancelled, and the run is over" in said
    record = json.loads((out / "slots/0001/record.json").read_bytes())
    assert record["status"] == "cancelled"
    assert run(execute) == 1
    assert len(server.requests) == 1
    assert run(["bench", "check", str(reviewed), "--captures", str(out / "captures.json")]) == 1


def test_a_key_is_needed_only_to_execute_and_stands_nowhere(reviewed, tmp_path, server, monkeypatch, capsys) -> None:
    monkeypatch.delenv("T_LIVE_KEY", raising=False)
    out = tmp_path / "run"
    assert prepare(reviewed, out, *local(tmp_path, server), executor="openai", cases=CASES[:1]) == 0
    execute = execution(out)
    assert run(execute) == 2
    assert "T_LIVE_KEY" in capsys.readouterr().err
    assert not (out / "slots").exists()
    monkeypatch.setenv("T_LIVE_KEY", KEY)
    assert run(execute) == 0
    assert [request.canary_in for request in server.requests] == [("authorization",)]
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.spec("B-122", "B-126")
def test_check_derives_records_again_without_a_key_and_without_a_call(
    reviewed, tmp_path, server, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("T_LIVE_KEY", KEY)
    out = tmp_path / "run"
    assert prepare(reviewed, out, *local(tmp_path, server), executor="openai", cases=CASES[:2]) == 0
    assert run(["bench", "live", "execute", "--out", str(out), "--confirm-plan", plan_id(out)]) == 0
    monkeypatch.delenv("T_LIVE_KEY")
    check = ["bench", "live", "check", "--out", str(out)]
    assert run(check) == 0
    record, outcome = out / "slots/0002/record.json", out / "slots/0002/outcome.json"
    forged = record.read_bytes().replace(b"They are one.", b"They are two.")
    assert forged != record.read_bytes()
    outcome.write_bytes(outcome.read_bytes().replace(_digest(record.read_bytes()), _digest(forged)))
    record.write_bytes(forged)
    for name in ("captures.json", "captures.jsonl"):
        (out / name).unlink()
    capsys.readouterr()
    assert run(check) == 2
    said = capsys.readouterr().err
    assert ("BENCH_LIVE" in said, "slots/0002/record.json" in said) == (True, True)
    assert len(server.requests) == 2


def _digest(data: bytes) -> bytes:
    return digest_of(data).encode()


@pytest.mark.spec("B-112")
def test_preparing_a_live_run_makes_no_connection_and_starts_no_process(reviewed, tmp_path) -> None:
    guard = """
import socket, subprocess, sys
def never(*arguments, **options): raise SystemExit("somebody was asked")
socket.socket.connect = never
subprocess.Popen.__init__ = never
from casebound.canonical import digest_of
from casebound.cli.program import run
status = run(sys.argv[1:])
assert not [name for name in sys.modules if name.endswith("llm_openai.provider") or name in ("httpx", "aiohttp")]
sys.exit(status)
"""
    config = tmp_path / "local.toml"
    config.write_text('[llm.openai]\nbase_url = "http://127.0.0.1:9/v1"\n')
    flags = ["--bundle", str(reviewed), "--out", str(tmp_path / "run"), "--executor", "openai", "--model", "m"]
    flags += ["--split", "development", "--cases", CASES[0], "--max-calls", "1", "--llm-config", str(config)]
    done = subprocess.run(
        [sys.executable, "-c", guard, "bench", "live", "prepare", *flags], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.spec("B-111")
@pytest.mark.parametrize("option", ["--bundle", "--out", "--executor", "--max-calls", "--split", "--cases"])
def test_what_a_plan_needs_must_be_said(option: str, reviewed, tmp_path, capsys) -> None:
    flags = {
        "--bundle": str(reviewed),
        "--out": str(tmp_path / "run"),
        "--executor": "offline",
        "--max-calls": "1",
        "--split": "development",
        "--cases": CASES[0],
    }
    del flags[option]
    assert run(["bench", "live", "prepare", *(part for item in flags.items() for part in item)]) == 2
    assert option in capsys.readouterr().err


def test_compare_says_which_bundle_it_lacks(reviewed, tmp_path) -> None:
    out = tmp_path / "run"
    assert prepare(reviewed, out) == 0
    assert run(execution(out)) == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("captures.json", "captures.jsonl"):
        (moved / name).write_bytes((out / name).read_bytes())
    done = run_casebound(["bench", "compare", str(out), str(moved)])
    assert (done.returncode, "--bundle" in done.stderr) == (2, True)
    done = run_casebound(["bench", "compare", str(out), str(moved), "--bundle", str(reviewed), "--format", "json"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["kind"], found["differs"]) == ("one_measurement", [])
    assert [slot["a"] == slot["b"] for slot in found["slots"]] == [True] * 6
