"""What event lines of the real program mean; they were recorded with Codex 0.171.0 against a server on loopback."""

from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply, Usage
from casebound.errors import ProviderError
from casebound_llm_codex.events import read_events
from casebound_llm_codex.failure import MOST_WEIGHED

REPLIES = Path(__file__).parent / "replies"
STARTED = b'{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n'
COMPLETED = b'{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}\n'


def native(body, status="0", **headers):
    return NativeReply(200, body, {"exit-status": status, **headers})


def recorded(name, status="0", **headers):
    return native((REPLIES / f"{name}.jsonl").read_bytes(), status, **headers)


def item(kind, **more):
    fields = "".join(f',"{key}":"{value}"' for key, value in more.items())
    return f'{{"type":"item.completed","item":{{"id":"i","type":"{kind}"{fields}}}}}\n'.encode()


def failed(message):
    return STARTED + f'{{"type":"turn.failed","error":{{"message":"{message}"}}}}\n'.encode()


def error_of(reply):
    with pytest.raises(ProviderError) as caught:
        read_events(reply)
    return caught.value


@pytest.mark.parametrize(
    ("name", "code", "retryable"),
    [
        ("http_401", "LLM_AUTH", False),
        ("http_403", "LLM_AUTH", False),
        ("missing_key", "LLM_AUTH", False),
        ("http_429", "LLM_RATE_LIMITED", True),
        ("stream_rate_limit", "LLM_RATE_LIMITED", True),
        ("quota", "LLM_QUOTA", False),
        ("bad_request", "LLM_REQUEST", False),
        ("too_long", "LLM_REQUEST", False),
        ("no_model", "LLM_REQUEST", False),
        ("http_500", "LLM_UNAVAILABLE", True),
        ("http_502_html", "LLM_UNAVAILABLE", True),
        ("http_503", "LLM_UNAVAILABLE", True),
        ("stream_failed", "LLM_UNAVAILABLE", True),
        ("reset", "LLM_UNAVAILABLE", True),
        ("eof", "LLM_UNAVAILABLE", True),
        ("refused_connection", "LLM_UNAVAILABLE", True),
    ],
)
def test_each_failure_of_the_server_has_its_code(name, code, retryable):
    error = error_of(recorded(name, "1"))
    assert (error.code, error.retryable, error.retry_after) == (code, retryable, None)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("You've hit your usage limit. Try again at 5 PM.", "LLM_QUOTA"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "LLM_AUTH"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "LLM_TIMEOUT"),
        ("unexpected status 404 Not Found: no such page, url: http://h/v1/responses", "LLM_REQUEST"),
        ("a sentence of tomorrow", "LLM_UNAVAILABLE"),
    ],
)
def test_sentences_that_no_loopback_server_can_cause_are_known_too(message, code):
    assert error_of(native(failed(message), "1")).code == code


def test_a_text_of_the_server_does_not_outvote_its_status():
    message = "unexpected status 503 Service Unavailable: rate limit exceeded, sign in again, model x does not exist"
    assert error_of(native(failed(message), "1")).code == "LLM_UNAVAILABLE"


@pytest.mark.parametrize(
    "words",
    [
        "this model is not supported",
        "model x does not exist",
        "unexpected status 401",
        "Incomplete response returned, reason: content_filter",
    ],
)
def test_only_the_beginning_of_a_long_sentence_is_weighed(words):
    assert MOST_WEIGHED <= 2000
    assert error_of(native(failed("model " * 2000 + words), "1")).code == "LLM_UNAVAILABLE"


def test_a_name_that_fills_what_is_weighed_is_no_name_of_a_model():
    assert error_of(native(failed(f"model {'x ' * 500} does not exist"), "1")).code == "LLM_UNAVAILABLE"


def test_a_warning_is_no_failure_and_the_last_message_is_the_answer():
    body = STARTED + item("error", message="Model metadata not found") + b'{"type":"error","message":"Reconnecting"}\n'
    body += item("agent_message", text="first") + item("reasoning", text="hm") + item("agent_message", text="last")
    reply = read_events(native(body + COMPLETED))
    assert (reply.text, reply.finish_reason, reply.tools) == ("last", "stop", ())


def test_usage_is_that_of_the_whole_turn():
    usage = read_events(recorded("success")).usage
    assert usage == Usage(input_tokens=1200, output_tokens=60, cached_input_tokens=1000, reasoning_tokens=40)
    assert read_events(recorded("command")).usage.input_tokens == 2700


def test_a_message_before_a_failure_is_no_answer():
    assert b"agent_message" in (REPLIES / "eof.jsonl").read_bytes()
    assert error_of(recorded("eof", "1")).code == "LLM_UNAVAILABLE"


def test_a_cut_answer_and_a_filtered_one_say_so():
    cut, filtered = read_events(recorded("cut_off", "1")), read_events(recorded("content_filter", "1"))
    assert (cut.finish_reason, cut.native_finish_reason) == ("length", "max_output_tokens")
    assert (filtered.finish_reason, filtered.native_finish_reason) == ("refusal", "content_filter")
    assert cut.usage == filtered.usage == Usage()


@pytest.mark.parametrize("name", ["refusal", "no_output"])
def test_a_refusal_looks_like_an_empty_answer_and_is_called_nothing_else(name):
    reply = read_events(recorded(name))
    assert (reply.text, reply.finish_reason) == ("", "stop")
    assert reply.usage.output_tokens == 60


def test_a_command_that_ran_is_a_tool_once():
    reply = read_events(recorded("command"))
    assert (reply.tools, reply.finish_reason) == (("command_execution",), "tool_calls")


def test_a_tool_that_was_not_offered_is_known_from_standard_error():
    chatter = "2026-11-30T13:03:13Z ERROR codex_core::tools::router: error=unsupported call: shell\n"
    reply = read_events(recorded("unoffered_tool", stderr=chatter))
    assert (reply.tools, reply.finish_reason) == (("shell",), "tool_calls")
    assert read_events(recorded("unoffered_tool")).tools == ()


def test_a_kind_of_item_that_nobody_knows_yet_counts_as_a_tool():
    body = STARTED + item("mcp_tool_call", server="files", tool="read") + item("telepathy") + item("agent_message")
    assert read_events(native(body + COMPLETED)).tools == ("mcp_tool_call.files.read", "telepathy")


@pytest.mark.parametrize("status", ["1", "-9", "unknown"])
def test_a_completed_turn_counts_only_with_exit_status_zero(status):
    assert error_of(recorded("success", status)).code in {"LLM_REQUEST", "LLM_UNAVAILABLE"}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [("1", "LLM_REQUEST", False), ("2", "LLM_REQUEST", False), ("-9", "LLM_UNAVAILABLE", True)],
)
def test_codex_that_does_not_begin_says_why(status, code, retryable):
    chatter = "WARNING: something\nError loading config.toml: unknown configuration field `nonsense`\n"
    error = error_of(native(b"", status, stderr=chatter))
    assert (error.code, error.retryable) == (code, retryable)
    assert "unknown configuration field `nonsense`" in str(error)
    assert f"exit status {status}" in str(error)


@pytest.mark.parametrize(
    "line", [b"Reading prompt from stdin...", b'{"type":"turn.star', b"[]", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000]
)
def test_output_that_is_no_events_is_no_reply(line):
    error = error_of(native(STARTED + line + b"\n" + item("agent_message", text="x") + COMPLETED))
    assert error.code == "LLM_UNAVAILABLE"
    assert "line 3" in str(error)
