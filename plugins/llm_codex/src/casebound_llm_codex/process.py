"""One run of a program: everything it needs is given, and nothing of it is left behind.

Rules:
- It leads a group of its own, which is ended whatever happens: its end, the time limit, a cancelled task, Ctrl-C.
- It is over when it has ended, not when its pipes have: a child may hold them for ever. All that it wrote counts.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from casebound.processes import kill_group

MOST_CHATTER = 1 << 20
_GRACE_S = 1
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
    _, program = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Program(max_bytes),
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
            program.feed(what.prompt)
            await program.over.wait()
    finally:
        kill_group(program)
        await program.settle()
    if len(program.output) > max_bytes:
        raise TooMuchOutput
    return Ended(program.status, bytes(program.output), program.chatter)


class _Program(asyncio.SubprocessProtocol):
    """What is heard of a running program.

    Attributes:
        output: standard output, no more of it than it takes to know that there is too much.
        chatter: the end of standard error.
        over: set once the program has ended, or has written too much.
    """

    def __init__(self, max_bytes: int) -> None:
        self.output = bytearray()
        self.chatter = b""
        self.over = asyncio.Event()
        self._max_bytes = max_bytes
        self._open = {0, 1, 2}
        self._silent = asyncio.Event()
        self._gone = asyncio.Event()

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group too."""
        return self._transport.get_pid()

    @property
    def status(self) -> int:
        """Its exit status, once it has ended."""
        status = self._transport.get_returncode()
        return -1 if status is None else status  # never None: it is over

    def kill(self) -> None:
        """End it, and it alone."""
        with suppress(ProcessLookupError):
            self._transport.kill()

    def feed(self, prompt: bytes) -> None:
        """Write all of its standard input. It may end without reading; its exit status says why."""
        self._stdin.write(prompt)
        self._stdin.close()

    async def settle(self) -> None:
        """Read what is left in the pipes of a program that was ended, and close them, whoever else holds them."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._silent.wait(), _GRACE_S)
        if 0 in self._open:
            self._stdin.abort()  # closing it would wait for somebody to read the rest of the prompt
        self._transport.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), _REAPING_S)

    # --- what the event loop tells ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.chatter = (self.chatter + data)[-MOST_CHATTER:]
        elif len(self.output) <= self._max_bytes:
            self.output += data
            if len(self.output) > self._max_bytes:
                self.over.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self._silent.set()

    def process_exited(self) -> None:
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
