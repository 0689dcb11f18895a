"""Runs `codex exec` once for each request: a private folder, a built environment, a group of processes that ends.

Rules:
- The body of the native reply is standard output, byte for byte, but for the key where somebody echoes it. Its headers
  say how the program ended (`exit-status`, `stderr`), which program it was (`codex-version`, `codex-digest`) and what
  may have taken part beside our own texts (`codex-context`): `native.json` keeps them, the seal binds them.
- The private folder is gone when the call is over, whatever its end.
- The key is revealed to one place only: the variable of the process that needs it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from casebound.canonical import canonical_bytes
from casebound.clock import Clock, SystemClock
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.errors import ProviderError, SettingsError
from casebound.llm.http.key import Mask, resolve_key
from casebound.llm.provider import unsendable
from casebound.llm.strict_schema import sending_copy

from casebound_llm_codex.command import (
    KEY_VARIABLE,
    MOST_PROMPT_CHARACTERS,
    Places,
    arguments,
    declared_context,
    environment,
    model_catalog,
)
from casebound_llm_codex.events import read_events
from casebound_llm_codex.process import Ended, Run, TooMuchOutput, run
from casebound_llm_codex.program import find_program
from casebound_llm_codex.settings import CodexSettings

_MACHINE_SETTINGS = Path("/etc/codex")
_MOST_CHATTER = 4096


class CodexProvider:
    """A `casebound.llm.provider.Provider` that leaves the call to the Codex CLI."""

    def __init__(self, settings: CodexSettings, *, clock: Clock | None = None) -> None:
        """Find the program and resolve the key; no model is asked.

        Raises:
            SettingsError: no such program, or another one; the variable or the command of the key gives nothing usable.
        """
        self._settings = settings
        self._clock = clock or SystemClock()
        self._key = resolve_key(env=settings.api_key_env, cmd=settings.api_key_cmd, provider="codex")
        self._mask = Mask(self._key)
        self._program = find_program(settings.program)

    @property
    def description(self) -> str:
        """Which program it is, for people."""
        return f"{self._program.version} at {self._program.path}"

    async def send(self, request: ModelRequest) -> NativeReply:
        """Run Codex once and return everything that it said, whatever its exit status.

        Raises:
            ProviderError: `LLM_TIMEOUT`: it did not end within `request.timeout_s`. `LLM_UNAVAILABLE`: too much output.
                `LLM_REQUEST`: the request cannot be handed over, or the program cannot be started.
        """
        _check(request)
        try:
            digest = await asyncio.to_thread(self._program.digest)
            started = self._clock.monotonic()
            with private_places(request, self._settings) as places:
                ended = await run(
                    self._run(request, places),
                    timeout_s=request.timeout_s,
                    max_bytes=self._settings.max_body_bytes,
                )
        except TimeoutError:
            found = f"no end of codex exec within {request.timeout_s} s"
            failure = ProviderError("LLM_TIMEOUT", retryable=True, where="codex exec", found=found)
        except TooMuchOutput:
            failure = _too_much(self._settings.max_body_bytes)
        except OSError as exc:
            failure = unsendable(exc.strerror or type(exc).__name__, "the program, and a temporary folder")
        else:
            return self._native(ended, digest, round((self._clock.monotonic() - started) * 1000))
        # Raised out here, so that no context of it holds the environment with the key.
        raise failure

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the events say; see `events.read_events`."""
        return read_events(native)

    async def aclose(self) -> None:
        """Do nothing: each call has ended everything that it started."""

    def _run(self, request: ModelRequest, places: Places) -> Run:
        variables = environment(self._settings, places)
        if self._key is not None:
            variables[KEY_VARIABLE] = self._key.reveal()
        return Run(
            command=[str(self._program.path), *arguments(request, self._settings, places)],
            folder=places.work,
            environment=variables,
            prompt=request.user.encode(),
        )

    def _native(self, ended: Ended, digest: str, duration_ms: int) -> NativeReply:
        # Masked first: of a key that the cut goes through, a part would stay.
        chatter = self._mask.masked(ended.chatter)[-_MOST_CHATTER:].decode("utf-8", "replace")
        headers = {
            "codex-context": declared_context(self._settings, machine_settings=_MACHINE_SETTINGS.is_dir()),
            "codex-digest": digest,
            "codex-version": self._program.version,
            "exit-status": str(ended.status),
            **({"stderr": chatter} if chatter else {}),
        }
        return NativeReply(200, self._mask.masked(ended.output), headers, duration_ms)


def bound_program(settings: CodexSettings) -> dict[str, str]:
    """Return what a call with these settings runs, and what may take part beside our own texts; no model is asked.

    Raises:
        SettingsError: there is no such program, or it cannot be read.
    """
    program = find_program(settings.program)
    try:
        digest = program.digest()
    except OSError as exc:
        found = f"{program.path}: {exc.strerror or 'it cannot be read'}"
        raise SettingsError("SETTINGS_VALUE", pointer="llm.codex.program", found=found) from None
    return {
        "codex-context": declared_context(settings, machine_settings=_MACHINE_SETTINGS.is_dir()),
        "codex-digest": digest,
        "codex-version": program.version,
    }


@contextmanager
def private_places(request: ModelRequest, settings: CodexSettings) -> Iterator[Places]:
    """Make the private folder of one call, readable for nobody else, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="casebound-codex-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        schema = root / "schema.json" if request.response_format == "json_schema" else None
        places = Places(root, schema)
        for inner in (places.home, places.work, places.temporary):
            inner.mkdir()
        places.catalog.write_bytes(model_catalog(request, settings))
        if schema is not None:
            hint = 'use response_format = "json_object" in [llm]'
            schema.write_bytes(canonical_bytes(sending_copy(request.response_schema, hint=hint)))
        yield places


def _check(request: ModelRequest) -> None:
    if request.model is None:
        raise unsendable("no model", "a name in [llm] model")
    if len(request.user) > MOST_PROMPT_CHARACTERS:
        raise unsendable(f"{len(request.user)} characters", f"at most {MOST_PROMPT_CHARACTERS}, the limit of Codex")
    try:
        (request.user + request.system).encode()
    except UnicodeEncodeError:
        raise unsendable("a lone surrogate", "text that has bytes") from None


def _too_much(limit: int) -> ProviderError:
    return ProviderError(
        "LLM_UNAVAILABLE",
        retryable=False,
        where="codex exec",
        found=f"more than {limit} bytes of events",
        hint="raise max_body_bytes in [llm.codex], if such a reply is meant",
    )
