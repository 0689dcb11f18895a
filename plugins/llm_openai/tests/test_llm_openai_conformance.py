"""The provider passes the suite of all providers, with a key and without."""

from pathlib import Path

import pytest
from casebound.testing.conformance.provider import CANARY, Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings

REPLIES = Path(__file__).parent / "replies"


def reply(name, status=200):
    return Response(status=status, body=(REPLIES / f"{name}.json").read_bytes())


class TestOpenAI(ProviderConformance):
    replies = Replies(
        text='{"searches": [{"term": "Ж-1"}] }',
        success=reply("success"),
        without_usage=reply("without_usage"),
        nonsense_usage=reply("nonsense_usage"),
        refusal=reply("refusal"),
        cut_off=reply("cut_off"),
        tool_call=reply("tool_call"),
        no_text=reply("no_text"),
        error_in_success=reply("error_router_in_200"),
        quota=reply("error_openai_quota", status=429),
    )

    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        return OpenAIProvider(OpenAISettings(base_url=f"{loopback.url}/v1", api_key_env="CONFORMANCE_KEY"))


class TestResponses(TestOpenAI):
    replies = Replies(
        text='{"searches": [{"term": "Ж-1"}] }',
        success=reply("responses_success"),
        without_usage=reply("responses_without_usage"),
        nonsense_usage=reply("responses_nonsense_usage"),
        refusal=reply("responses_refusal"),
        cut_off=reply("responses_cut_off"),
        tool_call=reply("responses_tool_call"),
        no_text=reply("responses_no_text"),
        error_in_success=reply("responses_failed_rate"),
        quota=reply("error_openai_quota", status=429),
    )

    @pytest.fixture
    def provider(self, loopback, monkeypatch):
        monkeypatch.setenv("CONFORMANCE_KEY", CANARY)
        settings = OpenAISettings(api="responses", base_url=f"{loopback.url}/v1", api_key_env="CONFORMANCE_KEY")
        return OpenAIProvider(settings)


class TestWithoutKey(TestOpenAI):
    capabilities = Capabilities(key=False)

    @pytest.fixture
    def provider(self, loopback):
        return OpenAIProvider(OpenAISettings(base_url=f"{loopback.url}/v1"))

    def test_no_authorization_header_is_sent(self, provider, loopback):
        loopback.answer(self.replies.success)
        self._send(provider)
        assert "authorization" not in loopback.requests[0].headers
