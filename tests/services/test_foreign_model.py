"""The provider against llama.cpp with a real model of 135 million parameters; see `scripts/local_model.py`.

What the model says is nonsense, so nothing here looks at the content: shapes, endings, counts and failures are real.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("casebound_llm_openai")

from casebound.errors import ProviderError
from casebound.testing.scripted import model_request
from casebound.testing.wire import ask_once
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings
from jsonschema import Draft202012Validator

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = {
    "type": "object",
    "properties": {
        "catalog": {"enum": ["inv.host", "inv.service"]},
        "term": {"type": "string", "pattern": "^[a-z]{2,12}$"},
        "rank": {"type": "integer", "minimum": 1, "maximum": 9},
        "role": {"const": "affected_subject"},
        "note": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    },
    "required": ["catalog", "term", "rank", "role", "note"],
    "additionalProperties": False,
}


@pytest.fixture
def call(model, model_key, monkeypatch):
    """One call of the model, with changes to its request."""

    def ask(key=model_key, settings=None, **changes):
        monkeypatch.setenv("LOCAL_KEY", key)
        chosen = {"strict_schema": False, "temperature": 0, "seed": 1, **(settings or {})}
        if chosen.get("api") == "responses":
            del chosen["seed"]
        provider = OpenAIProvider(OpenAISettings(base_url=model, api_key_env="LOCAL_KEY", **chosen))
        facts = {
            "response_schema": SCHEMA,
            "max_output_tokens": 160,
            "timeout_s": 300,
            "user": '{"text":"node-1 is down"}',
        }
        return ask_once(provider, model_request(provider="openai", **{**facts, **changes}))

    return ask


@pytest.mark.parametrize("strict", [False, True])
def test_a_reply_under_a_schema_has_its_shape(call, strict):
    reply = call(settings={"strict_schema": strict})
    assert (reply.finish_reason, reply.native_finish_reason, reply.tools) == ("stop", "stop", ())
    assert not list(Draft202012Validator(SCHEMA).iter_errors(json.loads(reply.text)))
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert reply.usage.reasoning_tokens is None
    assert reply.served_model


def test_a_reply_that_is_cut_says_so(call):
    reply = call(max_output_tokens=4)
    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 4)


@pytest.mark.parametrize("response_format", ["json_object", "text"])
def test_without_a_schema_there_is_some_text(call, response_format):
    reply = call(response_format=response_format, max_output_tokens=24)
    assert reply.text
    assert reply.finish_reason in {"stop", "length"}


def test_a_second_equal_call_reports_cached_tokens_and_the_same_text(call):
    first, second = (call() for _ in range(2))
    assert second.usage.cached_input_tokens > 0
    assert first.text == second.text


def test_the_older_name_of_the_cap_is_understood(call):
    reply = call(settings={"max_tokens_field": "max_tokens"}, max_output_tokens=4)
    assert reply.finish_reason == "length"


def test_its_responses_are_read_though_it_ignores_their_schema(call):
    reply = call(settings={"api": "responses"}, max_output_tokens=24)
    assert reply.text
    assert reply.native_finish_reason == "completed"
    assert reply.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("what", "code", "says"),
    [
        ({"key": "canary-another-key"}, "LLM_AUTH", "Invalid API Key"),
        ({"user": "word " * 12_000}, "LLM_REQUEST", "longer than the model's context"),
        ({"response_schema": {"type": "nonsense"}}, "LLM_REQUEST", "HTTP 400"),
        ({"settings": {"path": "/nowhere"}}, "LLM_REQUEST", "HTTP 404"),
    ],
)
def test_each_failure_has_its_code_and_shows_no_key(call, what, code, says):
    with pytest.raises(ProviderError) as caught:
        call(**what)
    assert (caught.value.code, caught.value.retryable) == (code, False)
    assert says in f"{caught.value} {caught.value.hint}"
    assert "canary" not in str(caught.value)


# The grammar of this schema lets nobody end before six hundred tokens.
LONG = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 300, "maxItems": 300}},
    "required": ["numbers"],
    "additionalProperties": False,
}


@pytest.mark.faults
def test_a_deadline_ends_a_call_that_is_still_being_answered(call):
    with pytest.raises(ProviderError) as caught:
        call(response_schema=LONG, max_output_tokens=1000, timeout_s=1)
    assert caught.value.code == "LLM_TIMEOUT"


def test_demo_local_tells_what_the_model_got_right(no_model):
    ran = subprocess.run([sys.executable, "scripts/demo_local.py"], cwd=ROOT, capture_output=True, text=True)
    if ran.stderr.startswith("demo-local: "):
        no_model(ran.stderr)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    for stage in ("plan", "assessment", "interpretation"):
        _, _, told = ran.stdout.partition(f"\n{stage} by ")
        state, replies, expected, _, verified, *_ = told.splitlines()
        assert state.split(": ", 1)[1].split(" ")[0] in {"interpreted", "review"}
        assert replies != "  replies: none"
        assert expected.startswith("  the expected identities selected: ")
        assert verified.startswith(("  verify: holds", "  verify: unfinished"))
