"""One call is one run: what it is given, what is kept of it, and that nothing of it stays behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.errors import ProviderError, SettingsError
from casebound.testing.conformance.secret import CANARY, assert_no_canary, texts_of
from casebound.testing.distributions import listen_to_ctrl_c
from casebound.testing.scripted import model_request
from casebound.testing.scripted_program import Lifeline, Play, ScriptedProgram
from casebound_llm_codex.command import KEY_VARIABLE, declared_context
from casebound_llm_codex.provider import CodexProvider, bound_program
from casebound_llm_codex.settings import CodexSettings

LOCAL = CodexSettings(base_url="http://127.0.0.1:9/v1")
SUCCESS = (Path(__file__).parent / "replies" / "success.jsonl").read_bytes()
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]}


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The scripted Codex; private folders are made where the test can look for them."""
    (tmp_path / "private").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    program = ScriptedProgram(tmp_path / "bin", "codex", "codex-cli 0.171.0")
    program.plays(Play(output=SUCCESS))
    return program


@pytest.fixture
def lifeline(tmp_path):
    with Lifeline(tmp_path / "lifeline") as line:
        yield line


def provider(program, **more):
    return CodexProvider(CodexSettings(program=str(program.path), **{"base_url": LOCAL.base_url, **more}))


def send(program, request=None, **more):
    return asyncio.run(provider(program, **more).send(request or model_request(response_schema=SCHEMA)))


def error_of(program, request=None, **more):
    with pytest.raises(ProviderError) as caught:
        send(program, request, **more)
    return caught.value


def left_behind(tmp_path):
    return list((tmp_path / "private").iterdir())


# --- what it is given -------------------------------------------------------------------------------------------------


def test_prompt_schema_and_system_text_reach_codex_and_the_working_folder_is_empty(program):
    request = model_request(system="Only so. Ж", user='{"task":"plan","x":"Ж🜲"}', response_schema=SCHEMA)
    send(program, request)
    (call,) = program.calls
    assert call.prompt == request.user
    assert set(call.files) == {"models.json", "schema.json"}
    assert json.loads(call.files["models.json"])["models"][0]["base_instructions"] == request.system
    # The copy that strict mode takes: closed, and without what only narrows.
    strict = {"a": {"type": "string"}}
    assert json.loads(call.files["schema.json"]) == {**SCHEMA, "properties": strict, "additionalProperties": False}


def test_only_a_schema_that_is_to_be_enforced_is_written(program):
    send(program, model_request(response_format="json_object", response_schema={"type": "object"}))
    assert set(program.calls[0].files) == {"models.json"}


def test_codex_has_no_variable_of_ours(program, monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "hidden")
    monkeypatch.setenv("OPENAI_API_KEY", "another key")
    send(program)
    variables = program.calls[0].environment
    assert variables.keys() - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"PATH", "HOME", "CODEX_HOME", "TMPDIR"}
    assert variables["CODEX_HOME"] == str(Path(program.calls[0].folder).parent / "home")


def test_a_login_is_looked_for_in_the_users_own_home_and_declared(program, tmp_path):
    native = send(program, codex_home="user", user_codex_home=str(tmp_path / "mine"), base_url=None)
    call = program.calls[0]
    assert call.environment["CODEX_HOME"] == str(tmp_path / "mine")
    assert call.environment["HOME"] != os.environ["HOME"]
    assert "CODEX_HOME: user" in native.headers["codex-context"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": None}, "no model"),
        ({"user": "x" * 1_048_577}, "1048577 characters"),
        ({"user": "\ud800"}, "surrogate"),
        ({"response_schema": {"not": {}}}, "keyword not"),
    ],
)
def test_what_codex_cannot_take_is_refused_before_it_runs(program, changes, says):
    error = error_of(program, model_request(**changes))
    assert (error.code, error.retryable) == ("LLM_REQUEST", False)
    assert says in str(error)
    assert program.calls == []


def test_no_http_library_is_needed():
    source = (
        "import sys, casebound_llm_codex.provider; sys.exit(any(name in sys.modules for name in ('httpx', 'aiohttp')))"
    )
    assert subprocess.run([sys.executable, "-c", source]).returncode == 0


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_event_lines_are_kept_byte_for_byte_with_what_ran_and_how_it_ended(program):
    odd = b' {"b":1, "a":\t2}\r\n\xff\n\n'
    program.plays(Play(output=odd, errors=b"first\nlast words\n", status=3))
    native = send(program)
    assert (native.status, native.body) == (200, odd)
    assert native.headers == {
        "codex-context": declared_context(LOCAL, machine_settings=Path("/etc/codex").is_dir()),
        "codex-digest": provider(program)._program.digest(),
        "codex-version": "codex-cli 0.171.0",
        "exit-status": "3",
        "stderr": "first\nlast words\n",
    }


def test_what_a_live_run_binds_is_what_native_headers_will_say(program):
    program.plays(Play(output=SUCCESS))
    bound = bound_program(provider(program)._settings)
    assert program.calls == []
    assert {name: send(program).headers[name] for name in bound} == bound
    assert set(bound) == {"codex-context", "codex-digest", "codex-version"}


def test_only_the_end_of_a_long_standard_error_is_kept(program):
    program.plays(Play(output=SUCCESS, errors=b"x" * 300_000 + b"the end"))
    chatter = send(program).headers["stderr"]
    assert len(chatter) == 4096
    assert chatter.endswith("the end")


def test_settings_of_the_machine_are_declared_where_there_are_any(program):
    assert ("/etc/codex" in send(program).headers["codex-context"]) == Path("/etc/codex").is_dir()


def test_codex_that_ends_without_reading_a_long_prompt_is_told_by_its_status(program):
    program.plays(Play(status=2, errors=b"error: unexpected argument\n", reads_prompt=False))
    assert send(program, model_request(user="x" * 1_000_000, response_schema=SCHEMA)).headers["exit-status"] == "2"


def test_sixteen_calls_at_once_do_not_mix(program):
    own = [SUCCESS.replace(b"accept", b"accept-%d" % number) for number in range(16)]
    program.plays(*(Play(output=output) for output in own))
    codex = provider(program)

    async def all_at_once():
        requests = [model_request(user=f'{{"n":{number}}}', response_schema=SCHEMA) for number in range(16)]
        return await asyncio.gather(*(codex.send(request) for request in requests))

    assert sorted(native.body for native in asyncio.run(all_at_once())) == sorted(own)
    assert sorted(call.prompt for call in program.calls) == sorted(f'{{"n":{number}}}' for number in range(16))
    assert len({call.folder for call in program.calls}) == 16


# --- what stays behind ------------------------------------------------------------------------------------------------


def test_the_private_folder_is_gone_after_success_and_failure(program, tmp_path):
    send(program)
    assert Path(program.calls[0].folder).parent.parent == tmp_path / "private"
    program.plays(Play(status=1))
    send(program)
    assert left_behind(tmp_path) == []


@pytest.mark.faults
def test_the_time_limit_ends_the_whole_group(program, lifeline, tmp_path):
    program.plays(Play(output=SUCCESS[:100], lifeline=lifeline.path))
    error = error_of(program, model_request(timeout_s=1, response_schema=SCHEMA))
    assert (error.code, error.retryable) == ("LLM_TIMEOUT", True)
    assert lifeline.wait_for_start()
    assert lifeline.wait_for_end()
    assert left_behind(tmp_path) == []


def test_cancelling_ends_the_whole_group(program, lifeline, tmp_path):
    program.plays(Play(lifeline=lifeline.path))

    async def cancel():
        call = asyncio.create_task(provider(program).send(model_request(response_schema=SCHEMA)))
        assert await asyncio.to_thread(lifeline.wait_for_start)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    assert lifeline.wait_for_end()
    assert left_behind(tmp_path) == []


def test_ctrl_c_ends_the_whole_group(program, lifeline, tmp_path):
    program.plays(Play(lifeline=lifeline.path))
    source = f"""
import asyncio, tempfile
from casebound.testing.scripted import model_request
from casebound_llm_codex.provider import CodexProvider, bound_program
from casebound_llm_codex.settings import CodexSettings
tempfile.tempdir = {str(tmp_path / "private")!r}
settings = CodexSettings(program={str(program.path)!r}, base_url="http://127.0.0.1:9/v1")
asyncio.run(CodexProvider(settings).send(model_request(response_format="text")))
"""
    run = subprocess.Popen(
        [sys.executable, "-c", source], stderr=subprocess.PIPE, preexec_fn=listen_to_ctrl_c, start_new_session=True
    )
    try:
        assert lifeline.wait_for_start()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
    finally:
        run.kill()
    assert b"KeyboardInterrupt" in said
    assert lifeline.wait_for_end()
    assert left_behind(tmp_path) == []


def test_too_much_output_ends_the_whole_group(program, lifeline):
    program.plays(Play(output=b"x" * 5000, lifeline=lifeline.path))
    error = error_of(program, max_body_bytes=1024)
    assert (error.code, error.retryable) == ("LLM_UNAVAILABLE", False)
    assert lifeline.wait_for_start()
    assert lifeline.wait_for_end()


def test_codex_that_is_killed_is_unavailable(program):
    program.plays(Play(output=SUCCESS[:200], status=-signal.SIGKILL))
    native = send(program)
    assert native.headers["exit-status"] == "-9"
    with pytest.raises(ProviderError) as caught:
        provider(program).read(native)
    assert caught.value.code == "LLM_UNAVAILABLE"


def test_a_program_that_has_gone_meanwhile_is_a_refused_request(program):
    codex = provider(program)
    program.path.unlink()
    with pytest.raises(ProviderError) as caught:
        asyncio.run(codex.send(model_request(response_schema=SCHEMA)))
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)


# --- the key ----------------------------------------------------------------------------------------------------------


def test_the_key_stands_in_one_variable_and_nowhere_else(program, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    codex = provider(program, api_key_env="CANARY_KEY")
    native = asyncio.run(codex.send(model_request(response_schema=SCHEMA)))
    (call,) = program.calls
    assert [name for name, value in call.environment.items() if CANARY in value] == [KEY_VARIABLE]
    assert_no_canary(call.prompt, *call.arguments, *call.files, *call.files.values(), repr(native))
    assert_no_canary(repr(codex), repr(vars(codex)))


def test_a_key_that_somebody_echoes_is_masked(program, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    message = f"unexpected status 401 Unauthorized: no such key {CANARY}, url: http://h/?k={CANARY}"
    line = f'{{"type":"turn.failed","error":{{"message":"{message}"}}}}\n'.encode()
    program.plays(Play(output=line, errors=f"key {CANARY}\n".encode(), status=1))
    codex = provider(program, api_key_env="CANARY_KEY")
    native = asyncio.run(codex.send(model_request(response_schema=SCHEMA)))
    with pytest.raises(ProviderError) as caught:
        codex.read(native)
    assert caught.value.code == "LLM_AUTH"
    assert_no_canary(repr(native), native.body.decode(), *texts_of(caught.value))


def test_a_key_that_the_end_of_standard_error_begins_within_is_masked(program, monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    program.plays(Play(output=SUCCESS, errors=CANARY.encode() + b"x" * (4096 - len(CANARY) // 2)))
    native = asyncio.run(provider(program, api_key_env="CANARY_KEY").send(model_request(response_schema=SCHEMA)))
    assert native.headers["stderr"].strip("x") in "[key]"


@pytest.mark.parametrize("play", [Play(output=b"x" * 5000), Play(reads_prompt=False, status=-signal.SIGTERM)])
def test_the_key_is_in_no_exception(program, monkeypatch, play):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    program.plays(play)
    codex = provider(program, api_key_env="CANARY_KEY", max_body_bytes=1024)
    with pytest.raises(ProviderError) as caught:
        codex.read(asyncio.run(codex.send(model_request(response_schema=SCHEMA))))
    assert_no_canary(*texts_of(caught.value))


def test_a_key_that_is_not_there_is_said_before_anything_runs(program, monkeypatch):
    monkeypatch.delenv("CANARY_KEY", raising=False)
    with pytest.raises(SettingsError, match="CANARY_KEY"):
        provider(program, api_key_env="CANARY_KEY")
