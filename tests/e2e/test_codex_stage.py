"""The demo with one stage on the Codex CLI (scripted): the chain holds, and verifies without the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.canonical import canonical_bytes, digest_of
from casebound.testing.conformance.secret import CANARY
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound
from casebound.testing.scripted_program import Lifeline, Play, ScriptedProgram

PACKAGE = "cases/brewfest-wolpertinger"
REVISION = f"{PACKAGE}/analysis/interpretations/0001"
ATTEMPT = f"{REVISION}/entity-resolution/attempts/plan-0001"
VERSION = "codex-cli 0.171.0"
KEY = {"CODEX_KEY": CANARY}


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as it is: rules answer every stage."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    assert run_casebound(["demo", "--workspace", str(folder)]).returncode == 0
    return folder


@pytest.fixture
def program(by_rules: Path, tmp_path: Path) -> ScriptedProgram:
    """A Codex that says as plan what the rules say, beside a project in `tmp_path` that asks it."""
    for name in ("report.md", "world.db"):
        (tmp_path / name).write_bytes((by_rules / name).read_bytes())
    program = ScriptedProgram(tmp_path / "bin", "codex", VERSION)
    program.plays(Play(output=events(plan_of(by_rules))))
    settings = (by_rules / "casebound.toml").read_text(encoding="utf-8")
    (tmp_path / "casebound.toml").write_text(
        f'{settings}\n[llm.codex]\nprogram = "{program.path}"\napi_key_env = "CODEX_KEY"\n'
        '[llm.stage.plan]\nprovider = "codex"\nmodel = "gpt-6.2-sol"\n',
        encoding="utf-8",
    )
    return program


def plan_of(folder: Path) -> str:
    reply = json.loads((folder / ATTEMPT / "reply.json").read_bytes())
    text: str = reply["text"]
    return text


def events(text: str) -> bytes:
    lines: list[dict[str, object]] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}},
        {"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 70}},
    ]
    return b"".join(canonical_bytes(line) + b"\n" for line in lines)


def resolve(folder: Path) -> dict[str, object]:
    options = ["--project-config", str(folder / "casebound.toml"), "--workspace", str(folder), "--format", "json"]
    done = run_casebound(["resolve", str(folder / "report.md"), *options], environment=KEY)
    assert CANARY not in done.stdout + done.stderr
    line: dict[str, object] = json.loads(done.stdout)
    return line


def test_a_stage_on_codex_ends_where_the_rules_end_and_verifies_without_the_program(
    program: ScriptedProgram, by_rules: Path, tmp_path: Path
) -> None:
    line = resolve(tmp_path)
    assert (line["state"], line["resolver"]) == ("interpreted", "model")
    assert line["tokens"] == {"input": 900, "output": 70}
    for name in ("plan.json", "candidates.json", "assessment.json"):
        ours, theirs = (
            json.loads((folder / REVISION / "entity-resolution" / name).read_bytes()) for folder in (tmp_path, by_rules)
        )
        assert ours.get("reply") == theirs.get("reply")
    record = json.loads((tmp_path / ATTEMPT / "native.json").read_bytes())
    assert (tmp_path / ATTEMPT / "native.bin").read_bytes() == events(plan_of(by_rules))
    assert record["headers"] == {
        "codex-context": "effort: default of the server; CODEX_HOME: private",
        "codex-digest": digest_of(program.path.read_bytes()),
        "codex-version": VERSION,
        "exit-status": "0",
    }
    program.path.unlink()
    verified = run_casebound(["verify", str(tmp_path / PACKAGE), "--format", "json"])
    assert (verified.returncode, json.loads(verified.stdout)["answer"]) == (0, "holds")
    # What ran is bound by the seal: another version there does not hold.
    path = tmp_path / ATTEMPT / "native.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"0.171.0", b"0.172.0"))
    assert run_casebound(["verify", str(tmp_path / PACKAGE)]).returncode == 1


def test_the_key_stands_in_no_file_and_reaches_codex(program: ScriptedProgram, tmp_path: Path) -> None:
    resolve(tmp_path)
    files = [path for path in (tmp_path / "cases").rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    (call,) = program.calls
    assert CANARY in call.environment.values()


def test_an_empty_answer_is_corrected_and_a_rate_limit_waited_for(
    program: ScriptedProgram, by_rules: Path, tmp_path: Path
) -> None:
    failed = b'{"type":"turn.failed","error":{"message":"rate limit exceeded: slower"}}\n'
    empty = b'{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":0}}\n'
    program.plays(Play(output=empty), Play(output=failed, status=1), Play(output=events(plan_of(by_rules))))
    assert [resolve(tmp_path)[key] for key in ("state", "code")] == ["retry_pending", "LLM_RATE_LIMITED"]
    outcomes = [
        json.loads(path.read_bytes()) for path in sorted(tmp_path.glob(f"{REVISION}/*/attempts/*/outcome.json"))
    ]
    assert [outcome["code"] for outcome in outcomes] == ["LLM_OUTPUT_JSON", "LLM_RATE_LIMITED"]
    first, second = program.calls
    assert "feedback" not in json.loads(first.prompt)
    assert json.loads(second.prompt)["feedback"]


def test_ctrl_c_ends_codex_with_all_that_it_started_and_the_case_goes_on_later(
    program: ScriptedProgram, by_rules: Path, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    with Lifeline(tmp_path / "lifeline") as line:
        program.plays(Play(lifeline=line.path), Play(output=events(plan_of(by_rules))))
        run = subprocess.Popen(
            [sys.executable, "-m", "casebound", "resolve", "report.md"],
            cwd=tmp_path,
            env={**os.environ, **KEY, "TMPDIR": str(tmp_path / "temporary")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=listen_to_ctrl_c,
        )
        assert line.wait_for_start()
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=60)
        assert (run.returncode, b"Traceback" in said) == (130, False)
        assert line.wait_for_end()
    assert list((tmp_path / "temporary").iterdir()) == []
    done = run_casebound(["resolve", "report.md", "--format", "json"], cwd=tmp_path, environment=KEY)
    assert json.loads(done.stdout)["state"] == "interpreted"


def test_doctor_says_which_program_it_is_or_what_is_wrong_with_it(program: ScriptedProgram, tmp_path: Path) -> None:
    doctor = ["doctor", "--project-config", str(tmp_path / "casebound.toml"), "--format", "json"]
    good = run_casebound(doctor, environment=KEY)
    assert f"codex gpt-6.2-sol ({VERSION} at {program.path.resolve()}), not contacted" in good.stdout
    program.path.unlink()
    bad = run_casebound(doctor, environment=KEY)
    assert bad.returncode != 0
    assert f"{program.path}: no such program" in bad.stdout
    assert CANARY not in good.stdout + good.stderr + bad.stdout + bad.stderr
