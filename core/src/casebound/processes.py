"""Other programs, run without a shell, with a time limit that holds for their children too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol


class Started(Protocol):
    """A program that was started in a session of its own; `subprocess` and `asyncio` both have such a thing."""

    @property
    def pid(self) -> int:
        """Its process id, which is that of its group too."""
        ...

    def kill(self) -> None:
        """End it, and it alone."""
        ...


def run_bounded(
    command: Sequence[str],
    *,
    timeout_s: float,
    keep_output: bool = False,
    environment: Mapping[str, str] | None = None,
) -> tuple[int | None, bytes]:
    """Run a program with nothing on standard input; return its exit status and standard output.

    Args:
        command: program and arguments.
        timeout_s: seconds after which the program and everything that it started in its group are killed.
        keep_output: whether standard output is kept; else it goes nowhere, as standard error always does.
        environment: all of its variables; None: ours.

    Returns:
        The status (None: out of time) and the output, empty unless it was kept.

    Raises:
        OSError, ValueError: the program cannot be started.
    """
    output = subprocess.PIPE if keep_output else subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603  # callers run the operator's own command, or this interpreter
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            kept, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            return None, b""
        except BaseException:
            kill_group(process)
            raise
    return process.returncode, kept or b""


def kill_group(process: Started) -> None:
    """End a program that leads a group, and everything that it started in this group; harmless once it has ended."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # it ended just now; macOS refuses a group of the dead
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
