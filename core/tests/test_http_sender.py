"""One call is one request, read up to a limit, and the key goes nowhere else."""

import asyncio
import gzip
import json
import threading

import pytest
from casebound.errors import ProviderError, SettingsError
from casebound.llm.http.sender import Dialect, HttpSender, _host
from casebound.llm.http.settings import HttpSettings
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import FixedClock

BODY = b'{"term": "no compression helps here"}' * 8
SUCCESS = Response(body=BODY)
DIALECT = Dialect(provider="vendor", key_header="X-Vendor-Key")


@pytest.fixture
def loopback():
    with Loopback(canary=CANARY) as server:
        server.answer(SUCCESS)
        yield server


def sender_for(loopback, clock=None, dialect=DIALECT, **settings):
    return HttpSender(HttpSettings(base_url=f"{loopback.url}/v1", **settings), dialect, clock=clock)


def post(sender, body=None, path="/ask"):
    return sender.post(path, {"text": "Ж🜲"} if body is None else body, timeout_s=20)


def send(loopback, clock=None, body=None, **settings):
    sender = sender_for(loopback, clock, **settings)

    async def once():
        try:
            return await post(sender, body)
        finally:
            await sender.aclose()

    return asyncio.run(once())


def test_what_is_posted_arrives_and_what_came_back_is_returned(loopback, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    loopback.answer(Response(status=418, body=BODY, headers={"x-request-id": "r-1", "server": "s", "x-own-a": "1"}))
    dialect = Dialect(
        provider="vendor",
        key_header="X-Vendor-Key",
        key_prefix="Key ",
        headers={"x-project": "p"},
        query={"version": "1 2"},
        kept_headers=("x-own-*",),
    )
    native = send(loopback, api_key_env="KEY", dialect=dialect)
    (sent,) = loopback.requests
    assert (sent.method, sent.path, sent.query) == ("POST", "/v1/ask", "version=1+2")
    assert json.loads(sent.body) == {"text": "Ж🜲"}
    assert (sent.canary_in, sent.headers["x-project"]) == (("x-vendor-key",), "p")
    assert sent.headers["user-agent"] == "casebound-llm-vendor"
    assert (native.status, native.body) == (418, BODY)
    assert native.headers.keys() == {"content-type", "x-request-id", "x-own-a"}


def test_two_calls_differ_in_path_and_body_alone(loopback, monkeypatch):
    """What they share is made once, and no call leaves anything in it."""
    monkeypatch.setenv("KEY", CANARY)
    dialect = Dialect(provider="vendor", key_header="X-Vendor-Key", headers={"X-Project": "p"}, query={"v": "1"})
    sender = sender_for(loopback, dialect=dialect, api_key_env="KEY")

    async def twice():
        await post(sender, {"text": "Ж" * 99}, "/long")
        await post(sender, {}, "/short")
        await sender.aclose()

    asyncio.run(twice())
    shared = {
        "host": loopback.url.removeprefix("http://"),
        "connection": "keep-alive",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "casebound-llm-vendor",
        "x-project": "p",
    }
    own = [{"content-length": size, "content-type": "application/json", "x-vendor-key": "***"} for size in ("209", "2")]
    assert [list(sent.headers.items()) for sent in loopback.requests] == [list((shared | each).items()) for each in own]
    assert [(sent.path, sent.query) for sent in loopback.requests] == [("/v1/long", "v=1"), ("/v1/short", "v=1")]


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        ("https://HOST.example/v1", "host.example"),
        ("https://host.example.:443", "host.example."),
        ("https://host.example:80", "host.example:80"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("http://[::1]:8080/v1", "[::1]:8080"),
        ("https://[FD00::0:1]", "[FD00::0:1]"),
    ],
)
def test_the_host_is_named_as_the_address_has_it(base_url, host):
    assert _host(HttpSettings(base_url=base_url).base_url) == host


def test_a_text_without_bytes_is_refused_without_a_call(loopback):
    with pytest.raises(ProviderError, match="lone surrogate") as caught:
        send(loopback, body={"text": "\ud83d"})
    assert (caught.value.code, loopback.requests) == ("LLM_REQUEST", [])


def test_a_proxy_of_the_environment_is_not_asked(loopback, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert send(loopback).status == 200


def test_credentials_of_a_netrc_file_are_not_sent(loopback, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {CANARY}\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    send(loopback)
    assert "authorization" not in loopback.requests[0].headers


@pytest.mark.parametrize(
    ("sent", "kept"), [(b"caf\xc3\xa9", "café"), (b"caf\xe9", "café"), (b"1\r\nX-Own-A: 2", "1, 2")]
)
def test_a_head_is_read_in_whatever_encoding(sent, kept):
    head = b"HTTP/1.1 200 " + sent.partition(b"\r")[0] + b"\r\nx-own-a: " + sent + b"\r\ncontent-length: 2\r\n\r\n{}"

    async def connected(reader, writer):
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(head)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def once():
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        address = "http://{}:{}".format(*server.sockets[0].getsockname())
        sender = HttpSender(
            HttpSettings(base_url=address),
            Dialect(provider="vendor", key_header="X-Vendor-Key", kept_headers=("x-own-a",)),
        )
        native = await post(sender, {})
        await sender.aclose()
        server.close()
        return native

    native = asyncio.run(once())
    assert (native.status, native.body, native.headers) == (200, b"{}", {"x-own-a": kept})


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
    loopback.answer(Response(body=gzip.compress(BODY), headers={"content-encoding": "gzip"}))
    assert send(loopback).body == BODY
    assert loopback.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(BODY, mtime=0)[:-9], "gzip"),
        (gzip.compress(BODY, mtime=0) + b"more", "gzip"),
        (b"no gzip", "gzip"),
        (BODY, "br"),
    ],
)
def test_a_body_that_cannot_be_decompressed_whole_is_no_reply(loopback, body, encoding):
    loopback.answer(Response(body=body, headers={"content-encoding": encoding}))
    with pytest.raises(ProviderError, match="cannot be decompressed"):
        send(loopback)


def test_a_short_stand_in_key_does_not_damage_replies(loopback, monkeypatch):
    monkeypatch.setenv("KEY", "term")
    assert send(loopback, api_key_env="KEY").body == BODY


def test_one_sender_opens_one_connection_for_calls_in_turn(loopback):
    sender = sender_for(loopback)

    async def thrice():
        for _ in range(3):
            await post(sender)
        await sender.aclose()

    asyncio.run(thrice())
    assert [sent.connection for sent in loopback.requests] == [1, 1, 1]


def test_a_closed_sender_can_be_used_again(loopback):
    sender = sender_for(loopback)

    async def once():
        native = await post(sender)
        await sender.aclose()
        return native.status

    assert [asyncio.run(once()), asyncio.run(once())] == [200, 200]


def test_who_refused_the_connection_is_said(loopback):
    loopback.close()
    with pytest.raises(ProviderError, match="Connect"):
        send(loopback)


@pytest.mark.parametrize("key", ["", "canary secret", "canary-sécret", "canary\x07secret"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key, monkeypatch):
    monkeypatch.setenv("ODD_KEY", key)
    with pytest.raises(SettingsError) as caught:
        HttpSender(HttpSettings(base_url="https://host", api_key_env="ODD_KEY"), DIALECT)
    assert "canary" not in str(caught.value)
    assert caught.value.pointer == "llm.vendor.api_key_env"


def test_a_file_of_certificates_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "none.pem", tmp_path / "empty.pem"):
        if path.name == "empty.pem":
            path.write_bytes(b"no certificate")
        with pytest.raises(SettingsError, match=r"ca_file"):
            HttpSender(HttpSettings(base_url="https://host", ca_file=str(path)), DIALECT)


def test_a_key_that_stands_in_a_header_is_masked_in_the_error_that_shows_it(loopback, monkeypatch):
    monkeypatch.setenv("KEY", CANARY)
    loopback.answer(Response(headers={"content-encoding": f"br {CANARY}"}))
    with pytest.raises(ProviderError, match=r"br \[key\]"):
        send(loopback, api_key_env="KEY")


def test_no_call_waits_for_the_connection_of_another(loopback):
    """As many calls as settings permit are in flight; one that waited here would lose its own time."""
    many, go = 150, threading.Event()

    def hold(request):
        go.wait(30)
        return SUCCESS

    async def all_at_once():
        sender = sender_for(loopback)
        try:
            calls = [asyncio.ensure_future(post(sender)) for _ in range(many)]
            arrived = await asyncio.to_thread(loopback.wait_for_requests, many)
            go.set()
            await asyncio.gather(*calls)
        finally:
            await sender.aclose()
        return arrived

    loopback.answer(hold)
    assert asyncio.run(all_at_once())
