"""The provider: puts a request on the wire and reads what comes back. `casebound.llm.http` does the sending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from casebound.clock import Clock
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.llm.http.sender import Dialect, HttpSender

from casebound_llm_openai import chat, responses
from casebound_llm_openai.settings import Api, OpenAISettings

_KEPT_HEADERS = ("openai-processing-ms", "x-ratelimit-*")


@dataclass(frozen=True, slots=True)
class _Wire:
    """One way of asking: the body of a request, and what its reply says."""

    request_body: Callable[[ModelRequest, OpenAISettings], dict[str, object]]
    read_reply: Callable[[NativeReply], ModelReply]


_WIRES: dict[Api, _Wire] = {
    "chat": _Wire(chat.request_body, chat.read_reply),
    "responses": _Wire(responses.request_body, responses.read_reply),
}


class OpenAIProvider:
    """A `casebound.llm.provider.Provider` for one server and one way of asking.

    It belongs to the event loop of its first `send`.
    """

    def __init__(self, settings: OpenAISettings, *, clock: Clock | None = None) -> None:
        """Resolve the key; nothing is opened yet.

        Raises:
            SettingsError: the variable or the command of the key gives nothing that a header can carry; `ca_file`
                cannot be read.
        """
        self._settings = settings
        self._wire = _WIRES[settings.api]
        self._sender = HttpSender(settings, _dialect(settings), clock=clock)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request once and return what came back, whatever the status.

        Raises:
            ProviderError: as `HttpSender.post` says; `LLM_REQUEST` too where the request cannot be put into this wire
                format, and then nothing was sent.
        """
        return await self._sender.post(
            self._settings.endpoint, self._wire.request_body(request, self._settings), timeout_s=request.timeout_s
        )

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say; see `chat.read_reply` and `responses.read_reply`."""
        return self._wire.read_reply(native)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()


def _dialect(settings: OpenAISettings) -> Dialect:
    named = {"OpenAI-Organization": settings.organization, "OpenAI-Project": settings.project}
    return Dialect(
        provider="openai",
        key_header=settings.api_key_header,
        key_prefix=settings.api_key_prefix,
        headers={name: value for name, value in named.items() if value is not None},
        query=settings.query,
        kept_headers=_KEPT_HEADERS,
    )
