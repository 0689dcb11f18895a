"""The suite that every model provider passes, ours and yours.

Subclass `ProviderConformance`, name the class `Test…`, supply the fixture `provider` and the value `replies`:

    class TestEcho(ProviderConformance):
        capabilities = Capabilities(http=False, usage=False)
        replies = Replies(text="{}", success=Response(body=b'{"text":"{}"}'))

        @pytest.fixture
        def provider(self):
            return EchoProvider(EchoSettings())

What a provider cannot do is declared in `capabilities` and skips visibly; so does a reply that it cannot get.
"""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import ClassVar, TypeVar

import pytest

from casebound.contracts.model_call import ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.provider_replies import (
    CODE_OF_STATUS,
    DAMAGED_BODIES,
    RETRY_AFTER_FORMS,
    TRANSIENT,
    Capabilities,
    Replies,
)
from casebound.testing.conformance.secret import CANARY, assert_no_canary, texts_of
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response
from casebound.testing.scripted import model_request

__all__ = ["CANARY", "Capabilities", "ProviderConformance", "Replies"]

T = TypeVar("T")


class ProviderConformance:
    """What is promised in `casebound.llm.provider.Provider`, test by test."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    replies: ClassVar[Replies]

    # --- what the author supplies -----------------------------------------------------------------------------------

    @pytest.fixture
    def loopback(self) -> Iterator[Loopback]:
        """A misbehaving server of this test's own; the provider's fixture takes its `url`."""
        with Loopback(canary=CANARY) as server:
            yield server

    @pytest.fixture
    def provider(self, loopback: Loopback) -> Provider:
        """Supply: a provider bound to `loopback.url`, with the key `CANARY`."""
        raise NotImplementedError("override the fixture `provider`")

    def model_request(self, **changes: object) -> ModelRequest:
        """Return the request that the suite sends; override it where your provider needs another one."""
        facts: dict[str, object] = {
            "user": '{"sources":[{"id":"S0001","kind":"title","text":"Ж: node-1 is down 🜲"}],"task":"plan"}',
            "response_format": "json_object",
            "response_schema": {
                "type": "object",
                "properties": {"searches": {"type": "array", "items": {"type": "string"}}},
                "required": ["searches"],
                "additionalProperties": False,
            },
        }
        return model_request(**facts | changes)

    # --- reading ----------------------------------------------------------------------------------------------------

    def test_a_provider_has_the_three_methods(self, provider: Provider) -> None:
        """The engine calls nothing else. Repair: define `send`, `read` and `aclose`."""
        assert isinstance(provider, Provider)

    def test_success_is_read_exactly(self, provider: Provider) -> None:
        """The text is the model's, unchanged. Repair: do not strip, parse or repair it in `read`."""
        reply = provider.read(_native(self.replies.success))
        assert reply.text == self.replies.text
        assert reply.finish_reason == "stop"
        assert reply.tools == ()

    def test_reading_is_pure_and_repeatable(self, provider: Provider) -> None:
        """`verify` reads stored bytes again. Repair: keep no state, read no clock in `read`."""
        native = _native(self.replies.success)
        before = (native.status, native.body, dict(native.headers), native.duration_ms)
        assert provider.read(native) == provider.read(native)
        assert before == (native.status, native.body, native.headers, native.duration_ms)

    def test_reported_usage_is_kept(self, provider: Provider) -> None:
        """Costs are counted from it. Repair: map the server's counts to `Usage`."""
        if not self.capabilities.usage:
            pytest.skip("capability: this provider's server reports no usage")
        usage = provider.read(_native(self.replies.success)).usage
        assert usage.input_tokens is not None
        assert usage.output_tokens is not None

    def test_unknown_usage_is_absent(self, provider: Provider) -> None:
        """Zero would be a lie that budgets believe. Repair: leave the fields of `Usage` None."""
        reply = provider.read(_native(_given(self.replies.without_usage, "a reply without usage")))
        assert reply.usage == Usage()
        assert reply.text == self.replies.text

    def test_nonsense_usage_is_absent(self, provider: Provider) -> None:
        """A count is a whole number from zero. Repair: check each count before it goes into `Usage`."""
        reply = provider.read(_native(_given(self.replies.nonsense_usage, "a reply with nonsense usage")))
        assert reply.usage == Usage()
        assert reply.text == self.replies.text

    def test_a_refusal_is_a_reply(self, provider: Provider) -> None:
        """It feeds the correction loop, it is no outage. Repair: finish reason `refusal`."""
        assert provider.read(_native(_given(self.replies.refusal, "a refusal"))).finish_reason == "refusal"

    def test_a_cut_reply_says_so(self, provider: Provider) -> None:
        """Cut text may parse by luck. Repair: finish reason `length`."""
        assert provider.read(_native(_given(self.replies.cut_off, "a cut reply"))).finish_reason == "length"

    def test_a_tool_call_is_named(self, provider: Provider) -> None:
        """A reply that uses tools is refused. Repair: fill `tools`."""
        assert provider.read(_native(_given(self.replies.tool_call, "a tool call"))).tools

    def test_no_text_is_empty_text(self, provider: Provider) -> None:
        """Nothing is invented. Repair: text `""`."""
        assert provider.read(_native(_given(self.replies.no_text, "a reply without text"))).text == ""

    def test_an_error_inside_success_is_an_error(self, provider: Provider) -> None:
        """Routers send errors with HTTP 200. Repair: look for the error before the text."""
        with pytest.raises(ProviderError):
            provider.read(_native(_given(self.replies.error_in_success, "an error inside HTTP 200")))

    def test_an_empty_account_is_not_worth_waiting(self, provider: Provider) -> None:
        """It often has the status of a rate limit. Repair: `LLM_QUOTA`, not retryable."""
        with pytest.raises(ProviderError) as caught:
            provider.read(_native(_given(self.replies.quota, "an empty account")))
        assert (caught.value.code, caught.value.retryable) == ("LLM_QUOTA", False)

    @pytest.mark.parametrize("damage", DAMAGED_BODIES)
    def test_damaged_bytes_are_an_error_or_an_empty_reply(self, provider: Provider, damage: str) -> None:
        """No library's exception leaves, no text is invented. Repair: catch ValueError and RecursionError in `read`."""
        native = NativeReply(status=200, body=DAMAGED_BODIES[damage](self.replies.success.body))
        try:
            outcome = provider.read(native).text
        except ProviderError as error:
            outcome = error.code
        assert outcome in {"", "LLM_UNAVAILABLE"}

    # --- reading what a server says over HTTP -----------------------------------------------------------------------

    @pytest.mark.parametrize("status", CODE_OF_STATUS)
    def test_each_status_has_its_code(self, provider: Provider, status: int) -> None:
        """The code decides what becomes of the case. Repair: map the HTTP status as `CODE_OF_STATUS` does."""
        self._need_http()
        with pytest.raises(ProviderError) as caught:
            provider.read(NativeReply(status=status, body=self.replies.error_body))
        code = CODE_OF_STATUS[status]
        assert (caught.value.code, caught.value.retryable) == (code, code in TRANSIENT)

    @pytest.mark.parametrize(
        "body", [b"", b"<html>Bad Gateway</html>", b'{"error":"text"}', b'{"detail":[]}', b"[]", b"\xff"]
    )
    @pytest.mark.parametrize("status", [401, 502])
    def test_any_error_body_is_understood(self, provider: Provider, status: int, body: bytes) -> None:
        """Proxies answer in the server's place. Repair: let the status decide, whatever the body is."""
        self._need_http()
        with pytest.raises(ProviderError) as caught:
            provider.read(NativeReply(status=status, body=body))
        assert caught.value.code == CODE_OF_STATUS[status]

    @pytest.mark.parametrize("form", RETRY_AFTER_FORMS)
    def test_retry_after_is_read_in_all_its_forms(self, provider: Provider, loopback: Loopback, form: str) -> None:
        """The server's wish becomes the retry time; an unusable wish is none. Repair: keep the header in `send`."""
        self._need_http()
        headers, expected = RETRY_AFTER_FORMS[form]
        loopback.answer(Response(status=429, body=self.replies.error_body, headers=headers))
        with pytest.raises(ProviderError) as caught:
            provider.read(self._send(provider))
        assert (caught.value.code, caught.value.retry_after) == ("LLM_RATE_LIMITED", expected)

    # --- sending ----------------------------------------------------------------------------------------------------

    def test_what_is_sent_can_be_read(self, provider: Provider, loopback: Loopback) -> None:
        """The way of every call. Repair: `send` returns what `read` takes."""
        loopback.answer(self.replies.success)
        assert provider.read(self._send(provider)).text == self.replies.text

    def test_native_bytes_are_kept(self, provider: Provider, loopback: Loopback) -> None:
        """They are the evidence. Repair: return the body as it came, errors and odd bytes too."""
        self._need_http()
        body = b' \xef\xbb\xbf{"b":1, "a":\t2,"a":3}\r\n\xff'
        for status in (200, 400, 500):
            loopback.answer(Response(status=status, body=body))
            native = self._send(provider)
            assert (native.status, native.body) == (status, body)

    @pytest.mark.parametrize("status", [200, 301, 307, 308, 401, 408, 429, 500, 503])
    def test_one_send_is_one_request(self, provider: Provider, loopback: Loopback, status: int) -> None:
        """Retry layers multiply. Repair: switch off retries and redirects of the client library."""
        self._need_http()
        headers = {"location": f"{loopback.url}/elsewhere", "retry-after": "0"}
        loopback.answer(Response(status=status, body=self.replies.error_body, headers=headers))
        assert self._send(provider).status == status
        assert len(loopback.requests) == 1

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    def test_a_redirect_is_a_refused_request(self, provider: Provider, status: int) -> None:
        """Following it would carry key and report elsewhere. Repair: `LLM_REQUEST`, not retryable."""
        self._need_http()
        with pytest.raises(ProviderError) as caught:
            provider.read(NativeReply(status=status, body=b""))
        assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)

    @pytest.mark.parametrize("fault", [Fault.CLOSE, Fault.CUT, Fault.CUT_CHUNKED, Fault.RESET])
    def test_a_broken_connection_is_unavailable(self, provider: Provider, loopback: Loopback, fault: Fault) -> None:
        """Half a body is no reply. Repair: turn the library's connection errors into `LLM_UNAVAILABLE`."""
        self._need_http()
        loopback.answer(Response(body=self.replies.success.body, fault=fault))
        error = self._failure(provider)
        assert (error.code, error.retryable) == ("LLM_UNAVAILABLE", True)
        assert len(loopback.requests) == 1

    def test_a_connection_that_is_gone_is_not_tried_again(self, provider: Provider, loopback: Loopback) -> None:
        """Libraries repeat a request on a kept connection that was closed. Repair: switch that off."""
        self._need_http()
        loopback.answer(self.replies.success, Response(fault=Fault.CLOSE))

        async def twice() -> None:
            await provider.send(self.model_request())
            await provider.send(self.model_request(attempt=2))

        assert self._failure(provider, twice).code == "LLM_UNAVAILABLE"
        assert len(loopback.requests) == 2

    def test_left_over_bytes_are_nobodys_reply(self, provider: Provider, loopback: Loopback) -> None:
        """A wrong content-length leaves bytes behind. Repair: drop a connection that has a rest."""
        self._need_http()
        smuggled = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled"
        loopback.answer(
            Response(body=b"own" + smuggled, headers={"content-length": "3"}),
            Response(body=b"second"),
        )

        async def twice() -> list[bytes]:
            first = await provider.send(self.model_request())
            second = await provider.send(self.model_request(attempt=2))
            return [first.body, second.body]

        assert self._run(provider, twice) == [b"own", b"second"]

    def test_nobody_listening_is_unavailable(self, provider: Provider, loopback: Loopback) -> None:
        """The server is not started yet. Repair: turn a refused connection into `LLM_UNAVAILABLE`."""
        self._need_http()
        loopback.close()
        assert self._failure(provider).code == "LLM_UNAVAILABLE"

    def test_broken_compression_is_unavailable(self, provider: Provider, loopback: Loopback) -> None:
        """A proxy broke the bytes. Repair: catch the library's decoding error."""
        self._need_http()
        body = gzip.compress(self.replies.success.body)[:-12] + b"broken bytes"
        loopback.answer(Response(body=body, headers={"content-encoding": "gzip"}))
        assert self._failure(provider).code == "LLM_UNAVAILABLE"

    @pytest.mark.faults
    @pytest.mark.parametrize("fault", [Fault.HANG, Fault.DRIP, Fault.STALL])
    def test_the_deadline_holds_for_the_whole_call(self, provider: Provider, loopback: Loopback, fault: Fault) -> None:
        """A byte now and then resets a read timeout for ever. Repair: one deadline of `timeout_s` around everything."""
        self._need_http()
        loopback.answer(Response(body=self.replies.success.body, fault=fault))
        error = self._failure(provider, lambda: provider.send(self.model_request(timeout_s=1)))
        assert (error.code, error.retryable) == ("LLM_TIMEOUT", True)
        assert len(loopback.requests) == 1
        assert loopback.wait_for_departure(), "the connection stays open after the deadline"

    def test_cancelling_leaves_the_connection(self, provider: Provider, loopback: Loopback) -> None:
        """Ctrl-C ends a run at once. Repair: let `CancelledError` pass, and close what is open."""
        self._need_http()
        loopback.answer(Response(fault=Fault.HANG))

        async def cancel() -> None:
            call = asyncio.create_task(provider.send(self.model_request()))
            assert await asyncio.to_thread(loopback.wait_for_requests, 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(loopback.wait_for_departure)

        self._run(provider, cancel)

    def test_sixteen_calls_at_once_do_not_mix(self, provider: Provider, loopback: Loopback) -> None:
        """Cases run side by side. Repair: keep no state of a call in the provider."""
        self._need_http()
        everyone = _everyone(16)

        def own_body(request: RecordedRequest) -> Response:
            everyone()  # each waits for all: only calls that are really in flight together get past here
            marker = next(f"[{n}]".encode() for n in range(16) if f"[{n}]".encode() in request.body)
            return Response(body=marker)

        loopback.answer(own_body)

        async def all_at_once() -> list[NativeReply]:
            calls = [provider.send(self.model_request(system=f"Answer with JSON [{n}]")) for n in range(16)]
            return await asyncio.gather(*calls)

        natives = self._run(provider, all_at_once)
        assert [native.body for native in natives] == [f"[{n}]".encode() for n in range(16)]

    # --- secrets ----------------------------------------------------------------------------------------------------

    def test_the_key_is_sent_in_a_header_only(self, provider: Provider, loopback: Loopback) -> None:
        """URLs are logged everywhere. Repair: send the key in one header."""
        self._need_key()
        loopback.answer(self.replies.success)
        self._send(provider)
        places = loopback.requests[0].canary_in
        assert len(places) == 1
        assert places[0] not in {"path", "body"}

    def test_the_key_never_comes_back(self, provider: Provider, loopback: Loopback) -> None:
        """What `send` returns is written to disk. Repair: keep allowed headers only, and mask the key in the bytes."""
        self._need_key()
        echo = self.replies.error_body.replace(b"no", f"the key {CANARY} is wrong".encode())
        headers = {
            "x-request-id": f"r-{CANARY}",
            "authorization": CANARY,
            "set-cookie": f"k={CANARY}",
            "x-echo": CANARY,
        }
        loopback.answer(Response(status=401, body=echo, headers=headers))
        native = self._send(provider)
        assert_no_canary(repr(native), native.body.decode("utf-8", "replace"))
        assert not native.headers.keys() & {"authorization", "set-cookie", "cookie"}
        with pytest.raises(ProviderError) as caught:
            provider.read(native)
        assert_no_canary(*texts_of(caught.value))

    @pytest.mark.parametrize(
        "fault", [Fault.CLOSE, Fault.CUT, Fault.RESET, pytest.param(Fault.HANG, marks=pytest.mark.faults)]
    )
    def test_the_key_is_in_no_exception(self, provider: Provider, loopback: Loopback, fault: Fault) -> None:
        """Libraries keep the request in their exceptions. Repair: raise your own error without them as context."""
        self._need_key()
        loopback.answer(Response(body=self.replies.success.body, fault=fault))
        error = self._failure(provider, lambda: provider.send(self.model_request(timeout_s=1)))
        assert_no_canary(*texts_of(error), repr(provider), repr(vars(provider)))

    def test_cookies_are_not_carried_on(self, provider: Provider, loopback: Loopback) -> None:
        """A cookie would tie cases together. Repair: switch off the client's cookie jar."""
        self._need_http()
        loopback.answer(Response(body=self.replies.success.body, headers={"set-cookie": "who=you; Path=/"}))

        async def twice() -> None:
            await provider.send(self.model_request())
            await provider.send(self.model_request(attempt=2))

        self._run(provider, twice)
        assert "cookie" not in loopback.requests[1].headers

    # --- closing ----------------------------------------------------------------------------------------------------

    def test_closing_without_a_call_is_harmless(self, provider: Provider) -> None:
        """A run may end before its first call. Repair: open connections at the first `send`."""
        asyncio.run(provider.aclose())

    # --- inside the suite -------------------------------------------------------------------------------------------

    def _need_http(self) -> None:
        if not self.capabilities.http:
            pytest.skip("capability: this provider does not speak HTTP")

    def _need_key(self) -> None:
        self._need_http()
        if not self.capabilities.key:
            pytest.skip("capability: this provider sends no key")

    def _run(self, provider: Provider, work: Callable[[], Coroutine[object, object, T]]) -> T:
        async def closed_afterwards() -> T:
            try:
                return await work()
            finally:
                await provider.aclose()

        return asyncio.run(closed_afterwards())

    def _send(self, provider: Provider) -> NativeReply:
        return self._run(provider, lambda: provider.send(self.model_request()))

    def _failure(
        self, provider: Provider, work: Callable[[], Coroutine[object, object, object]] | None = None
    ) -> ProviderError:
        with pytest.raises(ProviderError) as caught:
            self._run(provider, work or (lambda: provider.send(self.model_request())))
        return caught.value


def _native(response: Response) -> NativeReply:
    return NativeReply(status=response.status, body=response.body, headers=dict(response.headers))


def _given(response: Response | None, what: str) -> Response:
    if response is None:
        pytest.skip(f"capability: this provider's server does not know {what}")
    return response


def _everyone(count: int) -> Callable[[], object]:
    barrier = threading.Barrier(count, timeout=20)
    return barrier.wait
