"""The provider `gemini`: one call of `generateContent`, sent as all our HTTP providers send."""

from __future__ import annotations

from casebound.clock import Clock
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.llm.http.sender import Dialect, HttpSender

from casebound_llm_gemini.settings import GeminiSettings
from casebound_llm_gemini.wire import read_reply, request_body, request_path

_DIALECT = Dialect(provider="gemini", key_header="x-goog-api-key", kept_headers=("server-timing",))


class GeminiProvider:
    """A `casebound.llm.provider.Provider` for Gemini. It belongs to the event loop of its first `send`."""

    def __init__(self, settings: GeminiSettings, *, clock: Clock | None = None) -> None:
        """Resolve the key; nothing is opened yet.

        Raises:
            SettingsError: the variable or the command of the key gives nothing that a header can carry; `ca_file`
                cannot be read.
        """
        self._settings = settings
        self._sender = HttpSender(settings, _DIALECT, clock=clock)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request once and return what came back, whatever the status.

        Raises:
            ProviderError: nothing came back, see `HttpSender.post`; `LLM_REQUEST`: the request cannot be put into this
                wire format, and nothing was sent.
        """
        path, body = request_path(request, self._settings), request_body(request, self._settings)
        return await self._sender.post(path, body, timeout_s=request.timeout_s)

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say; see `wire.read_reply`."""
        return read_reply(native)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()
