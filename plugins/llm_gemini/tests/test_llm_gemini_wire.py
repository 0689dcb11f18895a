"""What goes onto the wire, and what is read from it."""

import json
from functools import partial
from pathlib import Path

import pytest
from casebound.contracts.model_call import NativeReply, Usage
from casebound.errors import ProviderError
from casebound.llm.judge import judge
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS
from casebound.testing.wire import UNREPAIRED_TEXTS, code_of, error_of, name_request, recorded_reply
from casebound_llm_gemini.settings import GeminiSettings
from casebound_llm_gemini.wire import read_reply, request_body, request_path
from hypothesis import given
from hypothesis import strategies as st

REPLIES = Path(__file__).parent / "replies"
TEXT = '{"searches": [{"term": "Ж-1"}] }'
request = partial(name_request, "gemini")


def native(name, headers=None):
    return recorded_reply(REPLIES / f"{name}.json", headers=headers)


def answer(*parts, **candidate):
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", **candidate}
    return NativeReply(status=200, body=json.dumps({"candidates": [candidate]}).encode())


# --- the request ----------------------------------------------------------------------------------------------------


def test_a_structured_request_has_exactly_these_fields():
    assert request_body(request(), GeminiSettings()) == {
        "systemInstruction": {"parts": [{"text": "Answer with one JSON object."}]},
        "contents": [{"role": "user", "parts": [{"text": '{"task":"plan"}'}]}],
        "generationConfig": {
            "maxOutputTokens": 64,
            "responseMimeType": "application/json",
            "responseJsonSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "propertyOrdering": ["name"],
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    }


def test_the_older_field_carries_the_older_form_and_never_both():
    config = request_body(request(), GeminiSettings(schema_field="responseSchema"))["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"] == {
        "type": "OBJECT",
        "properties": {"name": {"type": "STRING"}},
        "propertyOrdering": ["name"],
        "required": ["name"],
    }
    assert "responseJsonSchema" not in config


@pytest.mark.spec("A-127")
def test_json_mode_does_not_transmit_the_schema():
    body = request_body(request(response_format="json_object"), GeminiSettings())
    assert body["generationConfig"] == {"maxOutputTokens": 64, "responseMimeType": "application/json"}
    assert '"name"' not in json.dumps(body)


def test_text_mode_sends_no_format():
    assert request_body(request(response_format="text"), GeminiSettings())["generationConfig"] == {
        "maxOutputTokens": 64
    }


def test_what_is_set_is_sent_and_what_is_not_is_left_out():
    settings = GeminiSettings(
        temperature=0,
        seed=7,
        thinking_budget=0,
        include_thoughts=True,
        safety={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
        generation={"topK": 1},
        body={"labels": {"team": "a"}},
    )
    full = request_body(request(response_format="text"), settings)
    assert full["generationConfig"] == {
        "maxOutputTokens": 64,
        "temperature": 0,
        "seed": 7,
        "thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True},
        "topK": 1,
    }
    assert full["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert full["labels"] == {"team": "a"}
    level = request_body(request(response_format="text"), GeminiSettings(thinking_level="LOW"))
    assert level["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "LOW"}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-x.1-pro", "/v1beta/models/gemini-x.1-pro:generateContent"),
        ("models/gemini-x", "/v1beta/models/gemini-x:generateContent"),
        ("tunedModels/mine-1", "/v1beta/tunedModels/mine-1:generateContent"),
        ("gateway/gemini-x@2", "/v1beta/models/gateway/gemini-x@2:generateContent"),
    ],
)
def test_the_model_stands_in_the_path(model, path):
    assert request_path(request(model=model), GeminiSettings()) == path


@pytest.mark.parametrize(
    "model", [None, "", "a b", "a?key=x", "../v1/x", "a/../b", "a:generateContent", "a#", "ж", "a%2f", "a\n"]
)
def test_a_model_that_no_path_can_hold_is_refused_before_sending(model):
    with pytest.raises(ProviderError) as caught:
        request_path(request(model=model), GeminiSettings())
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)


# --- the reply ------------------------------------------------------------------------------------------------------


def test_everything_that_is_reported_is_read():
    reply = read_reply(native("success"))
    assert reply.text == TEXT
    assert reply.usage == Usage(input_tokens=812, output_tokens=97, cached_input_tokens=768, reasoning_tokens=64)
    assert (reply.request_id, reply.served_model) == ("resp-1", "model-1-001")
    assert (reply.finish_reason, reply.native_finish_reason) == ("stop", "STOP")


def test_a_gateway_that_says_less_is_read_too():
    reply = read_reply(native("litellm", headers={"x-request-id": "gw-1"}))
    assert (reply.text, reply.finish_reason) == (TEXT, "stop")
    assert (reply.request_id, reply.served_model) == ("gw-1", None)
    assert reply.usage == Usage(input_tokens=812, output_tokens=33)


def test_thoughts_are_left_out_and_the_other_parts_joined():
    assert read_reply(native("split_parts")).text == TEXT


@pytest.mark.parametrize(
    ("name", "text", "finish", "own_word", "code"),
    [
        ("cut_off", '{\n  "dec', "length", "MAX_TOKENS", "LLM_INCOMPLETE_OUTPUT"),
        ("thinking_spent", "", "length", "MAX_TOKENS", "LLM_INCOMPLETE_OUTPUT"),
        ("without_content", "", "length", "MAX_TOKENS", "LLM_INCOMPLETE_OUTPUT"),
        ("safety", "", "refusal", "SAFETY", "LLM_REFUSED"),
        ("recitation", "", "refusal", "RECITATION", "LLM_REFUSED"),
        ("prompt_blocked", "", "refusal", "PROHIBITED_CONTENT", "LLM_REFUSED"),
        ("tool_call", "", "tool_calls", "STOP", "LLM_OUTPUT_JSON"),
        ("no_text", "", "stop", "STOP", "LLM_OUTPUT_JSON"),
        ("no_candidates", "", "other", None, "LLM_OUTPUT_JSON"),
    ],
)
def test_each_way_to_end_is_told_apart(name, text, finish, own_word, code):
    reply = read_reply(native(name))
    assert (reply.text, reply.finish_reason, reply.native_finish_reason) == (text, finish, own_word)
    assert judge(reply, {}, (), {}).findings[0].code == code


REFUSED = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "LANGUAGE",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "NO_IMAGE",
]
TOOLS = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"]
UNFINISHED = [
    "MAX_TOKENS",
    "OTHER",
    "FINISH_REASON_UNSPECIFIED",
    "ESCALATION",
    "CONTINUATION",
    "PUP_LIMITED_DISABLED",
    "MODEL_FELT_LIKE_IT",
]


@pytest.mark.parametrize(
    ("word", "code"),
    [
        *((word, "LLM_REFUSED") for word in REFUSED),
        *((word, "LLM_OUTPUT_JSON") for word in TOOLS),
        *((word, "LLM_INCOMPLETE_OUTPUT") for word in UNFINISHED),
        *((word, "LLM_INCOMPLETE_OUTPUT") for word in ("", None, 7)),
    ],
)
def test_no_reply_that_ended_otherwise_is_accepted_whatever_its_text(word, code):
    reply = read_reply(answer({"text": "{}"}, finishReason=word))
    verdict = judge(reply, {}, (), {})
    assert (verdict.value, verdict.findings[0].code) == (None, code)
    assert reply.native_finish_reason == (word if isinstance(word, str) and word else None)


def test_a_gateway_that_writes_the_words_small_is_understood():
    assert read_reply(answer({"text": "{}"}, finishReason="stop")).finish_reason == "stop"


def test_a_malformed_response_without_text_is_an_empty_reply():
    reply = read_reply(answer(finishReason="MALFORMED_RESPONSE"))
    assert judge(reply, {}, (), {}).findings[0].code == "LLM_OUTPUT_JSON"


@pytest.mark.parametrize(
    "word", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK", "NEW"]
)
@pytest.mark.parametrize("rest", [{}, {"candidates": []}, {"candidates": None}])
def test_a_blocked_prompt_is_a_refusal_with_its_word(word, rest):
    body = json.dumps({"promptFeedback": {"blockReason": word}, **rest}).encode()
    reply = read_reply(NativeReply(status=200, body=body))
    assert (reply.finish_reason, reply.native_finish_reason) == ("refusal", word)


def test_every_kind_of_tool_is_named_even_where_the_server_says_stop():
    parts = ({"functionCall": {"name": "shell"}}, {"functionCall": {"args": {}}}, {"executableCode": {"code": "1"}})
    reply = read_reply(answer({"text": "{}"}, *parts))
    assert (reply.finish_reason, reply.tools) == ("tool_calls", ("shell", "unnamed", "code_execution"))


@pytest.mark.parametrize(
    ("counts", "output"),
    [
        ({}, None),
        ({"candidatesTokenCount": 3}, 3),
        ({"thoughtsTokenCount": 5}, 5),
        ({"candidatesTokenCount": 0}, 0),
        ({"candidatesTokenCount": 3, "thoughtsTokenCount": 5}, 8),
        ({"candidatesTokenCount": 3, "thoughtsTokenCount": -5}, None),
        ({"candidatesTokenCount": "3", "thoughtsTokenCount": 5}, None),
        ({"candidatesTokenCount": 2**53 - 1, "thoughtsTokenCount": 1}, None),
    ],
)
def test_output_is_answer_and_thoughts_and_absent_is_not_zero(counts, output):
    body = json.dumps({"candidates": [], "usageMetadata": counts}).encode()
    assert read_reply(NativeReply(status=200, body=body)).usage.output_tokens == output


@pytest.mark.parametrize(
    "candidates",
    [
        None,
        [],
        {},
        "x",
        [None],
        [{}],
        [{"content": None}],
        [{"content": {"parts": None}}],
        [{"content": {"parts": [7]}}],
    ],
)
def test_a_reply_without_parts_is_empty_text(candidates):
    assert read_reply(NativeReply(status=200, body=json.dumps({"candidates": candidates}).encode())).text == ""


@pytest.mark.parametrize("text", UNREPAIRED_TEXTS)
def test_the_models_text_is_never_repaired(text):
    assert read_reply(answer({"text": text})).text == text


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"a":1}\n```',
        'Here: {"a":1}',
        '{"a":1} Done.',
        '{"a":1,"a":2}',
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":1',
        "{}{}",
        '{"a":' + "9" * 5000 + "}",
        "[" * 100000,
        '{"a":"\\ud800"}',
        "\ufeff{}",
    ],
)
def test_what_models_write_instead_of_json_is_rejected_as_no_json(text):
    assert judge(read_reply(answer({"text": text})), {}, (), {}).findings[0].code == "LLM_OUTPUT_JSON"


def test_half_an_emoji_stays_storable():
    reply = read_reply(
        NativeReply(status=200, body=rb'{"candidates":[{"content":{"parts":[{"text":"{\"a\":\"\ud83d"}]}}]}')
    )
    assert reply.text == '{"a":"\\ud83d'
    assert reply.to_bytes()


def test_a_login_page_with_status_200_is_no_reply():
    error = error_of(
        read_reply, NativeReply(status=200, body=b"<!DOCTYPE html><h1>Log in", headers={"content-type": "text/html"})
    )
    assert error.code == "LLM_UNAVAILABLE"
    assert "base_url" in str(error)


def test_an_envelope_with_a_key_twice_has_two_meanings():
    body = b'{"candidates":[{"content":{"parts":[{"text":"a","text":"b"}]},"finishReason":"STOP"}]}'
    assert "'text' twice" in str(error_of(read_reply, NativeReply(status=200, body=body)))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_storable_reply_or_our_error(body):
    assert code_of(read_reply, body) in {None, "LLM_UNAVAILABLE"}


KEYS = st.sampled_from(
    ["content", "parts", "text", "thought", "functionCall", "name", "finishReason", "error", "details", "@type", "code"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab\ud800", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_shape_of_reply_is_a_storable_reply_or_our_error(first, second, third):
    for value in (
        {"candidates": first, "usageMetadata": second, "promptFeedback": third},
        {"candidates": [{"content": {"parts": [first]}, "finishReason": second}], "error": third},
        {"error": {"details": [first], "code": second, "status": third, "message": first}},
        [{"error": first}],
    ):
        assert code_of(read_reply, json.dumps(value).encode()) in {None, "LLM_QUOTA", *CODE_OF_STATUS.values()}
