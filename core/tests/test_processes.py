"""Programs that run too long are ended together with what they started."""

from __future__ import annotations

import os
import select
import sys

import pytest
from casebound.processes import run_bounded


def test_status_and_output_come_back():
    assert run_bounded(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=20, keep_output=True) == (3, b"out\n")
    assert run_bounded(["echo", "$HOME"], timeout_s=20) == (0, b"")
    assert run_bounded([sys.executable, "-c", "print(input())"], timeout_s=20)[0] == 1  # nothing on standard input


def test_a_program_has_the_variables_that_it_is_given_and_no_other():
    status, output = run_bounded(["/usr/bin/env"], timeout_s=20, keep_output=True, environment={"ONLY": "this"})
    assert (status, output) == (0, b"ONLY=this\n")


def test_a_child_that_keeps_the_pipe_open_is_ended_too(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        # The shell ends at once; its child would hold standard output, and the pipe, for a minute.
        command = ["sh", "-c", f"exec 9>{fifo}; echo started >&9; sleep 60 &"]
        assert run_bounded(command, timeout_s=1, keep_output=True) == (None, b"")
        os.set_blocking(reader, True)
        assert os.read(reader, 100) == b"started\n"
        # The end of the pipe: nobody is left who could write into it.
        assert select.select([reader], [], [], 20)[0] == [reader]
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(OSError):
        run_bounded(["no-such-program-here"], timeout_s=1)
