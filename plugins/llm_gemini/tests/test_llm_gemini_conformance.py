"""The provider passes the suite of all providers: both schema fields, with a key and without."""

import json
from pathlib import Path

import pytest
from casebound.contracts.model_call import Usage
from casebound.testing.conformance.provider import CANARY, Asked, Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound_llm_gemini.provider import GeminiProvider
from casebound_llm_gemini.settings import GeminiSettings

REPLIES = Path(__file__).parent / "replies"
PATH = "/v1beta/models/", ":generateContent"


def reply(name, status=200):
    return Response(status=status, body=(REPLIES / f"{name}.json").read_bytes())


def built(*candidates, **fields):
    return Response(body=json.dumps({"candidates": list(candidates), **fields}).encode())


def ended(word):
    return built({"content": {"parts": [{"text": "{}"}]}, "finishReason": word})


class TestGemini(ProviderConformance):
    field = "responseJsonSchema"
    replies = Replies(
        text='{"searches": [{"term": "Ж-1"}] }',
        success=reply("success"),
        without_usage=reply("without_usage"),
        nonsense_usage=reply("nonsense_usage"),
        refusal=reply("safety"),
        cut_off=reply("cut_off"),
        tool_call=reply("tool_call"),
        no_text=reply("no_text"),
        error_in_success=reply("error_minute_in_list"),
        quota=reply("error_day", status=429),
        usage=Usage(input_tokens=812, output_tokens=97, cached_input_tokens=768, reasoning_tokens=64),
        request_id="resp-1",
        served_model="model-1-001",
        endings={
            "stop": (ended("STOP"), "stop"),
            "cut off": (ended("MAX_TOKENS"), "length"),
            "safety": (ended("SAFETY"), "refusal"),
            "copied": (reply("recitation"), "refusal"),
            "a blocked prompt": (reply("prompt_blocked"), "refusal"),
            "all spent on thinking": (reply("thinking_spent"), "length"),
            "cut off without content": (reply("without_content"), "length"),
            "a broken call": (ended("MALFORMED_FUNCTION_CALL"), "tool_calls"),
            "another reason": (ended("OTHER"), "length"),
            "an unknown word": (ended("BECAUSE"), "length"),
            "no word": (ended(None), "length"),
        },
        empties={
            "no candidates": reply("no_candidates"),
            "null": Response(body=b'{"candidates":null}'),
            "an empty list": built(),
            "no list": Response(body=b'{"candidates":{"0":{}}}'),
            "a candidate that is null": built(None),
            "no content": built({"finishReason": "STOP"}),
            "no parts": built({"content": {"role": "model"}, "finishReason": "STOP"}),
            "an empty list of parts": built({"content": {"parts": []}, "finishReason": "STOP"}),
            "nothing but thoughts": built({"content": {"parts": [{"text": "I think.", "thought": True}]}}),
        },
        errors={
            "a wrong key": (reply("error_key", 400), "LLM_AUTH"),
            "a key that was leaked": (reply("error_leaked_key", 403), "LLM_AUTH"),
            "a schema that is too large": (reply("error_schema", 400), "LLM_REQUEST"),
            "a field that is not known": (reply("error_field", 400), "LLM_REQUEST"),
            "a region that is not served": (reply("error_region", 400), "LLM_REQUEST"),
            "a model that is not there": (reply("error_model", 404), "LLM_REQUEST"),
            "a limit of the minute": (reply("error_minute", 429), "LLM_RATE_LIMITED"),
            "a limit, told with HTTP 200": (reply("error_minute_in_list"), "LLM_RATE_LIMITED"),
            "no quota at all": (reply("error_no_quota", 429), "LLM_QUOTA"),
            "overloaded": (reply("error_overloaded", 503), "LLM_UNAVAILABLE"),
            "a deadline of its own": (reply("error_deadline", 504), "LLM_TIMEOUT"),
        },
        unsendable_schema={"type": "object", "properties": {"a": {"type": "string", "not": {"const": "x"}}}},
    )

    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        self.server = loopback
        settings = GeminiSettings(base_url=loopback.url, api_key_env="CONFORMANCE_KEY", schema_field=self.field)
        return GeminiProvider(settings)

    def asked(self, body):
        rest = dict(body)
        (system,), (user,) = rest.pop("systemInstruction")["parts"], rest.pop("contents")
        (text,) = user["parts"]
        assert (user.keys(), user["role"], system.keys(), text.keys()) == (
            {"parts", "role"},
            "user",
            {"text"},
            {"text"},
        )
        config = rest.pop("generationConfig")
        most, schema = config.pop("maxOutputTokens"), config.pop(self.field, None)
        is_json = config.pop("responseMimeType", "text/plain") == "application/json"
        path = self.server.requests[-1].path
        assert (path.startswith(PATH[0]), path.endswith(PATH[1])) == (True, True)
        return Asked(
            model=path.removeprefix(PATH[0]).removesuffix(PATH[1]),
            system=system["text"],
            user=text["text"],
            max_output_tokens=most,
            response_format="text" if not is_json else "json_object" if schema is None else "json_schema",
            schema=schema,
            rest={**rest, **config},
        )


class TestOlderSchemaField(TestGemini):
    field = "responseSchema"


class TestWithoutKey(TestGemini):
    capabilities = Capabilities(key=False)

    @pytest.fixture
    def provider(self, loopback):
        self.server = loopback
        return GeminiProvider(GeminiSettings(base_url=loopback.url))

    def test_no_key_header_is_sent(self, provider, loopback):
        loopback.answer(self.replies.success)
        self._send(provider)
        assert "x-goog-api-key" not in loopback.requests[0].headers
