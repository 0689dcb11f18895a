"""A program is over when it has ended, whoever still holds its pipes; and nothing of it is left to the event loop."""

import os
import subprocess
import sys

import pytest

_SOURCE = """
import asyncio, os
from pathlib import Path
from casebound_llm_codex.process import Run, run
what = Run(command={command!r}, folder=Path({folder!r}), environment={{"PATH": os.defpath}}, prompt={prompt})
print(asyncio.run(run(what, timeout_s={timeout_s}, max_bytes=1_000_000)))
"""


def runs(tmp_path, command, prompt="b'prompt'", timeout_s=10):
    """Run a command from an interpreter that tells everything that is left open at its end."""
    source = _SOURCE.format(command=command, folder=str(tmp_path), prompt=prompt, timeout_s=timeout_s)
    return subprocess.run([sys.executable, "-X", "dev", "-c", source], capture_output=True, text=True, timeout=60)


def test_an_answer_is_whole_though_a_child_keeps_the_pipes_open(tmp_path):
    ran = runs(tmp_path, ["sh", "-c", "sleep 600 & echo whole; echo said >&2"])
    assert (ran.stdout, ran.stderr) == ("Ended(status=0, output=b'whole\\n', chatter=b'said\\n')\n", "")


@pytest.mark.parametrize("prompt", ["b'prompt'", "b'x' * 1_000_000"])
def test_an_answer_is_whole_though_a_child_that_left_the_group_keeps_the_pipes_open(tmp_path, prompt):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The program opens it at once, and its child reads until we close it.
    held = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    child = f"subprocess.Popen(['cat'], stdin=open({str(fifo)!r}), start_new_session=True)"
    try:
        ran = runs(tmp_path, [sys.executable, "-c", f"import subprocess; {child}; print('whole')"], prompt)
    finally:
        os.close(held)
    assert "status=0, output=b'whole\\n'" in ran.stdout
    assert "Event loop is closed" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_all_that_a_program_wrote_before_its_end_is_kept(tmp_path):
    ran = runs(tmp_path, ["sh", "-c", "sleep 600 & head -c 300000 /dev/zero | tr '\\0' x; exit 3"])
    assert ran.stdout.startswith("Ended(status=3")
    assert ran.stdout.count("x") == 300_000
    assert ran.stderr == ""
