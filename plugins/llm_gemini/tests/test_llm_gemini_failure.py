"""Every error of the server gets the code that says who must act, and the wait that was asked for."""

import json
from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound_llm_gemini.wire import read_reply

REPLIES = Path(__file__).parent / "replies"


def error_of(status, body, headers=None):
    with pytest.raises(ProviderError) as caught:
        read_reply(NativeReply(status=status, body=body, headers=headers or {}))
    return caught.value


def stored(name):
    return (REPLIES / f"{name}.json").read_bytes()


def error_body(wrapped=False, **facts):
    whole = {"error": {"message": "no", **facts}}
    return json.dumps([whole] if wrapped else whole).encode()


def retry_info(delay):
    return error_body(details=[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}])


@pytest.mark.parametrize(
    ("name", "status", "code", "retryable", "wait"),
    [
        ("error_key", 400, "LLM_AUTH", False, None),
        ("error_leaked_key", 403, "LLM_AUTH", False, None),
        ("error_schema", 400, "LLM_REQUEST", False, None),
        ("error_field", 400, "LLM_REQUEST", False, None),
        ("error_region", 400, "LLM_REQUEST", False, None),
        ("error_model", 404, "LLM_REQUEST", False, None),
        ("error_minute", 429, "LLM_RATE_LIMITED", True, 37.5),
        ("error_minute_in_list", 429, "LLM_RATE_LIMITED", True, 37.5),
        ("error_day", 429, "LLM_QUOTA", False, None),
        ("error_no_quota", 429, "LLM_QUOTA", False, None),
        ("error_exhausted", 429, "LLM_RATE_LIMITED", True, None),
        ("error_overloaded", 503, "LLM_UNAVAILABLE", True, None),
        ("error_internal", 500, "LLM_UNAVAILABLE", True, None),
        ("error_deadline", 504, "LLM_TIMEOUT", True, None),
        ("error_litellm", 400, "LLM_REQUEST", False, None),
    ],
)
@pytest.mark.parametrize("inside_success", [False, True])
def test_each_error_has_its_code_and_its_wait_with_its_status_and_inside_200(
    name, status, code, retryable, wait, inside_success
):
    error = error_of(200 if inside_success else status, stored(name))
    assert (error.code, error.retryable, error.retry_after) == (code, retryable, wait)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("CANCELLED", "LLM_UNAVAILABLE"),
        ("ABORTED", "LLM_UNAVAILABLE"),
        ("DATA_LOSS", "LLM_UNAVAILABLE"),
        ("DEADLINE_EXCEEDED", "LLM_TIMEOUT"),
        ("RESOURCE_EXHAUSTED", "LLM_RATE_LIMITED"),
        ("UNAUTHENTICATED", "LLM_AUTH"),
        ("OUT_OF_RANGE", "LLM_REQUEST"),
        ("SOMETHING_NEW", "LLM_UNAVAILABLE"),
        (7, "LLM_UNAVAILABLE"),
    ],
)
def test_inside_200_the_servers_word_decides_where_there_is_no_number(word, code):
    assert error_of(200, error_body(status=word)).code == code


def test_the_status_decides_where_the_words_contradict_it():
    assert error_of(503, error_body(code=400, status="INVALID_ARGUMENT")).code == "LLM_UNAVAILABLE"
    assert error_of(400, error_body(code=503, status="DEADLINE_EXCEEDED")).code == "LLM_REQUEST"
    assert error_of(499, error_body(code=499, status="CANCELLED")).code == "LLM_UNAVAILABLE"


@pytest.mark.parametrize(
    ("delay", "wait"),
    [
        ("37s", 37.0),
        ("0.5s", 0.5),
        ("1.203s", 1.203),
        ("1.203000001s", 1.203000001),
        ("172800s", 86_400.0),
        ("0s", None),
        ("-5s", None),
        ("999999999999s", None),
        ("37", None),
        ("1m", None),
        ("NaNs", None),
        ("٣s", None),
        ("", None),
        (None, None),
        (37, None),
    ],
)
def test_retry_info_is_read_as_protobuf_writes_durations(delay, wait):
    assert error_of(429, retry_info(delay)).retry_after == wait


def test_a_retry_after_header_comes_before_retry_info():
    assert error_of(429, retry_info("37s"), {"retry-after": "7"}).retry_after == 7
    assert error_of(429, retry_info("37s"), {"retry-after": "soon"}).retry_after == 37


def test_a_wait_is_no_wish_where_waiting_does_not_help():
    assert error_of(400, retry_info("37s")).retry_after is None


@pytest.mark.parametrize(
    "body", [b"", b"<html>Bad Gateway</html>", b'{"error":"text"}', b'{"detail":"no"}', b"[]", b"[7]", b"\xff", b"null"]
)
def test_the_status_decides_whatever_the_body_is(body):
    assert error_of(503, body).code == "LLM_UNAVAILABLE"
    assert error_of(403, body).code == "LLM_AUTH"


def test_the_error_says_what_the_server_said_on_one_line():
    text = str(error_of(400, stored("error_key")))
    assert "HTTP 400" in text
    assert "API_KEY_INVALID" in text
    assert "API key not valid" in text
    field = str(error_of(400, stored("error_field")))
    assert "generation_config.response_schema" in field
    odd = str(error_of(500, error_body(message="a\nb\x1b[31m")))
    assert "a b\\u{1b}[31m" in odd


def test_what_helps_is_said_where_the_server_tells_what_is_wrong():
    assert "json_object" in str(error_of(400, stored("error_schema")))
    unknown = error_body(message="Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.")
    assert 'schema_field = "responseSchema"' in str(error_of(400, unknown))
