"""What both ways of asking hold alike, each in words of its own: Chat Completions and the Responses API."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from casebound.contracts.model_call import Usage
from casebound.errors import ProviderError
from casebound.testing.wire import NAME_SCHEMA, code_of, name_request, recorded_reply
from casebound_llm_openai import chat, responses
from casebound_llm_openai.settings import OpenAISettings
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"
TEXT = '{"searches": [{"term": "Ж-1"}] }'
JSON_OBJECT = {"type": "json_object"}


@dataclass(frozen=True)
class Wire:
    """One way of asking.

    Attributes:
        request_body, read_reply: what is tested.
        format_field, json_mode: the field that asks for a format, and what it holds in JSON mode.
        prefix: how the names of its recorded replies begin.
        done: its word for an ordinary end.
    """

    request_body: Callable
    read_reply: Callable
    format_field: str
    json_mode: dict
    prefix: str
    done: str

    def reply(self, name, headers=None):
        return self.read_reply(recorded_reply(REPLIES / f"{self.prefix}{name}.json", headers=headers))


WIRES = {
    "chat": Wire(chat.request_body, chat.read_reply, "response_format", JSON_OBJECT, "", "stop"),
    "responses": Wire(
        responses.request_body, responses.read_reply, "text", {"format": JSON_OBJECT}, "responses_", "completed"
    ),
}


def body_of(api, **changes):
    return WIRES[api].request_body(name_request("openai", **changes), OpenAISettings(api=api))


# --- the request ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-127")
@pytest.mark.parametrize("api", WIRES)
def test_json_mode_does_not_transmit_the_schema(api):
    body = body_of(api, response_format="json_object")
    assert body[WIRES[api].format_field] == WIRES[api].json_mode
    assert "maxLength" not in json.dumps(body)
    assert '"name"' not in json.dumps(body)


@pytest.mark.parametrize("api", WIRES)
def test_json_mode_without_the_word_in_the_prompt_is_refused_before_sending(api):
    with pytest.raises(ProviderError, match="without the word JSON") as caught:
        body_of(api, response_format="json_object", system="Answer.")
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)


@pytest.mark.parametrize("api", WIRES)
def test_text_mode_sends_no_format(api):
    assert WIRES[api].format_field not in body_of(api, response_format="text")


@pytest.mark.parametrize("api", WIRES)
def test_a_schema_without_a_strict_form_is_refused_before_sending_with_its_reason(api):
    schema = {**NAME_SCHEMA, "properties": {"name": {"type": "string", "not": {"const": "x"}}}}
    with pytest.raises(ProviderError, match="the keyword not") as caught:
        body_of(api, response_schema=schema)
    assert (caught.value.code, caught.value.pointer) == ("LLM_REQUEST", "/properties/name")


@pytest.mark.parametrize("api", WIRES)
def test_a_request_without_a_model_is_refused_before_sending(api):
    with pytest.raises(ProviderError, match="no model"):
        body_of(api, model=None)


# --- the reply ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", WIRES)
def test_everything_that_is_reported_is_read(api):
    reply = WIRES[api].reply("success", {"x-request-id": "req_1"})
    assert reply.text == TEXT
    assert reply.usage == Usage(input_tokens=812, output_tokens=97, cached_input_tokens=768, reasoning_tokens=64)
    assert (reply.request_id, reply.served_model) == ("req_1", "model-1-2026-08-07")
    assert (reply.finish_reason, reply.native_finish_reason) == ("stop", WIRES[api].done)


@pytest.mark.parametrize(
    ("api", "name", "text", "finish", "own_word"),
    [
        ("chat", "content_parts", TEXT, "stop", "stop"),
        ("chat", "refusal", "", "refusal", "stop"),
        ("chat", "refusal_part", "", "refusal", "stop"),
        ("chat", "content_filter", "", "refusal", "content_filter"),
        ("chat", "cut_off", '{\n  "dec', "length", "length"),
        ("chat", "reasoning_spent", "", "length", "length"),
        ("chat", "tool_call", "", "tool_calls", "tool_calls"),
        ("chat", "no_text", "", "stop", "stop"),
        ("responses", "two_messages", TEXT, "stop", "completed"),
        ("responses", "refusal", "", "refusal", "completed"),
        ("responses", "content_filter", "", "refusal", "content_filter"),
        ("responses", "failed_prompt", "", "refusal", "invalid_prompt"),
        ("responses", "cut_off", '{\n  "dec', "length", "max_output_tokens"),
        ("responses", "tool_call", "", "tool_calls", "completed"),
        ("responses", "no_text", "", "stop", "completed"),
    ],
)
def test_each_way_to_end_is_told_apart(api, name, text, finish, own_word):
    reply = WIRES[api].reply(name)
    assert (reply.text, reply.finish_reason, reply.native_finish_reason) == (text, finish, own_word)


@pytest.mark.parametrize("api", WIRES)
def test_a_filtered_prompt_is_a_refusal_not_a_broken_request(api):
    native = recorded_reply(REPLIES / "error_azure_filter.json", status=400)
    assert WIRES[api].read_reply(native).finish_reason == "refusal"


@pytest.mark.parametrize("api", WIRES)
@given(body=st.binary(max_size=80))
def test_any_bytes_are_a_storable_reply_or_our_error(api, body):
    assert code_of(WIRES[api].read_reply, body) in {None, "LLM_UNAVAILABLE"}
