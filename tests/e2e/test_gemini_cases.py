"""Whole cases through the provider `gemini`: the demo's report, and what every failure leaves behind of the key."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from casebound.canonical import digest_of
from casebound.cli.program import run
from casebound.testing.conformance.secret import CANARY, assert_no_canary
from casebound.testing.distributions import run_casebound
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response

pytest.importorskip("casebound_llm_gemini")
demo = pytest.importorskip("casebound_catalog_vcore.demo")
pytest.importorskip("casebound_llm_offline")

from casebound_llm_offline import assess, interpret, plan  # noqa: E402  # only where the plugin is installed

ANSWERS = {"plan": plan.answer, "assessment": assess.answer, "interpretation": interpret.answer}
KEY = {"A_GEMINI_KEY": CANARY}


def reply(text: str, **changes: object) -> Response:
    """What Gemini sends around a text: some thoughts first, and the text in two parts."""
    parts = [{"text": "I think.", "thought": True}, {"text": text[:7]}, {"text": text[7:]}]
    body = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 70, "candidatesTokenCount": 20, "thoughtsTokenCount": 10},
        "modelVersion": "model-1-001",
        "responseId": "resp-1",
    }
    return Response(body=json.dumps(body | changes).encode())


def by_the_rules(request: RecordedRequest) -> Response:
    """Answer from the message alone, as the offline rules do."""
    message = json.loads(json.loads(request.body)["contents"][0]["parts"][0]["text"])
    return reply(json.dumps(ANSWERS[message["task"]](message)))


def settings(folder: Path, url: str, more: str = "") -> Path:
    path = folder / "llm.toml"
    path.write_text(
        f'[llm]\nprovider = "gemini"\nmodel = "models/model-1"\n{more}[llm.retry]\nmax_retries = 0\n'
        f'[llm.gemini]\nbase_url = "{url}"\napi_key_env = "A_GEMINI_KEY"\n'
    )
    return path


def artifacts(folder: Path, name: str) -> list[Mapping[str, object]]:
    return [json.loads(path.read_bytes()) for path in sorted(folder.rglob(name))]


@pytest.mark.parametrize("field", ["responseJsonSchema", "responseSchema"])
def test_the_demos_report_is_resolved_through_gemini(tmp_path: Path, field: str) -> None:
    (report,) = demo.fill(tmp_path)
    with Loopback(canary=CANARY) as server:
        server.answer(by_the_rules)
        config = settings(tmp_path, server.url)
        config.write_text(config.read_text() + f'schema_field = "{field}"\n')
        done = run_casebound(
            ["resolve", str(report), "--llm-config", str(config), "--format", "json"], cwd=tmp_path, environment=KEY
        )
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert ("creature", "23487") in {(entity["type"], entity["id"]) for entity in line["entities"]}
    assert (line["resolver"], line["tokens"]) == ("model", {"input": 210, "output": 90})

    assert {request.path for request in server.requests} == {"/v1beta/models/model-1:generateContent"}
    assert {request.canary_in for request in server.requests} == {("x-goog-api-key",)}
    for request in server.requests:
        assert field in json.loads(request.body)["generationConfig"]

    package = Path(line["package"])
    requests = sorted(package.rglob("request.json"))
    assert len(requests) == 3
    for path in requests:
        asked = json.loads(path.read_bytes())
        assert (asked["provider"], asked["model"]) == ("gemini", "models/model-1")
        outcome = json.loads((path.parent / "outcome.json").read_bytes())
        assert (outcome["kind"], outcome["request"]) == ("accepted", digest_of(path.read_bytes()))
    for read in artifacts(package, "reply.json"):
        assert (read["served_model"], read["request_id"]) == ("model-1-001", "resp-1")
    assert "casebound-llm-gemini" in (package / "package.json").read_text("utf-8")

    verified = run_casebound(["verify", str(package), "--format", "json"], cwd=tmp_path)
    assert (verified.returncode, json.loads(verified.stdout)["answer"]) == (0, "holds")


# --- the key --------------------------------------------------------------------------------------------------------

ERROR = {
    "error": {
        "code": 400,
        "message": f"API key not valid: {CANARY}",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}
ECHO = {"x-request-id": CANARY, "set-cookie": f"key={CANARY}", "server-timing": f"k;desc={CANARY}"}
FAILURES: dict[str, tuple[Response, str]] = {
    "bad key": (Response(status=400, body=json.dumps(ERROR).encode(), headers=ECHO), "LLM_AUTH"),
    "error in 200": (Response(body=json.dumps([ERROR]).encode()), "LLM_AUTH"),
    "forbidden": (Response(status=403, body=f"<html>{CANARY}".encode()), "LLM_AUTH"),
    "no such model": (Response(status=404, body=f"no ?key={CANARY}".encode()), "LLM_REQUEST"),
    "redirect": (Response(status=308, headers={"location": f"http://127.0.0.1:1/?key={CANARY}"}), "LLM_REQUEST"),
    "rate limit": (Response(status=429, body=json.dumps({"error": CANARY}).encode()), "LLM_RATE_LIMITED"),
    "overloaded": (Response(status=503, body=CANARY.encode(), headers={"retry-after": CANARY}), "LLM_UNAVAILABLE"),
    "login page": (Response(body=f"<html>{CANARY}</html>".encode()), "LLM_UNAVAILABLE"),
    "no utf-8": (Response(body=b"\xff" + CANARY.encode()), "LLM_UNAVAILABLE"),
    "a key twice": (Response(body=f'{{"{CANARY}":1,"{CANARY}":2}}'.encode()), "LLM_UNAVAILABLE"),
    "half a reply": (Response(body=CANARY.encode() * 2, fault=Fault.CUT), "LLM_UNAVAILABLE"),
    "reset": (Response(body=CANARY.encode() * 2, fault=Fault.RESET), "LLM_UNAVAILABLE"),
    "hung up": (Response(fault=Fault.CLOSE), "LLM_UNAVAILABLE"),
    "broken gzip": (
        Response(body=gzip.compress(CANARY.encode())[:-9], headers={"content-encoding": "gzip"}),
        "LLM_UNAVAILABLE",
    ),
    "told by the model": (reply(f"The key is {CANARY}."), "LLM_OUTPUT_JSON"),
    "blocked": (reply("", candidates=[], promptFeedback={"blockReason": CANARY}), "LLM_REFUSED"),
    "too many bytes": (Response(body=b" " * 9_000_000), "LLM_UNAVAILABLE"),
}


def assert_no_key_below(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), f"the key stands in {path.relative_to(folder)}"


@pytest.fixture
def codes_after(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[[Response, str], set[object]]:
    """Run into a failure with everything switched on that shows more; return the codes that were written down."""

    def run_into(failure: Response, more: str) -> set[object]:
        monkeypatch.setenv("A_GEMINI_KEY", CANARY)
        caplog.set_level(logging.DEBUG)
        (report,) = demo.fill(tmp_path)
        with Loopback(canary=CANARY) as server:
            server.answer(failure)
            config = settings(tmp_path, server.url, more)
            options = ["--llm-config", str(config), "--project-config", str(tmp_path / "casebound.toml")]
            assert run(["--debug", "resolve", str(report), *options]) in {1, 3}
            run(["--debug", "show", "brewfest-wolpertinger", "--project-config", str(tmp_path / "casebound.toml")])
        assert {request.canary_in for request in server.requests} == {("x-goog-api-key",)}
        assert_no_canary(*capfd.readouterr(), caplog.text)
        assert_no_key_below(tmp_path)
        return {outcome["code"] for outcome in artifacts(tmp_path, "outcome.json")}

    return run_into


@pytest.mark.parametrize("name", FAILURES)
def test_no_failure_leaves_the_key_anywhere(name: str, codes_after: Callable[[Response, str], set[object]]) -> None:
    failure, code = FAILURES[name]
    assert codes_after(failure, "") == {code}


@pytest.mark.faults
def test_a_server_that_never_answers_leaves_no_key_either(
    codes_after: Callable[[Response, str], set[object]],
) -> None:
    assert codes_after(Response(fault=Fault.HANG), "timeout_s = 1\n") == {"LLM_TIMEOUT"}
