"""The provider passes the suite of all providers: both ways of asking, with a key and without."""

import json
from pathlib import Path
from typing import ClassVar

import pytest
from casebound.contracts.model_call import Usage
from casebound.testing.conformance.provider import CANARY, Asked, Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings

REPLIES = Path(__file__).parent / "replies"
TEXT = '{"searches": [{"term": "Ж-1"}] }'
USAGE = Usage(input_tokens=812, output_tokens=97, cached_input_tokens=768, reasoning_tokens=64)
UNSENDABLE = {"type": "object", "properties": {"a": {"type": "string", "not": {"const": "x"}}}, "required": ["a"]}


def reply(name, status=200):
    body = (REPLIES / f"{name}.json").read_bytes()
    return Response(status=status, body=body, headers={"x-request-id": "req_7"})


def built(**fields):
    return Response(body=json.dumps(fields).encode())


def ended(word):
    return built(choices=[{"finish_reason": word, "message": {"content": "{}"}}])


ERRORS = {
    "a schema that is refused": (reply("error_openai_schema", 400), "LLM_REQUEST"),
    "a context that is too long": (reply("error_openai_context", 400), "LLM_REQUEST"),
    "a context that is too long, llama.cpp": (reply("error_llamacpp_context", 400), "LLM_REQUEST"),
    "a wrong key": (reply("error_llamacpp_key", 401), "LLM_AUTH"),
    "a wrong key, LiteLLM": (reply("error_litellm_key", 400), "LLM_AUTH"),
    "a body that is not understood": (reply("error_fastapi", 422), "LLM_REQUEST"),
    "a model that is not there": (reply("error_ollama", 404), "LLM_REQUEST"),
    "a limit, told with HTTP 200": (reply("error_router_in_200"), "LLM_RATE_LIMITED"),
}


class TestOpenAI(ProviderConformance):
    api = "chat"
    replies = Replies(
        text=TEXT,
        success=reply("success"),
        without_usage=reply("without_usage"),
        nonsense_usage=reply("nonsense_usage"),
        refusal=reply("refusal"),
        cut_off=reply("cut_off"),
        tool_call=reply("tool_call"),
        no_text=reply("no_text"),
        error_in_success=reply("error_router_in_200"),
        quota=reply("error_openai_quota", status=429),
        usage=USAGE,
        request_id="req_7",
        served_model="model-1-2026-08-07",
        endings={
            "stop": (ended("stop"), "stop"),
            "eos": (ended("eos"), "stop"),
            "end_turn": (ended("end_turn"), "stop"),
            "length": (ended("length"), "length"),
            "MAX_TOKENS": (ended("MAX_TOKENS"), "length"),
            "content_filter": (ended("content_filter"), "refusal"),
            "tool_calls": (ended("tool_calls"), "tool_calls"),
            "function_call": (ended("function_call"), "tool_calls"),
            "an unknown word": (ended("because"), "other"),
            "no word": (ended(None), "other"),
            "a refusal in a part": (reply("refusal_part"), "refusal"),
            "all spent on reasoning": (reply("reasoning_spent"), "length"),
            "a filtered prompt": (reply("error_azure_filter", 400), "refusal"),
        },
        empties={
            "no choices": built(object="chat.completion"),
            "null": built(choices=None),
            "an empty list": built(choices=[]),
            "no list": built(choices={"0": {}}),
            "a choice that is null": built(choices=[None]),
            "no message": built(choices=[{"finish_reason": "stop"}]),
            "no content": built(choices=[{"finish_reason": "stop", "message": {"role": "assistant"}}]),
            "content null": built(choices=[{"finish_reason": "stop", "message": {"content": None}}]),
            "content an empty list": built(choices=[{"finish_reason": "stop", "message": {"content": []}}]),
        },
        errors={**ERRORS, "an error in a choice": (reply("error_in_choice"), "LLM_UNAVAILABLE")},
        unsendable_schema=UNSENDABLE,
    )

    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        settings = OpenAISettings(api=self.api, base_url=f"{loopback.url}/v1", api_key_env="CONFORMANCE_KEY")
        return OpenAIProvider(settings)

    def asked(self, body):
        rest = dict(body)
        system, user = rest.pop("messages")
        form = rest.pop("response_format", {"type": "text"})
        assert (system.keys(), system["role"], user["role"]) == ({"role", "content"}, "system", "user")
        assert form.keys() <= {"type", "json_schema"}
        named = form.get("json_schema")
        assert named is None or (named["name"], named["strict"]) == ("plan", True)
        return Asked(
            model=rest.pop("model"),
            system=system["content"],
            user=user["content"],
            max_output_tokens=rest.pop("max_completion_tokens"),
            response_format=form["type"],
            schema=named and named["schema"],
            rest=rest,
        )


class TestResponses(TestOpenAI):
    api = "responses"
    always: ClassVar = {"store": False}
    replies = Replies(
        text=TEXT,
        success=reply("responses_success"),
        without_usage=reply("responses_without_usage"),
        nonsense_usage=reply("responses_nonsense_usage"),
        refusal=reply("responses_refusal"),
        cut_off=reply("responses_cut_off"),
        tool_call=reply("responses_tool_call"),
        no_text=reply("responses_no_text"),
        error_in_success=reply("responses_failed_rate"),
        quota=reply("error_openai_quota", status=429),
        usage=USAGE,
        request_id="req_7",
        served_model="model-1-2026-08-07",
        endings={
            "completed": (built(status="completed", output=[]), "stop"),
            "a filtered reply": (reply("responses_content_filter"), "refusal"),
            "a filtered prompt": (reply("responses_failed_prompt"), "refusal"),
            "a filtered prompt, Azure": (reply("error_azure_filter", 400), "refusal"),
            "an unknown reason": (built(status="incomplete", incomplete_details={"reason": "because"}), "other"),
            "no reason": (built(status="incomplete"), "other"),
            "still at it": (built(status="in_progress"), "length"),
            "not begun": (built(status="queued"), "length"),
            "given up": (built(status="cancelled"), "length"),
            "no status": (built(output=[]), "other"),
        },
        empties={
            "no output": built(status="completed"),
            "null": built(status="completed", output=None),
            "an empty list": built(status="completed", output=[]),
            "no list": built(status="completed", output={"0": {}}),
            "an item that is null": built(status="completed", output=[None]),
            "no content": built(status="completed", output=[{"type": "message"}]),
            "content null": built(status="completed", output=[{"type": "message", "content": None}]),
        },
        errors={
            **ERRORS,
            "a failed response": (reply("responses_failed_server"), "LLM_UNAVAILABLE"),
            "a limit as a failed response": (reply("responses_failed_rate"), "LLM_RATE_LIMITED"),
        },
        unsendable_schema=UNSENDABLE,
    )

    def asked(self, body):
        rest = dict(body)
        system, user = rest.pop("input")
        form = rest.pop("text", {"format": {"type": "text"}})["format"]
        assert (system.keys(), system["role"], user["role"]) == ({"role", "content"}, "system", "user")
        assert form["type"] != "json_schema" or (form["name"], form["strict"], len(form)) == ("plan", True, 4)
        return Asked(
            model=rest.pop("model"),
            system=system["content"],
            user=user["content"],
            max_output_tokens=rest.pop("max_output_tokens"),
            response_format=form["type"],
            schema=form.get("schema"),
            rest=rest,
        )


class TestWithoutKey(TestOpenAI):
    capabilities = Capabilities(key=False)

    @pytest.fixture
    def provider(self, loopback):
        return OpenAIProvider(OpenAISettings(base_url=f"{loopback.url}/v1"))

    def test_no_authorization_header_is_sent(self, provider, loopback):
        loopback.answer(self.replies.success)
        self._send(provider)
        assert "authorization" not in loopback.requests[0].headers
