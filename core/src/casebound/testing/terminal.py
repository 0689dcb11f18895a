"""A terminal for a command under test, so that it shows what it shows a person."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PATIENCE_S = 60


def on_a_terminal(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Run with standard output and standard error each on a terminal of its own; return status and what each shows."""
    ends = [pty.openpty(), pty.openpty()]
    (output, output_end), (errors, errors_end) = ends
    process = subprocess.Popen(  # noqa: S603  # a test's own command
        list(command), cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output_end, stderr=errors_end
    )
    os.close(output_end)
    os.close(errors_end)
    shown = {output: b"", errors: b""}
    waiting = set(shown)
    while waiting:
        for end in select.select(list(waiting), [], [], _PATIENCE_S)[0]:
            try:
                part = os.read(end, 65536)
            except OSError:  # the other end is closed
                part = b""
            shown[end] += part
            if not part:
                waiting.discard(end)
    status = process.wait(_PATIENCE_S)
    os.close(output)
    os.close(errors)
    return status, shown[output].decode(), shown[errors].decode()
