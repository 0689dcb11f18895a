"""The contract of a model provider: two methods, and one way to fail."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.errors import ProviderError


@runtime_checkable
class Provider(Protocol):
    """Sends a request, keeps the native bytes apart from what is read from them.

    The stage stores the native reply between `send` and `read`: hence `read` is pure, and reading again later gives the
    same reply. A provider never retries by itself, never alters the request that it is given, never follows a redirect,
    never raises its library's exceptions, and never lets a key into an error text, a header that it returns, or a log.
    It may have a text `description`: what `doctor` tells of it, where a name does not say enough (which program it
    runs).
    """

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request and return everything that came back, whatever the status.

        Raises:
            ProviderError: nothing usable came back (`LLM_TIMEOUT`: the whole call took longer than
                `request.timeout_s`; `LLM_UNAVAILABLE`: no connection, broken off, too large; `LLM_CALL_UNKNOWN`:
                nobody can tell whether it was answered, as a replay says of such a call).
        """
        ...

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say; nothing that was not reported is invented.

        Raises:
            ProviderError: the bytes are an error of the server: `LLM_AUTH`, `LLM_QUOTA`, `LLM_RATE_LIMITED`,
                `LLM_REQUEST`, `LLM_UNAVAILABLE`, `LLM_TIMEOUT`, with `retryable` and `retry_after` where stated.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, after the last `send`."""
        ...


def unsendable(found: str, expected: str) -> ProviderError:
    """Return the error of `send` for a request that the provider cannot hand over as it is."""
    where = "the request, before anything was sent"
    return ProviderError("LLM_REQUEST", retryable=False, found=found, expected=expected, where=where)
