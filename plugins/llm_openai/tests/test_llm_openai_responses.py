"""What the Responses API puts onto the wire, and what is read from it."""

import json
from functools import partial
from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS
from casebound.testing.wire import NAME_SCHEMA, code_of, error_of, name_request, recorded_reply
from casebound_llm_openai.responses import read_reply, request_body
from casebound_llm_openai.settings import OpenAISettings
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"
request = partial(name_request, "openai")


def native(name):
    return recorded_reply(REPLIES / f"responses_{name}.json")


def settings(**changes):
    return OpenAISettings(api="responses", **changes)


def response(**fields):
    return NativeReply(status=200, body=json.dumps({"object": "response", "status": "completed", **fields}).encode())


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


def test_a_server_that_takes_all_of_json_schema_gets_all_of_it():
    schema = {**NAME_SCHEMA, "properties": {"name": {"type": "string", "not": {"const": "x"}}}}
    sent = request_body(request(response_schema=schema), settings(strict_schema=False))["text"]["format"]
    assert (sent["strict"], sent["schema"]) == (False, schema)


def test_what_is_set_is_sent_and_what_is_not_is_left_out():
    assert not request_body(request(), settings()).keys() & {"temperature", "reasoning", "seed", "stream", "tools"}
    chosen = settings(temperature=0, reasoning_effort="low", body={"service_tier": "flex"})
    full = request_body(request(), chosen)
    assert (full["temperature"], full["reasoning"], full["service_tier"]) == (0, {"effort": "low"}, "flex")


# --- the reply ------------------------------------------------------------------------------------------------------


def test_without_a_header_the_request_has_the_id_of_its_response():
    assert read_reply(native("success")).request_id.startswith("resp_")


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
    error = error_of(read_reply, native(name))
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
    assert error_of(read_reply, response(status="failed", error=error)).code == code


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
    assert error_of(read_reply, NativeReply(status=200, body=b'{"error":{"code":429}}')).code == "LLM_RATE_LIMITED"
    assert error_of(read_reply, NativeReply(status=200, body=b"<html>Log in")).code == "LLM_UNAVAILABLE"


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
        assert code_of(read_reply, json.dumps(value).encode()) in {None, "LLM_QUOTA", *CODE_OF_STATUS.values()}
