"""The provider: puts a request on the wire and reads what comes back. `casebound.llm.http` does the sending."""

from __future__ import annotations

from casebound.clock import Clock
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.llm.http.sender import Dialect, HttpSender

from casebound_llm_openai.settings import OpenAISettings
from casebound_llm_openai.wire import read_reply, request_body

_KEPT_HEADERS = ("openai-processing-ms", "x-ratelimit-*")


class OpenAIProvider:
    """A `casebound.llm.provider.Provider` for Chat Completions. It belongs to the event loop of its first `send`."""

    def __init__(self, settings: OpenAISettings, *, clock: Clock | None = None) -> None:
        """Resolve the key; nothing is opened yet.

        Raises:
            SettingsError: the variable or the command of the key gives nothing that a header can carry; `ca_file`
                cannot be read.
        """
        self._settings = settings
        self._sender = HttpSender(settings, _dialect(settings), clock=clock)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request once and return what came back, whatever the status.

        Raises:
            ProviderError: as `HttpSender.post` says; `LLM_REQUEST` too where the request cannot be put into this wire
                format, and then nothing was sent.
        """
        body = request_body(request, self._settings)
        return await self._sender.post(self._settings.path, body, timeout_s=request.timeout_s)

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say; see `wire.read_reply`."""
        return read_reply(native)

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
