"""The provider passes the suite of all providers: both schema fields, with a key and without."""

import json
from pathlib import Path

import pytest
from casebound.testing.conformance.provider import CANARY, Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound_llm_gemini.provider import GeminiProvider
from casebound_llm_gemini.settings import GeminiSettings

REPLIES = Path(__file__).parent / "replies"


def reply(name, status=200):
    return Response(status=status, body=(REPLIES / f"{name}.json").read_bytes())


class TestGemini(ProviderConformance):
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
    )

    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        return GeminiProvider(GeminiSettings(base_url=loopback.url, api_key_env="CONFORMANCE_KEY"))


class TestOlderSchemaField(TestGemini):
    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        settings = GeminiSettings(
            base_url=loopback.url, api_key_env="CONFORMANCE_KEY", schema_field="responseSchema", api_version="v1"
        )
        return GeminiProvider(settings)

    def model_request(self, **changes):
        return super().model_request(**{"response_format": "json_schema", **changes})

    def test_the_schema_arrives_in_the_field_that_is_set(self, provider, loopback):
        loopback.answer(self.replies.success)
        self._send(provider)
        (sent,) = loopback.requests
        assert sent.path == "/v1/models/model-1:generateContent"
        assert json.loads(sent.body)["generationConfig"]["responseSchema"]["type"] == "OBJECT"


class TestWithoutKey(TestGemini):
    capabilities = Capabilities(key=False)

    @pytest.fixture
    def provider(self, loopback):
        return GeminiProvider(GeminiSettings(base_url=loopback.url))

    def test_no_key_header_is_sent(self, provider, loopback):
        loopback.answer(self.replies.success)
        self._send(provider)
        assert "x-goog-api-key" not in loopback.requests[0].headers
