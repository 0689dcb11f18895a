"""The scripted program is a real one: what it is given is noted, what it plays is exact, and its group can be ended."""

import signal
import subprocess

import pytest
from casebound.processes import kill_group
from casebound.testing.scripted_program import Lifeline, Play, ScriptedProgram


@pytest.fixture
def program(tmp_path):
    return ScriptedProgram(tmp_path / "bin", "tool", "tool 1.2")


def run(program, *arguments, folder, prompt=b"asked"):
    return subprocess.run(
        [program.path, *arguments], cwd=folder, env={"ONLY": "this"}, input=prompt, capture_output=True
    )


def test_it_plays_in_order_and_notes_how_it_was_run(program, tmp_path):
    work = tmp_path / "place" / "work"
    work.mkdir(parents=True)
    (tmp_path / "place" / "beside.txt").write_text("seen")
    program.plays(Play(output=b"\xff one\n", errors=b"e"), Play(status=3))
    assert run(program, "--version", folder=work).stdout == b"tool 1.2\n"
    first, second, third = (run(program, "-x", "a b", folder=work) for _ in range(3))
    assert (first.returncode, first.stdout, first.stderr) == (0, b"\xff one\n", b"e")
    assert (second.returncode, third.returncode) == (3, 3)
    call = program.calls[0]
    assert (call.arguments, call.prompt, call.folder) == (["-x", "a b"], "asked", str(work))
    assert (call.environment["ONLY"], call.files) == ("this", {"beside.txt": "seen"})
    assert len(program.calls) == 3


def test_it_ends_itself_by_a_signal(program, tmp_path):
    program.plays(Play(status=-signal.SIGTERM))
    assert run(program, folder=tmp_path / "bin").returncode == -signal.SIGTERM


def test_the_lifeline_holds_until_the_last_of_the_group_is_gone(program, tmp_path):
    with Lifeline(tmp_path / "line") as line:
        program.plays(Play(lifeline=line.path))
        command = [program.path]
        process = subprocess.Popen(command, cwd=tmp_path / "bin", stdin=subprocess.DEVNULL, start_new_session=True)
        assert line.wait_for_start()
        kill_group(process)
        process.wait(20)
        assert line.wait_for_end()
