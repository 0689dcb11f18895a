"""The OpenAI-compatible provider against llmock, a server that this project did not write.

llmock answers from the schema that it is sent, fails in the vendor's own form, and grades how its client behaves.
"""

import json
import threading

import pytest

pytest.importorskip("casebound_llm_openai")

from casebound.api import Project
from casebound.errors import ProviderError
from casebound.testing.inventory import REPORT, write_inventory
from casebound.testing.scripted import FixedClock, model_request
from casebound.testing.wire import SEARCHES_SCHEMA, ask_once
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings
from jsonschema import Draft202012Validator

pytestmark = pytest.mark.foreign


def call(llmock, api="chat", **changes):
    request = model_request(
        provider="openai", **{"response_schema": SEARCHES_SCHEMA, "max_output_tokens": 256, **changes}
    )
    provider = OpenAIProvider(OpenAISettings(api=api, base_url=f"{llmock.url}/v1"))
    return ask_once(provider, request)


@pytest.mark.parametrize("response_format", ["json_schema", "json_object", "text"])
def test_each_response_format_is_understood(llmock, response_format):
    reply = call(llmock, response_format=response_format)
    assert (reply.finish_reason, reply.served_model, reply.tools) == ("stop", "model-1", ())
    assert reply.text
    assert reply.usage.output_tokens is not None
    (seen,) = llmock.journal()
    assert seen["path"] == "/v1/chat/completions"
    assert seen["body"].get("response_format", {}).get("type", "text") == response_format


@pytest.mark.parametrize("response_format", ["json_schema", "json_object", "text"])
def test_each_response_format_of_responses_is_understood(llmock, response_format):
    reply = call(llmock, api="responses", response_format=response_format)
    assert (reply.finish_reason, reply.native_finish_reason, reply.served_model) == ("stop", "completed", "model-1")
    assert reply.text
    assert reply.usage.output_tokens is not None
    (seen,) = llmock.journal()
    assert (seen["path"], seen["body"]["store"]) == ("/v1/responses", False)
    assert seen["body"].get("text", {}).get("format", {}).get("type", "text") == response_format


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_sending_copy_yields_replies_of_the_full_schema(llmock, api):
    reply = call(llmock, api=api)
    assert not list(Draft202012Validator(SEARCHES_SCHEMA).iter_errors(json.loads(reply.text)))


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    ("status", "code", "retry_after"),
    [
        (400, "LLM_REQUEST", None),
        (401, "LLM_AUTH", None),
        (403, "LLM_AUTH", None),
        (404, "LLM_REQUEST", None),
        (408, "LLM_TIMEOUT", None),
        (429, "LLM_RATE_LIMITED", 7),
        (500, "LLM_UNAVAILABLE", None),
        (503, "LLM_UNAVAILABLE", 7),
    ],
)
def test_each_failure_gets_its_code_after_one_request(llmock, status, code, retry_after, api):
    wish = {"retry_after": 7} if retry_after else {}
    llmock.script(type="fail", status=status, times=1, **wish)
    with pytest.raises(ProviderError) as caught:
        call(llmock, api=api)
    assert (caught.value.code, caught.value.retry_after) == (code, retry_after)
    assert [seen["status"] for seen in llmock.journal()] == [status]


def test_the_servers_own_verdict_finds_no_error_in_its_client(llmock):
    for status in (429, 401, 503):
        llmock.script(type="fail", status=status, times=1)
        with pytest.raises(ProviderError):
            call(llmock, system=f"Answer with JSON after {status}.")
    verdict = llmock.verdict()
    assert (verdict["errors"], verdict["attempts"]) == (0, 3)
    # That nobody tried again is what is left to the engine; a refused key is rightly given up.
    assert [finding["code"] for finding in verdict["findings"]] == ["gave_up", "gave_up"]


@pytest.mark.faults
@pytest.mark.spec("A-122")
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_servers_own_verdict_finds_no_error_in_our_retries(llmock, api, tmp_path):
    llmock.script(type="fail", status=429, retry_after=1, times=1)
    inventory = write_inventory(tmp_path)
    config = tmp_path / "llm.toml"
    config.write_text(
        f'[llm]\nprovider = "openai"\nmodel = "model-1"\n[llm.openai]\nbase_url = "{llmock.url}/v1"\napi = "{api}"\n'
    )
    (tmp_path / "report.md").write_text(REPORT)

    clock = FixedClock()

    def resolve():
        project = Project.open(
            inventory.folder / "casebound.toml", llm_config=config, workspace=tmp_path / "workspace", clock=clock
        )
        try:
            return next(project.resolve([tmp_path / "report.md"]))
        finally:
            project.close()

    waiting = resolve()
    assert (waiting.state, waiting.code, len(llmock.journal())) == ("retry_pending", "LLM_RATE_LIMITED", 1)
    clock.advance(59)
    assert resolve().state == "retry_pending"
    assert len(llmock.journal()) == 1, "nothing is sent before the time that the server asked for"
    threading.Event().wait(1.05)  # the server reads its own clock
    clock.advance(1)
    assert resolve().state == "review"  # llmock makes up its names, which stand in no report
    assert [seen["status"] for seen in llmock.journal()] == [429, 200, 200, 200]
    verdict = llmock.verdict()
    assert (verdict["errors"], verdict["findings"]) == (0, [])


@pytest.mark.parametrize("text", ['```json\n{"a":1}\n```', '{"a":1,"a":2}', '{"a":', "I would rather not."])
def test_a_scripted_text_arrives_exactly(llmock, text):
    llmock.script(type="reply", text=text)
    assert call(llmock).text == text


@pytest.mark.faults
def test_a_slow_server_meets_the_deadline(llmock):
    llmock.script(type="delay", seconds=5)
    with pytest.raises(ProviderError) as caught:
        call(llmock, timeout_s=1)
    assert caught.value.code == "LLM_TIMEOUT"
