"""What is particular to this provider's way of sending."""

import json
from pathlib import Path

import pytest
from casebound.errors import ProviderError
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Response
from casebound.testing.scripted import model_request
from casebound.testing.wire import answering, send_once
from casebound_llm_gemini.provider import GeminiProvider
from casebound_llm_gemini.settings import GeminiSettings


@pytest.fixture
def loopback():
    with answering(Path(__file__).parent / "replies" / "success.json") as server:
        yield server


def send(loopback, changes=None, **settings):
    provider = GeminiProvider(GeminiSettings(base_url=f"{loopback.url}/gateway", **settings))
    facts = {"system": "Answer: Ж🜲", "response_format": "json_object", "response_schema": {}, **(changes or {})}
    return send_once(provider, model_request(provider="gemini", **facts))


def test_the_request_line_and_headers_are_what_the_server_expects(loopback, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    send(loopback, api_key_env="KEY")
    (sent,) = loopback.requests
    assert (sent.method, sent.path, sent.query) == ("POST", "/gateway/v1beta/models/model-1:generateContent", "")
    assert sent.canary_in == ("x-goog-api-key",)
    assert "authorization" not in sent.headers
    assert sent.headers["content-type"] == "application/json"
    assert json.loads(sent.body)["systemInstruction"]["parts"] == [{"text": "Answer: Ж🜲"}]


def test_only_headers_that_say_something_are_kept(loopback):
    told = {"server-timing": "gfet4t7; dur=812", "date": "Sun, 01 Nov 2026 08:00:00 GMT", "retry-after": "7"}
    loopback.answer(Response(headers={**told, "server": "scaffolding on HTTPServer2", "x-frame-options": "SAMEORIGIN"}))
    assert send(loopback).headers == {**told, "content-type": "application/json"}


@pytest.mark.parametrize(
    "changes",
    [{"model": None}, {"model": "a?key=b"}, {"response_format": "json_schema", "response_schema": {"not": {}}}],
)
def test_a_request_that_cannot_be_sent_is_refused_without_a_call(loopback, changes):
    with pytest.raises(ProviderError) as caught:
        send(loopback, changes)
    assert caught.value.code == "LLM_REQUEST"
    assert loopback.requests == []
