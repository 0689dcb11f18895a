"""The provider `gemini` beside what others wrote: the server llmock, and the vendor's own client `google-genai`."""

import json
import os
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("casebound_llm_gemini")

from casebound.errors import ProviderError
from casebound.testing.conformance.secret import CANARY
from casebound.testing.inventory import write_inventory
from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import model_request
from casebound.testing.wire import SEARCHES_SCHEMA, ask_once
from casebound_llm_gemini.openapi import openapi_copy
from casebound_llm_gemini.provider import GeminiProvider
from casebound_llm_gemini.schema import json_schema_copy
from casebound_llm_gemini.settings import GeminiSettings
from jsonschema import Draft202012Validator

pytestmark = pytest.mark.foreign

HERE = Path(__file__).parent
FIELDS = ["responseJsonSchema", "responseSchema"]


def call(url, changes=None, **settings):
    request = model_request(
        provider="gemini", **{"response_schema": SEARCHES_SCHEMA, "max_output_tokens": 256, **(changes or {})}
    )
    provider = GeminiProvider(GeminiSettings(base_url=url, **settings))
    return ask_once(provider, request)


# --- the server -----------------------------------------------------------------------------------------------------


def ask(llmock, changes=None, **settings):
    return call(f"{llmock.url}/gemini", changes, **settings)


@pytest.mark.parametrize("response_format", ["json_schema", "json_object", "text"])
def test_each_response_format_is_understood(llmock, response_format):
    reply = ask(llmock, {"response_format": response_format})
    assert (reply.finish_reason, reply.native_finish_reason, reply.tools) == ("stop", "STOP", ())
    assert reply.served_model is None, "llmock reports no modelVersion, and nothing is made up"
    assert reply.text
    assert reply.usage.output_tokens is not None
    (seen,) = llmock.journal()
    assert seen["path"] == "/gemini/v1beta/models/model-1:generateContent"


@pytest.mark.parametrize("field", FIELDS)
def test_each_sending_copy_yields_replies_of_the_full_schema(llmock, field):
    reply = ask(llmock, schema_field=field)
    assert field in llmock.journal()[0]["body"]["generationConfig"]
    assert not list(Draft202012Validator(SEARCHES_SCHEMA).iter_errors(json.loads(reply.text)))


@pytest.mark.parametrize(
    ("status", "code", "retry_after"),
    [
        (400, "LLM_REQUEST", None),
        (401, "LLM_AUTH", None),
        (403, "LLM_AUTH", None),
        (404, "LLM_REQUEST", None),
        (429, "LLM_RATE_LIMITED", 7),
        (500, "LLM_UNAVAILABLE", None),
        (503, "LLM_UNAVAILABLE", 7),
        (504, "LLM_TIMEOUT", 7),
    ],
)
def test_each_failure_gets_its_code_after_one_request(llmock, status, code, retry_after):
    wish = {"retry_after": 7} if retry_after else {}
    llmock.script(type="fail", status=status, times=1, **wish)
    with pytest.raises(ProviderError) as caught:
        ask(llmock)
    assert (caught.value.code, caught.value.retry_after) == (code, retry_after)
    assert [seen["status"] for seen in llmock.journal()] == [status]


def test_the_servers_own_verdict_finds_no_error_in_its_client(llmock):
    for status in (429, 401, 503):
        llmock.script(type="fail", status=status, times=1)
        with pytest.raises(ProviderError):
            ask(llmock, {"system": f"Answer after {status}."})
    verdict = llmock.verdict()
    assert (verdict["errors"], verdict["attempts"]) == (0, 3)
    # That nobody tried again is what is left to the engine; a refused key is rightly given up.
    assert [finding["code"] for finding in verdict["findings"]] == ["gave_up", "gave_up"]


@pytest.mark.faults
def test_the_engines_retry_comes_when_the_server_wants_it_and_a_refused_key_ends_them(llmock, tmp_path):
    llmock.script({"type": "fail", "status": 401, "times": 1}, type="fail", status=429, retry_after=1, times=1)
    inventory = write_inventory(tmp_path)
    states = []
    with closing(inventory.project(GeminiProvider(GeminiSettings(base_url=f"{llmock.url}/gemini")))) as project:
        for pause_s, passes_s, requests in ((0, 0, 1), (0, 30, 1), (1.1, 30, 2), (0, 600, 2)):
            threading.Event().wait(pause_s)  # the server looks at its own clock, which nobody can set
            inventory.clock.advance(passes_s)
            states += [result.state for result in project.resolve([inventory.report])]
            assert len(llmock.journal()) == requests
    assert states == ["retry_pending", "retry_pending", "blocked", "blocked"]
    verdict = llmock.verdict()
    assert (verdict["calls"], verdict["attempts"], verdict["findings"]) == (1, 2, [])


@pytest.mark.parametrize("text", ['```json\n{"a":1}\n```', '{"a":1,"a":2}', '{"a":', "I would rather not."])
def test_a_scripted_text_arrives_exactly(llmock, text):
    llmock.script(type="reply", text=text)
    assert ask(llmock).text == text


@pytest.mark.faults
def test_a_slow_server_meets_the_deadline(llmock):
    llmock.script(type="delay", seconds=5)
    with pytest.raises(ProviderError) as caught:
        ask(llmock, {"timeout_s": 1})
    assert caught.value.code == "LLM_TIMEOUT"


# --- the client -----------------------------------------------------------------------------------------------------

SUCCESS = Response(
    body=json.dumps(
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "{}"}]}, "finishReason": "STOP"}],
            "responseId": "resp-1",
        }
    ).encode()
)
SNAKE = "the package writes this nested key in snake case; the server takes both, and documents camel case"
DIFFERENCES = {
    "systemInstruction/role": "the package says `user`; a system instruction has no role, and servers leave it unread",
    "generationConfig/thinkingConfig/thinking_budget": SNAKE,
    "generationConfig/thinkingConfig/thinkingBudget": SNAKE,
    "generationConfig/thinkingConfig/include_thoughts": SNAKE,
    "generationConfig/thinkingConfig/includeThoughts": SNAKE,
}
_OLDER = "generationConfig/responseSchema/"
DIFFERENCES_OF_FIELD = {
    "responseJsonSchema": {},
    "responseSchema": dict.fromkeys(
        (
            f"{_OLDER}property_ordering",
            f"{_OLDER}propertyOrdering",
            f"{_OLDER}properties/searches/min_items",
            f"{_OLDER}properties/searches/minItems",
            f"{_OLDER}properties/searches/items/property_ordering",
            f"{_OLDER}properties/searches/items/propertyOrdering",
        ),
        SNAKE,
    ),
}


def flat(value, place=""):
    """Every leaf of a body by its place; a list is a leaf unless it holds objects."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return flat(dict(enumerate(value)), place)
    if not isinstance(value, dict):
        return {place: value}
    return {
        key: leaf
        for name, part in value.items()
        for key, leaf in flat(part, f"{place}/{name}" if place else str(name)).items()
    }


def ask_the_package(python, url, config, **more):
    asked = {"base_url": url, "api_version": "v1beta", "model": "model-1", "user": '{"task":"plan"}', "config": config}
    ran = subprocess.run(
        [python, str(HERE / "reference_gemini.py")],
        input=json.dumps(asked | more),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "REFERENCE_KEY": CANARY},
    )
    if "ModuleNotFoundError" in ran.stderr and os.environ.get("CASEBOUND_REQUIRE_SERVICES") != "1":
        pytest.skip("google-genai is not installed there (tests/services/foreign-requirements.txt)")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("field", FIELDS)
def test_our_request_is_that_of_the_vendors_package_but_for_what_is_explained(foreign_python, monkeypatch, field):
    monkeypatch.setenv("OUR_KEY", CANARY)
    newer = field == "responseJsonSchema"
    config = {
        "system_instruction": "Answer with one JSON object.",
        "max_output_tokens": 256,
        "temperature": 0.5,
        "seed": 7,
        "response_mime_type": "application/json",
        "thinking_config": {"thinking_budget": 0, "include_thoughts": True},
        "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        **(
            {"response_json_schema": json_schema_copy(SEARCHES_SCHEMA)}
            if newer
            else {"response_schema": openapi_copy(SEARCHES_SCHEMA)}
        ),
    }
    with Loopback(canary=CANARY) as server:
        server.answer(SUCCESS)
        reply = call(
            server.url,
            api_key_env="OUR_KEY",
            schema_field=field,
            temperature=0.5,
            seed=7,
            thinking_budget=0,
            include_thoughts=True,
            safety={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
        )
        theirs_read = ask_the_package(foreign_python, server.url, config)
    ours, theirs = server.requests
    assert (ours.method, ours.path, ours.query) == (theirs.method, theirs.path, theirs.query)
    assert ours.canary_in == theirs.canary_in == ("x-goog-api-key",)
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    sent, expected = flat(json.loads(ours.body)), flat(json.loads(theirs.body))
    different = {place for place in sent.keys() | expected.keys() if sent.get(place) != expected.get(place)}
    assert different == {**DIFFERENCES, **DIFFERENCES_OF_FIELD[field]}.keys()
    assert (reply.text, reply.request_id) == (theirs_read["text"], theirs_read["response_id"])


@pytest.mark.parametrize("response_format", ["json_object", "text"])
def test_without_a_schema_it_is_the_same(foreign_python, response_format):
    config = {"system_instruction": "Answer with one JSON object.", "max_output_tokens": 256}
    if response_format == "json_object":
        config["response_mime_type"] = "application/json"
    with Loopback() as server:
        server.answer(SUCCESS)
        call(server.url, {"response_format": response_format, "model": "models/model-1"})
        ask_the_package(foreign_python, server.url, config, model="models/model-1")
    ours, theirs = server.requests
    assert ours.path == theirs.path
    sent, expected = flat(json.loads(ours.body)), flat(json.loads(theirs.body))
    assert {**sent, "systemInstruction/role": "user"} == expected
