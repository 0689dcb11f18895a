"""One run of a program: everything it needs is given, and nothing of it is left behind.

It leads a group of its own, which is ended whatever happens: its end, the time limit, a cancelled task, Ctrl-C.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from casebound.processes import kill_group

MOST_CHATTER = 1 << 20
_PART = 65_536
_REAPING_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is run.

    Attributes:
        command: program and arguments.
        folder: where it runs.
        environment: all of its variables.
        prompt: its standard input.
    """

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    prompt: bytes

    def __repr__(self) -> str:
        """Return nothing of the environment, which holds the key."""
        return f"Run({self.command[0]!r})"


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: exit status (negative: by that signal), standard output, the end of standard error."""

    status: int
    output: bytes
    chatter: bytes


class TooMuchOutput(Exception):
    """The program wrote more than it may. It never leaves this plugin."""


async def run(what: Run, *, timeout_s: float, max_bytes: int) -> Ended:
    """Run a program to its end.

    Raises:
        TimeoutError: it did not end within `timeout_s` seconds.
        TooMuchOutput: standard output has more than `max_bytes` bytes.
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *what.command,
        cwd=what.folder,
        env=dict(what.environment),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            ended = await _to_its_end(process, what.prompt, max_bytes)
    finally:
        kill_group(process)
        await _reap(process)
    if len(ended.output) > max_bytes:
        raise TooMuchOutput
    return ended


async def _to_its_end(process: Process, prompt: bytes, max_bytes: int) -> Ended:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise OSError("no pipes")  # never: they were asked for
    _, output, chatter = await asyncio.gather(
        _feed(process.stdin, prompt),
        _read_start(process.stdout, max_bytes, lambda: kill_group(process)),
        _read_end(process.stderr),
    )
    return Ended(await process.wait(), output, chatter)


async def _feed(pipe: asyncio.StreamWriter, prompt: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended without reading; its exit status says why
        pipe.write(prompt)
        await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _read_start(pipe: asyncio.StreamReader, limit: int, stop: Callable[[], None]) -> bytes:
    """Read to the end, but keep no more than it takes to know that there is too much."""
    kept = bytearray()
    while part := await pipe.read(_PART):
        if len(kept) <= limit:
            kept += part
            if len(kept) > limit:
                stop()
    return bytes(kept)


async def _read_end(pipe: asyncio.StreamReader) -> bytes:
    kept = b""
    while part := await pipe.read(_PART):
        kept = (kept + part)[-MOST_CHATTER:]
    return kept


async def _reap(process: Process) -> None:
    # A process that left the group might hold the pipes for ever; the group itself is gone at once.
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _REAPING_S)
