"""What the Responses API puts onto the wire, and what is read from it."""

import json
from pathlib import Path

import pytest
from casebound.contracts.model_call import ModelReply, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS
from casebound.testing.scripted import model_request
from casebound_llm_openai.responses import read_reply, request_body
from casebound_llm_openai.settings import OpenAISettings
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"
TEXT = '{"searches": [{"term": "Ж-1"}] }'
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}},
    "required": ["name"],
    "additionalProperties": False,
}


def request(**changes):
    return model_request(provider="openai", **{"response_schema": SCHEMA, **changes})


def settings(**changes):
    return OpenAISettings(api="responses", **changes)


def native(name, status=200, headers=None):
    body = (REPLIES / f"responses_{name}.json").read_bytes()
    return NativeReply(status=status, body=body, headers=headers or {})


def response(**fields):
    return NativeReply(status=200, body=json.dumps({"object": "response", "status": "completed", **fields}).encode())


def error_of(reply):
    with pytest.raises(ProviderError) as caught:
        read_reply(reply)
    return caught.value


# --- the request ----------------------------------------------------------------------------------------------------


def test_a_structured_request_has_exactly_these_fields():
    assert request_body(request(), settings()) == {
        "model": "model-1",
        "input": [
            {"role": "system", "content": "Answer with one JSON object."},
            {"role": "user", "content": '{"task":"plan"}'},
        ],
        "max_output_tokens": 64,
        "store": False,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "plan",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            }
        },
    }


@pytest.mark.spec("A-127")
def test_json_mode_does_not_transmit_the_schema():
    body = request_body(request(response_format="json_object"), settings())
    assert body["text"] == {"format": {"type": "json_object"}}
    assert "maxLength" not in json.dumps(body)
    assert '"name"' not in json.dumps(body)


def test_json_mode_without_the_word_in_the_prompt_is_refused_before_sending():
    with pytest.raises(ProviderError, match="without the word JSON") as caught:
        request_body(request(response_format="json_object", system="Answer."), settings())
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)


def test_text_mode_sends_no_format():
    assert "text" not in request_body(request(response_format="text"), settings())


def test_a_schema_without_a_strict_form_is_refused_before_sending_with_its_reason():
    schema = {**SCHEMA, "properties": {"name": {"type": "string", "not": {"const": "x"}}}}
    with pytest.raises(ProviderError, match="the keyword not") as caught:
        request_body(request(response_schema=schema), settings())
    assert (caught.value.code, caught.value.pointer) == ("LLM_REQUEST", "/properties/name")
    sent = request_body(request(response_schema=schema), settings(strict_schema=False))["text"]["format"]
    assert (sent["strict"], sent["schema"]) == (False, schema)


def test_what_is_set_is_sent_and_what_is_not_is_left_out():
    assert not request_body(request(), settings()).keys() & {"temperature", "reasoning", "seed", "stream", "tools"}
    chosen = settings(temperature=0, reasoning_effort="low", body={"service_tier": "flex"})
    full = request_body(request(), chosen)
    assert (full["temperature"], full["reasoning"], full["service_tier"]) == (0, {"effort": "low"}, "flex")


def test_a_request_without_a_model_is_refused_before_sending():
    with pytest.raises(ProviderError, match="no model"):
        request_body(request(model=None), settings())


# --- the reply ------------------------------------------------------------------------------------------------------


def test_everything_that_is_reported_is_read():
    reply = read_reply(native("success", headers={"x-request-id": "req_1"}))
    assert reply.text == TEXT
    assert reply.usage == Usage(input_tokens=812, output_tokens=97, cached_input_tokens=768, reasoning_tokens=64)
    assert (reply.request_id, reply.served_model) == ("req_1", "model-1-2026-08-07")
    assert (reply.finish_reason, reply.native_finish_reason) == ("stop", "completed")


def test_without_a_header_the_request_has_the_id_of_its_response():
    assert read_reply(native("success")).request_id.startswith("resp_")


@pytest.mark.parametrize(
    ("name", "text", "finish", "own_word"),
    [
        ("two_messages", TEXT, "stop", "completed"),
        ("refusal", "", "refusal", "completed"),
        ("content_filter", "", "refusal", "content_filter"),
        ("failed_prompt", "", "refusal", "invalid_prompt"),
        ("cut_off", '{\n  "dec', "length", "max_output_tokens"),
        ("tool_call", "", "tool_calls", "completed"),
        ("no_text", "", "stop", "completed"),
    ],
)
def test_each_way_to_end_is_told_apart(name, text, finish, own_word):
    reply = read_reply(native(name))
    assert (reply.text, reply.finish_reason, reply.native_finish_reason) == (text, finish, own_word)


@pytest.mark.parametrize(
    ("fields", "finish", "own_word"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "felt_like_it"}}, "other", "felt_like_it"),
        ({"status": "incomplete", "incomplete_details": None}, "other", "incomplete"),
        ({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}}, "stop", "completed"),
        ({"status": "in_progress"}, "length", "in_progress"),
        ({"status": "queued"}, "length", "queued"),
        ({"status": "cancelled"}, "length", "cancelled"),
        ({"status": None}, "other", None),
        ({"status": 7}, "other", None),
    ],
)
def test_a_status_is_mapped_and_an_unknown_one_kept(fields, finish, own_word):
    reply = read_reply(response(**fields))
    assert (reply.finish_reason, reply.native_finish_reason) == (finish, own_word)


@pytest.mark.parametrize(
    ("name", "code", "retryable"),
    [("failed_rate", "LLM_RATE_LIMITED", True), ("failed_server", "LLM_UNAVAILABLE", True)],
)
def test_a_failure_that_comes_with_http_200_is_a_failure(name, code, retryable):
    error = error_of(native(name))
    assert (error.code, error.retryable) == (code, retryable)
    assert json.loads(native(name).body)["error"]["message"][:20] in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": "data_residency_mismatch", "message": "x"}, "LLM_REQUEST"),
        ({"code": "vector_store_timeout", "message": "x"}, "LLM_UNAVAILABLE"),
        ({"code": "insufficient_quota"}, "LLM_QUOTA"),
        (None, "LLM_UNAVAILABLE"),
        ("out of memory", "LLM_UNAVAILABLE"),
    ],
)
def test_a_failed_response_is_judged_by_its_own_code(error, code):
    assert error_of(response(status="failed", error=error)).code == code


def test_every_tool_is_named_by_its_name_or_its_kind():
    reply = read_reply(native("tool_call"))
    assert reply.tools == ("shell", "web_search_call")
    beside = [
        {"type": "mcp_call", "name": "look"},
        {"type": "message", "content": [{"type": "output_text", "text": "{}"}]},
    ]
    assert read_reply(response(output=beside)).finish_reason == "tool_calls"


@pytest.mark.parametrize("output", [None, [], {}, "x", [None], [{}], [{"type": "message", "content": None}], [7]])
def test_a_response_without_output_is_empty_text(output):
    assert read_reply(response(output=output)).text == ""


def test_a_bare_error_and_a_login_page_with_status_200_are_no_reply():
    assert error_of(NativeReply(status=200, body=b'{"error":{"code":429}}')).code == "LLM_RATE_LIMITED"
    assert error_of(NativeReply(status=200, body=b"<html>Log in")).code == "LLM_UNAVAILABLE"


def test_a_filtered_prompt_is_a_refusal_not_a_broken_request():
    body = (REPLIES / "error_azure_filter.json").read_bytes()
    assert read_reply(NativeReply(status=400, body=body)).finish_reason == "refusal"


def code_of(body):
    """Return the code of our error, None for a reply, which comes back from its bytes as it was; all else fails."""
    try:
        reply = read_reply(NativeReply(status=200, body=body))
    except ProviderError as error:
        return error.code
    assert ModelReply.from_bytes(reply.to_bytes()) == reply
    return None


KEYS = st.sampled_from(["content", "type", "refusal", "text", "name", "phase", "reason"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["message", "output_text", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_shape_of_response_is_a_storable_reply_or_our_error(output, details, usage):
    for status in ("completed", "incomplete", "failed"):
        value = {"status": status, "output": output, "incomplete_details": details, "usage": usage}
        assert code_of(json.dumps(value).encode()) in {None, "LLM_QUOTA", *CODE_OF_STATUS.values()}
