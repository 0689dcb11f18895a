"""What is particular to this provider's way of sending."""

import json
from pathlib import Path

import pytest
from casebound.errors import ProviderError
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Response
from casebound.testing.scripted import model_request
from casebound.testing.wire import answering, send_once
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings


@pytest.fixture
def loopback():
    with answering(Path(__file__).parent / "replies" / "success.json") as server:
        yield server


def request(**changes):
    facts = {"system": "JSON, please: Ж🜲", "user": "{}", "response_format": "json_object", "response_schema": {}}
    return model_request(provider="openai", **{**facts, **changes})


def send(loopback, changes=None, **settings):
    provider = OpenAIProvider(OpenAISettings(base_url=f"{loopback.url}/v1", **settings))
    return send_once(provider, request(**(changes or {})))


@pytest.mark.spec("A-018")
def test_the_request_line_and_headers_are_what_servers_expect(loopback, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    send(loopback, api_key_env="KEY", organization="org-1", project="proj_1")
    (sent,) = loopback.requests
    assert (sent.method, sent.path, sent.query) == ("POST", "/v1/chat/completions", "")
    assert sent.canary_in == ("authorization",)
    expected = {
        "content-type": "application/json",
        "accept": "application/json",
        "openai-organization": "org-1",
        "openai-project": "proj_1",
        "user-agent": "casebound-llm-openai",
    }
    assert expected.items() <= sent.headers.items()
    assert json.loads(sent.body)["messages"][0]["content"] == "JSON, please: Ж🜲"


def test_a_deployment_with_its_own_header_path_and_query_is_reached(loopback, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    send(
        loopback,
        api_key_env="KEY",
        api_key_header="api-key",
        api_key_prefix="",
        path="/deployments/M/chat/completions",
        query={"api-version": "2026-01-01"},
    )
    (sent,) = loopback.requests
    assert (sent.path, sent.query) == ("/v1/deployments/M/chat/completions", "api-version=2026-01-01")
    assert sent.canary_in == ("api-key",)
    assert "authorization" not in sent.headers


def test_only_headers_that_say_something_are_kept(loopback):
    told = {
        "x-request-id": "req_1",
        "retry-after-ms": "5",
        "x-ratelimit-reset-tokens": "1s",
        "openai-processing-ms": "7",
        "x-should-retry": "false",
        "date": "Sun, 01 Nov 2026 08:00:00 GMT",
    }
    loopback.answer(Response(headers={**told, "server": "s", "set-cookie": "a=b", "openai-organization": "org"}))
    assert send(loopback).headers == {**told, "content-type": "application/json"}


def test_a_request_that_cannot_be_sent_is_refused_without_a_call(loopback):
    with pytest.raises(ProviderError, match="no model"):
        send(loopback, changes={"model": None})
    assert loopback.requests == []


def test_a_response_is_asked_for_where_the_settings_say_so(loopback):
    send(loopback, api="responses")
    (sent,) = loopback.requests
    assert sent.path == "/v1/responses"
    assert json.loads(sent.body)["store"] is False
