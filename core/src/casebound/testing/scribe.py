"""A provider whose server keeps a log of its own, and misbehaves where it is told to: for tests of live runs.

It is a plugin, as one is installed: a host may be given `SCRIBE`. What it answers follows the rules of the small
benchmark; how it misbehaves is chosen by a word in the request's first note.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from casebound.canonical import digest_of
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.hookspecs import hookimpl
from casebound.installed import Installed
from casebound.llm.provider import Provider
from casebound.specs import ProviderSpec
from casebound.testing.scripted import ScriptedProvider, native_error, native_reply
from casebound.testing.small_benchmark import answer, reply

SCRIBE = Installed("scribe", __name__, "casebound", "0")
USAGE = Usage(input_tokens=7, output_tokens=3)


class ScribeSettings(BaseModel):
    """`[llm.scribe]`.

    Attributes:
        log: where the server keeps its log: a JSON line a call.
        behaviour: a word → how it behaves where the first note has that word, a name of `BEHAVIOURS` or `hang`.
        program: a file that stands for the program that is run.
        temperature: a fraction, as providers have them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    log: str
    behaviour: dict[str, str] = {}
    program: str | None = None
    temperature: float = 0.5


class Scribe:
    """Logs a call as its server would, then answers."""

    def __init__(self, settings: ScribeSettings) -> None:
        self._settings = settings
        self._reader = ScriptedProvider({})

    async def send(self, request: ModelRequest) -> NativeReply:
        """Log the call, then behave."""
        message = json.loads(request.user)
        text = message["notes"][0]["text"]
        with Path(self._settings.log).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"note": text, "user": request.user, "system": request.system}) + "\n")
        name = next((how for word, how in self._settings.behaviour.items() if word in text), "good")
        if name == "hang":
            await asyncio.Event().wait()
        return BEHAVIOURS[name](message)

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the bytes say."""
        return self._reader.read(native)

    async def aclose(self) -> None:
        """Do nothing."""


def _good(message: Mapping[str, Any]) -> NativeReply:
    return native_reply(answer(message), usage=USAGE)


def _raise(code: str) -> Callable[[Mapping[str, Any]], NoReturn]:
    def fail(message: Mapping[str, Any]) -> NoReturn:
        raise ProviderError(code, retryable=True, found="a scripted failure")

    return fail


def _break(message: Mapping[str, Any]) -> NoReturn:
    raise RuntimeError("broken on purpose")


BEHAVIOURS: Mapping[str, Callable[[Mapping[str, Any]], NativeReply]] = {
    "good": _good,
    "timeout": _raise("LLM_TIMEOUT"),
    "unknown": _raise("LLM_CALL_UNKNOWN"),
    "busy": lambda message: native_error("LLM_RATE_LIMITED", retryable=True, retry_after_s=1),
    "broken": _break,
    "prose": lambda message: native_reply("They are the same.", usage=USAGE),
    "cut": lambda message: native_reply(answer(message), usage=USAGE, finish_reason="length"),
    "refusal": lambda message: native_reply("", usage=USAGE, finish_reason="refusal"),
    "schema": lambda message: native_reply({"assessment": "perhaps"}, usage=USAGE),
    "binding": lambda message: native_reply(reply("same", "nobody"), usage=USAGE),
    "tool": lambda message: native_reply(answer(message), usage=USAGE, tools=("shell",)),
    "no_usage": lambda message: native_reply(answer(message)),
    "other": lambda message: native_reply(reply("other", message["notes"][0]["noteId"]), usage=USAGE),
}


def program(settings: ScribeSettings) -> dict[str, str]:
    """Return what is run: the digest of the file that stands for it."""
    return {} if settings.program is None else {"digest": digest_of(Path(settings.program).read_bytes())}


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `scribe`."""
    return [
        ProviderSpec(
            "scribe",
            settings=f"{__name__}:ScribeSettings",
            factory=f"{__name__}:Scribe",
            program=f"{__name__}:program",
        )
    ]


def logged(log: Path) -> list[str]:
    """Return the first note of each call that the server saw, in order."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [json.loads(line)["note"] for line in lines]


class Watched:
    """A provider with a point before and behind each call, where a test may end the process."""

    def __init__(self, provider: Provider, point: Callable[[str], None]) -> None:
        self._provider = provider
        self._point = point

    async def send(self, request: ModelRequest) -> NativeReply:
        """Pass a point, send, pass another."""
        self._point("before a call")
        native = await self._provider.send(request)
        self._point("behind a call")
        return native

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the bytes say."""
        return self._provider.read(native)

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()
