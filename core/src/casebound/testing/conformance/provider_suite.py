"""What all parts of the provider suite stand on: what the author supplies, and one way to send, to fail and to skip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import ClassVar, TypeVar

import pytest

from casebound.contracts.model_call import ModelRequest, NativeReply, ResponseFormat
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.provider_replies import Asked, Capabilities, Replies
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import model_request

T = TypeVar("T")


class ProviderSuite:
    """What the author of a provider supplies, and what every test of the suite uses."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    replies: ClassVar[Replies]
    always: ClassVar[Mapping[str, object]] = {}

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

    def asked(self, body: Mapping[str, object]) -> Asked | None:
        """Supply: what a request's JSON body says in your vendor's words; None skips what is tested with it.

        What you do not name goes into `rest`, which must equal the value `always`.
        """
        return None

    # --- inside the suite -------------------------------------------------------------------------------------------

    def _need_http(self) -> None:
        """Skip where the provider does not speak HTTP."""
        if not self.capabilities.http:
            pytest.skip("capability: this provider does not speak HTTP")

    def _need_key(self) -> None:
        """Skip where the provider sends no key."""
        self._need_http()
        if not self.capabilities.key:
            pytest.skip("capability: this provider sends no key")

    def _run(self, provider: Provider, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Do `work` in a loop of its own, and close the provider afterwards."""

        async def closed_afterwards() -> T:
            try:
                return await work()
            finally:
                await provider.aclose()

        return asyncio.run(closed_afterwards())

    def _send(self, provider: Provider) -> NativeReply:
        """Send the suite's request once."""
        return self._run(provider, lambda: provider.send(self.model_request()))

    def _failure(
        self, provider: Provider, work: Callable[[], Coroutine[object, object, object]] | None = None
    ) -> ProviderError:
        """Return the error in which `work` ends; None: sending the suite's request once."""
        with pytest.raises(ProviderError) as caught:
            self._run(provider, work or (lambda: provider.send(self.model_request())))
        return caught.value

    def _need_format(self, response_format: ResponseFormat) -> None:
        """Skip a response format that the provider does not have."""
        if response_format not in self.capabilities.response_formats:
            pytest.skip(f"capability: this provider has no response format {response_format}")


def native_of(response: Response) -> NativeReply:
    """Return what `send` would make of a response."""
    return NativeReply(status=response.status, body=response.body, headers=dict(response.headers))


def given(response: Response | None, what: str) -> Response:
    """Return the reply that the author supplied; skip where there is none."""
    if response is None:
        pytest.skip(f"capability: this provider's server does not know {what}")
    return response
