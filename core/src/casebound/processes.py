"""Other programs, run without a shell, with a time limit that holds for their children too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress


def run_bounded(command: Sequence[str], *, timeout_s: float, keep_output: bool = False) -> tuple[int | None, bytes]:
    """Run a program with nothing on standard input; return its exit status and standard output.

    Args:
        command: program and arguments.
        timeout_s: seconds after which the program and everything that it started in its group are killed.
        keep_output: whether standard output is kept; else it goes nowhere, as standard error always does.

    Returns:
        The status (None: out of time) and the output, empty unless it was kept.

    Raises:
        OSError, ValueError: the program cannot be started.
    """
    output = subprocess.PIPE if keep_output else subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603  # callers run the operator's own command, or this interpreter
        list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            kept, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return None, b""
        except BaseException:
            _kill_group(process)
            raise
    return process.returncode, kept or b""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):  # it ended by itself just now
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
