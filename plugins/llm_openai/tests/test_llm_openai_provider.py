"""What is particular to this provider's way of sending."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest
from casebound.errors import ProviderError
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import FixedClock, model_request
from casebound_llm_openai.provider import OpenAIProvider, _spellings
from casebound_llm_openai.settings import OpenAISettings

SUCCESS = Response(body=(Path(__file__).parent / "replies" / "success.json").read_bytes())


@pytest.fixture
def loopback():
    with Loopback(canary=CANARY) as server:
        server.answer(SUCCESS)
        yield server


def request(**changes):
    facts = {"system": "JSON, please: Ж🜲", "user": "{}", "response_format": "json_object", "response_schema": {}}
    return model_request(provider="openai", **{**facts, **changes})


def send(loopback, clock=None, changes=None, **settings):
    provider = OpenAIProvider(OpenAISettings(base_url=f"{loopback.url}/v1", **settings), clock=clock)

    async def once():
        try:
            return await provider.send(request(**(changes or {})))
        finally:
            await provider.aclose()

    return asyncio.run(once())


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


def test_a_proxy_of_the_environment_is_not_asked(loopback, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert send(loopback).status == 200


def test_credentials_of_a_netrc_file_are_not_sent(loopback, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {CANARY}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    send(loopback)
    assert "authorization" not in loopback.requests[0].headers


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


def test_the_duration_is_the_clocks(loopback):
    clock = FixedClock()

    def slow(_):
        clock.advance(1.2344)
        return SUCCESS

    loopback.answer(slow)
    assert send(loopback, clock).duration_ms == 1234


@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_past_the_limit_is_not_read(loopback, encoded):
    body = b" " * 100_000
    packed = Response(body=gzip.compress(body), headers={"content-encoding": "gzip"})
    loopback.answer(packed if encoded else Response(body=body))
    with pytest.raises(ProviderError, match="more than 2048 bytes") as caught:
        send(loopback, max_body_bytes=2048)
    assert (caught.value.code, caught.value.retryable) == ("LLM_UNAVAILABLE", False)


def test_a_compressed_body_is_read_though_none_was_asked_for(loopback):
    loopback.answer(Response(body=gzip.compress(SUCCESS.body), headers={"content-encoding": "gzip"}))
    assert send(loopback).body == SUCCESS.body
    assert loopback.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(SUCCESS.body, mtime=0)[:-9], "gzip"),
        (gzip.compress(SUCCESS.body, mtime=0) + b"more", "gzip"),
        (b"no gzip", "gzip"),
        (SUCCESS.body, "br"),
    ],
)
def test_a_body_that_cannot_be_decompressed_whole_is_no_reply(loopback, body, encoding):
    loopback.answer(Response(body=body, headers={"content-encoding": encoding}))
    with pytest.raises(ProviderError, match="cannot be decompressed"):
        send(loopback)


def test_a_request_that_cannot_be_sent_is_refused_without_a_call(loopback):
    with pytest.raises(ProviderError, match="no model"):
        send(loopback, changes={"model": None})
    assert loopback.requests == []


def test_a_short_stand_in_key_does_not_damage_replies(loopback, monkeypatch):
    monkeypatch.setenv("KEY", "term")
    assert send(loopback, api_key_env="KEY").body == SUCCESS.body


def test_one_provider_opens_one_connection_for_calls_in_turn(loopback):
    provider = OpenAIProvider(OpenAISettings(base_url=loopback.url))

    async def thrice():
        for attempt in (1, 2, 3):
            await provider.send(request(attempt=attempt))
        await provider.aclose()

    asyncio.run(thrice())
    assert [sent.connection for sent in loopback.requests] == [1, 1, 1]


def test_a_closed_provider_can_be_used_again(loopback):
    provider = OpenAIProvider(OpenAISettings(base_url=loopback.url))

    async def once():
        native = await provider.send(request())
        await provider.aclose()
        return native.status

    assert [asyncio.run(once()), asyncio.run(once())] == [200, 200]


def test_who_refused_the_connection_is_said(loopback):
    loopback.close()
    with pytest.raises(ProviderError, match="Connect"):
        send(loopback)


@pytest.mark.parametrize(
    "echo",
    ['ab"cd/ef+gh==', 'ab\\"cd\\/ef+gh==', "ab\\u0022cd\\u002Fef\\u002bgh\\u003d\\u003D", "ab%22cd%2Fef%2bgh%3D%3D"],
)
def test_a_key_that_a_server_echoes_is_masked_however_it_is_spelt(echo):
    assert _spellings('ab"cd/ef+gh==').sub(b"[key]", f"no such key: {echo}.".encode()) == b"no such key: [key]."
