"""The fake passes the suite of real providers; what is not HTTP skips visibly."""

import pytest
from casebound.contracts.model_call import Usage
from casebound.testing.conformance.provider import Capabilities, ProviderConformance, Replies
from casebound.testing.loopback import Response
from casebound.testing.scripted import ScriptedProvider, native_error, native_reply

TEXT = '{"searches": [] }'


def reply(text=TEXT, **facts):
    return Response(body=native_reply(text, **facts).body)


class TestScripted(ProviderConformance):
    capabilities = Capabilities(http=False, key=False)
    replies = Replies(
        text=TEXT,
        success=reply(usage=Usage(input_tokens=3, output_tokens=1)),
        without_usage=reply(),
        refusal=reply("", finish_reason="refusal"),
        cut_off=reply("{", finish_reason="length"),
        tool_call=reply("", finish_reason="tool_calls", tools=["shell"]),
        no_text=reply(""),
        error_in_success=Response(body=native_error("LLM_UNAVAILABLE", retryable=True).body),
        quota=Response(body=native_error("LLM_QUOTA").body),
    )

    @pytest.fixture
    def provider(self):
        return ScriptedProvider({"plan": [TEXT]})
