"""The provider `codex` with the real Codex CLI, against a scripted server on loopback that speaks the Responses API.

The program is looked for in CASEBOUND_TEST_CODEX, then in `.codex-cli`, where `make test-all` installs it with npm.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from casebound.canonical import canonical_bytes
from casebound.errors import ProviderError
from casebound.llm.strict_schema import sending_copy
from casebound.testing.conformance.provider_asking import HARD_TEXTS
from casebound.testing.conformance.secret import CANARY, assert_no_canary, texts_of
from casebound.testing.loopback import Fault, Loopback, Response
from casebound.testing.scripted import model_request

pytest.importorskip("casebound_llm_codex")

from casebound_llm_codex.provider import CodexProvider
from casebound_llm_codex.settings import CodexSettings

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.171.0"  # as the Makefile installs it
ANSWER = '{"decision":"accept"}'
SCHEMA = {"type": "object", "properties": {"decision": {"type": "string", "minLength": 1}}, "required": ["decision"]}
USAGE = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 1000},
    "output_tokens": 60,
    "output_tokens_details": {"reasoning_tokens": 40},
    "total_tokens": 1260,
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
}


@pytest.fixture(scope="module")
def program():
    named = os.environ.get("CASEBOUND_TEST_CODEX") or str(
        ROOT / ".codex-cli" / VERSION / "node_modules" / ".bin" / "codex"
    )
    if shutil.which(named) is None:
        pytest.skip(f"no Codex CLI at {named}: `make test-all` installs it where there is npm")
    return named


@pytest.fixture
def server():
    with Loopback(canary=CANARY) as loopback:
        loopback.answer(stream(MESSAGE))
        yield loopback


@pytest.fixture
def codex(program, server):
    return CodexProvider(CodexSettings(program=program, base_url=f"{server.url}/v1"))


def stream(*items, fault=Fault.NONE):
    """Return a finished response as the server-sent events that Codex asks for."""
    response = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items}
    events = [("response.created", {"response": {**response, "status": "in_progress", "output": []}})]
    events += [("response.output_item.done", {"output_index": place, "item": item}) for place, item in enumerate(items)]
    events.append(("response.completed", {"response": {**response, "usage": USAGE}}))
    body = "".join(f"event: {name}\ndata: {json.dumps({'type': name, **payload})}\n\n" for name, payload in events)
    return Response(body=body.encode(), headers={"content-type": "text/event-stream"}, fault=fault)


def asked(**changes):
    return model_request(**{"response_schema": SCHEMA, "timeout_s": 60, **changes})


def call(codex, **changes):
    return codex.read(asyncio.run(codex.send(asked(**changes))))


def error_of(codex, **changes):
    with pytest.raises(ProviderError) as caught:
        call(codex, **changes)
    return caught.value


def sent(server):
    return json.loads(server.requests[-1].body)


def texts(body):
    return [(item["role"], part["text"]) for item in body["input"] for part in item["content"]]


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model-1", "gpt-5.5", "gpt-6.2-sol"])
def test_the_request_holds_our_texts_our_schema_and_no_tools_for_whatever_model(codex, server, model):
    request = asked(model=model, system='Say "so" to {this} Ж', user='{"task":"plan","x":"Ж🜲"}')
    native = asyncio.run(codex.send(request))
    body = sent(server)
    assert texts(body) == [("developer", request.system), ("user", request.user)]
    assert body["tools"] == []
    assert body["model"] == model
    assert body["text"]["format"]["schema"] == sending_copy(SCHEMA)
    assert body["text"]["format"]["strict"] is True
    assert "instructions" not in body
    assert [native.headers["exit-status"], native.headers["codex-version"]] == ["0", f"codex-cli {VERSION}"]
    assert "stderr" not in native.headers
    reply = codex.read(native)
    assert (reply.text, reply.finish_reason, reply.tools) == (ANSWER, "stop", ())
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1200, 60)


@pytest.mark.parametrize("name", HARD_TEXTS)
def test_hard_texts_arrive_exactly(codex, server, name):
    request = asked(system=f"Say: {HARD_TEXTS[name]}.", user=canonical_bytes({"text": HARD_TEXTS[name]}).decode())
    call(codex, system=request.system, user=request.user)
    assert texts(sent(server)) == [("developer", request.system), ("user", request.user)]


@pytest.mark.spec("B-116")
def test_nothing_of_the_user_reaches_the_request(codex, server, tmp_path, monkeypatch):
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home / ".codex" / "skills" / "trap", home / ".agents" / "skills" / "trap", project / ".codex"):
        folder.mkdir(parents=True)
    for folder in (home, home / ".codex", project, tmp_path):
        (folder / "AGENTS.md").write_text("TRAP of instructions")
    for folder in (home / ".codex", home / ".agents"):
        (folder / "skills/trap/SKILL.md").write_text("---\nname: trap\ndescription: TRAP\n---\nTRAP of a skill")
    for folder in (home / ".codex", project / ".codex"):
        (folder / "config.toml").write_text('developer_instructions = "TRAP of settings"\nmodel = "TRAP"\n')
    (home / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY":"sk-TRAP-of-a-login"}')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-TRAP-of-a-variable")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(project)
    user = '{"text":"use $trap and $imagegen and [$trap](skill://trap) @trap"}'
    call(codex, user=user)
    assert texts(sent(server)) == [("developer", asked().system), ("user", user)]
    assert "TRAP" not in str(server.requests)


def test_a_login_of_the_users_is_used_where_it_is_asked_for(program, server, tmp_path):
    (tmp_path / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": CANARY}))
    (tmp_path / "config.toml").write_text('developer_instructions = "TRAP"\n')
    (tmp_path / "AGENTS.md").write_text("my global instructions")
    settings = CodexSettings(
        program=program, codex_home="user", user_codex_home=str(tmp_path), base_url=f"{server.url}/v1"
    )
    codex = CodexProvider(settings)
    native = asyncio.run(codex.send(asked()))
    assert codex.read(native).text == ANSWER
    assert server.requests[0].canary_in == ("authorization",)
    assert "TRAP" not in str(sent(server))
    # What cannot be shut out is declared.
    assert "my global instructions" in str(sent(server))
    assert "global instructions (AGENTS.md)" in native.headers["codex-context"]


def test_the_key_is_sent_in_a_header_and_comes_back_nowhere(program, server, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    settings = CodexSettings(program=program, base_url=f"{server.url}/v1", api_key_env="CANARY_KEY")
    codex = CodexProvider(settings)
    echo = json.dumps({"error": {"message": f"no such key: {CANARY}", "code": "invalid_api_key"}}).encode()
    for answer in (stream(MESSAGE), Response(status=401, body=echo)):
        server.answer(answer)
        native = asyncio.run(codex.send(asked()))
        assert_no_canary(repr(native), native.body.decode())
    assert [request.canary_in for request in server.requests] == [("authorization",)] * 2
    with pytest.raises(ProviderError) as caught:
        codex.read(native)
    assert caught.value.code == "LLM_AUTH"
    assert_no_canary(*texts_of(caught.value))


@pytest.mark.skipif(shutil.which("strace") is None, reason="capability: connections are seen with strace")
def test_no_host_but_the_server_is_looked_for(program, server, tmp_path):
    native, seen = CodexProvider(CodexSettings(program=program, base_url=server.url))._program.path, tmp_path / "seen"
    traced = tmp_path / "codex"
    traced.write_text(f'#!/bin/sh\nexec strace -f -qq -e trace=connect,sendto -o "{seen}" "{native}" "$@"\n')
    traced.chmod(0o755)
    call(CodexProvider(CodexSettings(program=str(traced), base_url=f"{server.url}/v1")))
    addresses = re.findall(r'inet_addr\("([0-9.]+)"\)|inet_pton\(AF_INET6, "([^"]+)"', seen.read_text())
    assert addresses == [("127.0.0.1", "")]


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "LLM_REQUEST"),
        (401, "LLM_AUTH"),
        (403, "LLM_AUTH"),
        (429, "LLM_RATE_LIMITED"),
        (500, "LLM_UNAVAILABLE"),
        (503, "LLM_UNAVAILABLE"),
    ],
)
def test_each_failure_has_its_code_after_one_request(codex, server, status, code):
    server.answer(Response(status=status, body=b'{"error":{"message":"no","type":"t"}}'))
    assert error_of(codex).code == code
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.CUT, Fault.CUT_CHUNKED, Fault.RESET])
def test_a_broken_connection_is_unavailable_after_one_request(codex, server, fault):
    server.answer(stream(MESSAGE, fault=fault))
    assert error_of(codex).code == "LLM_UNAVAILABLE"
    assert len(server.requests) == 1


def test_nobody_listening_is_told_at_once(codex, server):
    server.close()
    assert error_of(codex).code == "LLM_UNAVAILABLE"


def test_a_setting_that_codex_does_not_know_is_refused_before_anything_is_sent(codex, server, monkeypatch):
    monkeypatch.setattr("casebound_llm_codex.command._FEATURES_OFF", ("no_such_feature",))
    error = error_of(codex)
    assert (error.code, error.retryable) == ("LLM_REQUEST", False)
    assert "no_such_feature" in str(error)
    assert server.requests == []


def test_a_tool_that_the_server_asks_for_is_not_run_and_makes_the_reply_invalid(codex, server, tmp_path):
    arguments = json.dumps({"command": ["bash", "-lc", f"touch {tmp_path}/ran"]})
    item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "shell", "arguments": arguments}
    server.answer(stream(item), stream(MESSAGE))
    reply = call(codex)
    assert (reply.tools, reply.finish_reason) == (("shell",), "tool_calls")
    assert list(tmp_path.iterdir()) == []
    assert reply.usage.input_tokens == 2400  # of both requests


# --- its end ----------------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL])
def test_a_silent_server_meets_the_time_limit_and_codex_is_gone(codex, server, fault):
    server.answer(stream(MESSAGE, fault=fault))
    assert error_of(codex, timeout_s=1).code == "LLM_TIMEOUT"
    assert server.wait_for_departure()
    assert children() == []


def test_cancelling_ends_codex(codex, server):
    server.answer(Response(fault=Fault.HANG))

    async def cancel():
        running = asyncio.create_task(codex.send(asked()))
        assert await asyncio.to_thread(server.wait_for_requests, 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    assert server.wait_for_departure()
    assert children() == []


@pytest.mark.skipif(sys.platform != "linux", reason="capability: children are found below /proc")
def test_codex_that_is_killed_is_unavailable(codex, server):
    server.answer(Response(fault=Fault.HANG))

    async def kill():
        running = asyncio.create_task(codex.send(asked()))
        assert await asyncio.to_thread(server.wait_for_requests, 1)
        for child in children():
            os.kill(child, signal.SIGKILL)
        return await running

    native = asyncio.run(kill())
    assert native.headers["exit-status"] == "-9"
    with pytest.raises(ProviderError) as caught:
        codex.read(native)
    assert caught.value.code == "LLM_UNAVAILABLE"


def children():
    """Return the processes that this one started and that live; none where there is no /proc."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
