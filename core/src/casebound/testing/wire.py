"""What the tests of a provider's own wire format begin with: a request, a recorded reply, and one call.

It knows no vendor: a test says which file its server's reply stands in, and which function reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.secret import CANARY
from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import model_request

Read: TypeAlias = "Callable[[NativeReply], ModelReply]"

NAME_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}},
    "required": ["name"],
    "additionalProperties": False,
}
SEARCHES_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "searches": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "catalog": {"enum": ["inv.host", "inv.service"]},
                    "term": {"type": "string", "minLength": 1},
                    "role": {"const": "affected_subject"},
                    "rank": {"type": ["integer", "null"]},
                },
                "required": ["catalog", "term", "role", "rank"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["searches"],
    "additionalProperties": False,
}
# What models write around, or instead of, one JSON object; a provider hands each on as it is.
UNREPAIRED_TEXTS = (
    '```json\n{"a":1}\n```',
    'Here is it: {"a":1}',
    "<think>…</think>{}",
    '{"a":1,"a":2}',
    '{"a":NaN}',
    '{"a":90.0}',
    "{}{}",
    " \ufeff{} ",
)


def name_request(provider: str, **changes: object) -> ModelRequest:
    """Return a small request for a reply of `NAME_SCHEMA`, with `changes` to its fields."""
    return model_request(**{"provider": provider, "response_schema": NAME_SCHEMA, **changes})


def recorded_reply(file: Path, status: int = 200, headers: Mapping[str, str] | None = None) -> NativeReply:
    """Return the bytes of `file` as a server's reply."""
    return NativeReply(status=status, body=file.read_bytes(), headers=dict(headers or {}))


def error_of(read: Read, native: NativeReply) -> ProviderError:
    """Return the error that reading raises.

    Raises:
        AssertionError: it raises none.
    """
    try:
        reply = read(native)
    except ProviderError as error:
        return error
    raise AssertionError(f"no error, but a reply that ended with {reply.finish_reason}")


def code_of(read: Read, body: bytes) -> str | None:
    """Return the code of the error that reading `body` raises; None: it is a reply, which can be stored as it is.

    Raises:
        AssertionError: the reply comes back from its bytes as another one. Whatever else `read` raises passes.
    """
    try:
        reply = read(NativeReply(status=200, body=body))
    except ProviderError as error:
        return error.code
    assert ModelReply.from_bytes(reply.to_bytes()) == reply
    return None


def send_once(provider: Provider, request: ModelRequest) -> NativeReply:
    """Send in an event loop of its own, and close the provider."""

    async def once() -> NativeReply:
        try:
            return await provider.send(request)
        finally:
            await provider.aclose()

    return asyncio.run(once())


def ask_once(provider: Provider, request: ModelRequest) -> ModelReply:
    """Send as `send_once` does, and read what came back."""
    return provider.read(send_once(provider, request))


@contextmanager
def answering(file: Path) -> Iterator[Loopback]:
    """Serve the bytes of `file` to every request, and watch for the key `CANARY`."""
    with Loopback(canary=CANARY) as server:
        server.answer(Response(body=file.read_bytes()))
        yield server
