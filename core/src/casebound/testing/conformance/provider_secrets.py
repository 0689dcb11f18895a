"""Secrets: the key goes into one header, and comes back nowhere."""

from __future__ import annotations

import pytest

from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.provider_suite import ProviderSuite
from casebound.testing.conformance.secret import CANARY, assert_no_canary, texts_of
from casebound.testing.loopback import Fault, Loopback, Response


class SecretsConformance(ProviderSuite):
    """What is stored, logged or raised never holds the key."""

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
        assert CANARY.encode() in echo, "the key cannot be planted. Repair: let `error_body` hold the word `no`"
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
