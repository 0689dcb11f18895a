"""What Chat Completions put onto the wire, and what is read from them."""

import json
from functools import partial
from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS
from casebound.testing.wire import NAME_SCHEMA, UNREPAIRED_TEXTS, code_of, error_of, name_request
from casebound_llm_openai.chat import read_reply, request_body
from casebound_llm_openai.settings import OpenAISettings
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"
TEXT = '{"searches": [{"term": "Ж-1"}] }'
request = partial(name_request, "openai")


def chat(**choice):
    return NativeReply(status=200, body=json.dumps({"choices": [choice]}).encode())


# --- the request ----------------------------------------------------------------------------------------------------


def test_a_structured_request_has_exactly_these_fields():
    assert request_body(request(), OpenAISettings()) == {
        "model": "model-1",
        "messages": [
            {"role": "system", "content": "Answer with one JSON object."},
            {"role": "user", "content": '{"task":"plan"}'},
        ],
        "max_completion_tokens": 64,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "plan",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            },
        },
    }


def test_the_cap_has_the_name_that_the_server_knows_and_only_that():
    body = request_body(request(), OpenAISettings(max_tokens_field="max_tokens"))
    assert body["max_tokens"] == 64
    assert "max_completion_tokens" not in body


def test_what_is_set_is_sent_and_what_is_not_is_left_out():
    bare = request_body(request(), OpenAISettings())
    assert not bare.keys() & {"temperature", "seed", "reasoning_effort", "stream", "n", "store"}
    settings = OpenAISettings(temperature=0, seed=7, reasoning_effort="low", body={"store": False, "top_k": 1})
    full = request_body(request(), settings)
    assert {name: full[name] for name in ("temperature", "seed", "reasoning_effort", "store", "top_k")} == {
        "temperature": 0,
        "seed": 7,
        "reasoning_effort": "low",
        "store": False,
        "top_k": 1,
    }


def test_a_server_that_takes_all_of_json_schema_gets_all_of_it():
    form = request_body(request(), OpenAISettings(strict_schema=False))["response_format"]["json_schema"]
    assert (form["strict"], form["schema"]) == (False, NAME_SCHEMA)


@pytest.mark.parametrize(("name", "sent"), [("entity link/1", "entity_link_1"), ("ж" * 70, "_" * 64), ("", "reply")])
def test_the_schema_name_fits_the_wire(name, sent):
    assert request_body(request(schema_name=name), OpenAISettings())["response_format"]["json_schema"]["name"] == sent


# --- the reply ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("MAX_TOKENS", "length"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("tool_call", "tool_calls"),
        ("model_felt_like_it", "other"),
        ("", "other"),
        (None, "other"),
        (7, "other"),
    ],
)
def test_finish_words_of_other_servers_are_mapped_and_unknown_ones_kept(word, finish):
    reply = read_reply(chat(finish_reason=word, message={"content": "x"}))
    assert (reply.finish_reason, reply.native_finish_reason) == (
        finish,
        word if isinstance(word, str) and word else None,
    )


def test_a_tool_call_counts_even_where_the_server_says_stop():
    called = [{"function": {"name": "shell"}}, {"function": {}}, None]
    reply = read_reply(chat(finish_reason="stop", message={"content": "{}", "tool_calls": called}))
    assert (reply.finish_reason, reply.tools) == ("tool_calls", ("shell", "unnamed", "unnamed"))
    old = read_reply(chat(finish_reason="stop", message={"content": "{}", "function_call": {"name": "look"}}))
    assert old.tools == ("look",)


@pytest.mark.parametrize("choices", [None, [], {}, "x", [None], [{}], [{"message": None}], [{"message": {}}]])
def test_a_reply_without_choices_is_empty_text(choices):
    assert read_reply(NativeReply(status=200, body=json.dumps({"choices": choices}).encode())).text == ""


@pytest.mark.parametrize("text", UNREPAIRED_TEXTS)
def test_the_models_text_is_never_repaired(text):
    assert read_reply(chat(finish_reason="stop", message={"content": text})).text == text


@pytest.mark.parametrize("before", ["", "\ufeff", "\r\n \n", ": PROCESSING\n\n: PROCESSING\r\n"])
def test_what_routers_put_before_the_json_is_skipped(before):
    body = before.encode() + (REPLIES / "success.json").read_bytes()
    assert read_reply(NativeReply(status=200, body=body)).text == TEXT


def test_a_number_that_is_none_does_not_cost_the_reply():
    body = (REPLIES / "success.json").read_bytes().replace(b"812", b"NaN").replace(b"97,", b"1e999,")
    reply = read_reply(NativeReply(status=200, body=body))
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == (TEXT, None, None)
    assert reply.usage.cached_input_tokens == 768


def test_half_an_emoji_stays_storable():
    body = rb'{"choices":[{"finish_reason":"length","message":{"content":"{\"a\":\"\ud83d"}}]}'
    reply = read_reply(NativeReply(status=200, body=body))
    assert reply.text == '{"a":"\\ud83d'
    assert reply.to_bytes()


def test_an_envelope_with_a_key_twice_has_two_meanings():
    body = b'{"choices":[{"message":{"content":"a","content":"b"},"finish_reason":"stop"}]}'
    error = error_of(read_reply, NativeReply(status=200, body=body))
    assert error.code == "LLM_UNAVAILABLE"
    assert "'content' twice" in str(error)


def test_a_login_page_with_status_200_is_no_reply():
    page = NativeReply(status=200, body=b"<!DOCTYPE html><h1>Log in", headers={"content-type": "text/html"})
    error = error_of(read_reply, page)
    assert error.code == "LLM_UNAVAILABLE"
    assert "text/html" in str(error)
    assert "base_url" in str(error)


KEYS = st.sampled_from(["content", "message", "refusal", "tool_calls", "function", "name", "type"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab\ud800", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_shape_of_reply_is_a_storable_reply_or_our_error(choice, usage, message):
    for value in ({"choices": choice, "usage": usage}, {"choices": [{"message": message, "finish_reason": choice}]}):
        assert code_of(read_reply, json.dumps(value).encode()) in {None, "LLM_QUOTA", *CODE_OF_STATUS.values()}
