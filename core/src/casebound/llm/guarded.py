"""A plugin's provider behind its border: it fails in one way only, and what it returns can be written down."""

from __future__ import annotations

from typing import TypeVar

from casebound.contracts.base import Artifact
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.errors import ContractError, PluginError
from casebound.guard import checked, plugin_guard
from casebound.llm.provider import Provider

A = TypeVar("A", bound=Artifact)


class GuardedProvider:
    """A provider that a plugin made; see `casebound.llm.provider.Provider` for the methods.

    Each raises a `ProviderError` as the provider does, and a `PluginError` for everything that it must not do:
    `PLUGIN_BROKEN` for another exception, `PLUGIN_OFFER` for a value that no artifact can hold.
    """

    def __init__(self, provider: Provider, name: str) -> None:
        self.provider = provider
        self._where = f"provider {name}"

    @property
    def description(self) -> str | None:
        """What the provider says of itself for people, where it says anything (`doctor` shows it)."""
        with plugin_guard(f"{self._where}, description"):
            said = getattr(self.provider, "description", None)
        return said if isinstance(said, str) else None

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request and return everything that came back."""
        with plugin_guard(f"{self._where}, send"):
            native = checked(await self.provider.send(request), NativeReply, f"{self._where}, send")
            checked(native.body, bytes, f"{self._where}, the body")
            self._writable(native.record)
            return native

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say."""
        with plugin_guard(f"{self._where}, read"):
            return self._writable(checked(self.provider.read(native), ModelReply, f"{self._where}, read"))

    async def aclose(self) -> None:
        """Close connections."""
        with plugin_guard(f"{self._where}, aclose"):
            await self.provider.aclose()

    def _writable(self, artifact: A) -> A:
        try:
            artifact.to_bytes()
        except ContractError as exc:
            raise PluginError("PLUGIN_OFFER", where=self._where, found=exc.found, pointer=exc.pointer) from exc
        return artifact
