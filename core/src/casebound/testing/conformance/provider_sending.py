"""Sending: one call, one request, one deadline, whatever the server and the network do."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Callable

import pytest

from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.provider_suite import ProviderSuite
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response


class SendingConformance(ProviderSuite):
    """A call ends in the bytes that came back or in one error of ours, and leaves nothing open."""

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

    @pytest.mark.faults
    def test_the_duration_is_that_of_the_call(self, provider: Provider, loopback: Loopback) -> None:
        """Time is part of the record. Repair: measure from before the sending until after the last byte."""
        self._need_http()
        inside: list[float] = []

        def slow(_: RecordedRequest) -> Response:
            began = time.monotonic()
            threading.Event().wait(0.05)
            inside.append(time.monotonic() - began)
            return self.replies.success

        loopback.answer(slow)
        began = time.monotonic()
        native = self._send(provider)
        outside = time.monotonic() - began
        # Both bounds hold by order of events, not by luck: the call surrounds the server's work, the test the call.
        assert inside[0] * 1000 - 1 <= native.duration_ms <= outside * 1000 + 1

    def test_a_body_beyond_measure_is_not_read_to_its_end(self, provider: Provider, loopback: Loopback) -> None:
        """50 MB are no reply. Repair: count while reading, stop at a limit; `LLM_UNAVAILABLE`, not retryable."""
        self._need_http()
        loopback.answer(Response(body=b" " * 50_000_000))
        error = self._failure(provider)
        assert (error.code, error.retryable) == ("LLM_UNAVAILABLE", False)
        assert len(loopback.requests) == 1

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
        all_here = everyone(16)

        def own_body(request: RecordedRequest) -> Response:
            all_here()  # each waits for all: only calls that are really in flight together get past here
            marker = next(f"[{n}]".encode() for n in range(16) if f"[{n}]".encode() in request.body)
            return Response(body=marker)

        loopback.answer(own_body)

        async def all_at_once() -> list[NativeReply]:
            calls = [provider.send(self.model_request(system=f"Answer with JSON [{n}]")) for n in range(16)]
            return await asyncio.gather(*calls)

        natives = self._run(provider, all_at_once)
        assert [native.body for native in natives] == [f"[{n}]".encode() for n in range(16)]

    def test_closing_without_a_call_is_harmless(self, provider: Provider) -> None:
        """A run may end before its first call. Repair: open connections at the first `send`."""
        asyncio.run(provider.aclose())


def everyone(count: int) -> Callable[[], object]:
    """Return what keeps each of `count` callers until all have called."""
    barrier = threading.Barrier(count, timeout=20)
    return barrier.wait
