"""Errors of servers, in the shapes that servers really send."""

from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound.llm.http.failure import LONGEST_WAIT_S
from casebound_llm_openai.chat import read_reply
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"


def error_of(body, status, headers=None):
    with pytest.raises(ProviderError) as caught:
        read_reply(NativeReply(status=status, body=body, headers=headers or {}))
    return caught.value


@pytest.mark.parametrize(
    ("name", "status", "code", "retryable", "says"),
    [
        ("error_openai_quota", 429, "LLM_QUOTA", False, "exceeded your current quota"),
        ("error_openai_schema", 400, "LLM_REQUEST", False, "param response_format: Invalid schema"),
        ("error_openai_context", 400, "LLM_REQUEST", False, "longer than the model's context"),
        ("error_llamacpp_context", 400, "LLM_REQUEST", False, "longer than the model's context"),
        ("error_llamacpp_key", 401, "LLM_AUTH", False, "Invalid API Key"),
        ("error_litellm_key", 400, "LLM_AUTH", False, "No connected db"),
        ("error_fastapi", 422, "LLM_REQUEST", False, "HTTP 422"),
        ("error_ollama", 404, "LLM_REQUEST", False, "model 'nope' not found"),
        ("error_router_in_200", 200, "LLM_RATE_LIMITED", True, "free-models-per-min"),
        ("error_in_choice", 200, "LLM_UNAVAILABLE", True, "Upstream went away"),
    ],
)
def test_each_servers_shape_gets_its_code(name, status, code, retryable, says):
    error = error_of((REPLIES / f"{name}.json").read_bytes(), status)
    assert (error.code, error.retryable) == (code, retryable)
    assert says in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (b'{"code":"rate_limit_exceeded"}', "LLM_RATE_LIMITED"),
        (b'{"code":"429"}', "LLM_RATE_LIMITED"),
        (b'{"code":401}', "LLM_AUTH"),
        (b'{"code":402}', "LLM_QUOTA"),
        (b'{"code":408}', "LLM_TIMEOUT"),
        (b'{"code":"insufficient_quota"}', "LLM_QUOTA"),
        (b'{"type":"invalid_request_error","code":null}', "LLM_REQUEST"),
        (b'{"code":"server_error"}', "LLM_UNAVAILABLE"),
        (b'{"code":200}', "LLM_UNAVAILABLE"),
        (b'{"code":true}', "LLM_UNAVAILABLE"),
        (b'"out of memory"', "LLM_UNAVAILABLE"),
        (b"[1]", "LLM_UNAVAILABLE"),
    ],
)
def test_an_error_inside_200_is_judged_by_its_own_code(error, code):
    assert error_of(b'{"choices":null,"error":' + error + b"}", 200).code == code


@pytest.mark.parametrize("nothing", [b"null", b"{}", b'""', b"false", b"NaN"])
def test_an_error_that_says_nothing_beside_a_reply_is_none(nothing):
    body = b'{"error":' + nothing + b',"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'
    assert read_reply(NativeReply(status=200, body=body)).text == "x"


def test_a_server_that_forbids_a_retry_is_obeyed():
    error = error_of(b"{}", 503, {"x-should-retry": "false", "retry-after": "5"})
    assert (error.code, error.retryable, error.retry_after) == ("LLM_UNAVAILABLE", False, None)
    assert error_of(b"{}", 400, {"x-should-retry": "true"}).retryable is False


def test_what_a_server_says_becomes_one_short_printable_line():
    error = error_of(b'{"error":{"message":"a\\nb\\u001b[31m\\u202e' + b"x" * 5000 + b'"}}', 500)
    assert "a b\\u{1b}[31m\\u{202e}x" in str(error)
    assert len(str(error)) < 800


def test_a_redirect_names_the_setting():
    assert "base_url" in error_of(b"", 301).hint


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "3", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "120ms",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "1m1.5s",
            },
            61.5,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s", "retry-after": "2"}, 2),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9999999h"}, None),
    ],
)
def test_what_is_used_up_says_when_it_is_there_again(headers, seconds):
    assert error_of(b"{}", 429, headers).retry_after == seconds


@given(st.text("0123456789.-+e hms", max_size=30))
def test_any_reset_gives_a_wait_of_a_day_at_most_or_none(reset):
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": reset}
    seconds = error_of(b"{}", 429, headers).retry_after
    assert seconds is None or 0 < seconds <= LONGEST_WAIT_S
