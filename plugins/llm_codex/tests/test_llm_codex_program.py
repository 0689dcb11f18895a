"""The file that runs is the file that is named, asked for its version and digested."""

import os
from pathlib import Path

import pytest
from casebound.canonical import digest_of
from casebound.errors import SettingsError
from casebound.testing.scripted_program import ScriptedProgram
from casebound_llm_codex.program import find_program

VERSION = "codex-cli 0.171.0"


def npm_package(root, natives=("codex-linux-x64",)):
    """Lay out what npm installs: a Node script, a link to it, and the native programs beside it."""
    script = root / "node_modules/@openai/codex/bin/codex.js"
    script.parent.mkdir(parents=True)
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    for name in natives:
        ScriptedProgram(root / f"node_modules/@openai/{name}/vendor/some-triple/bin", "codex", VERSION)
    link = root / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(script)
    return link


def test_a_program_on_the_path_is_found(tmp_path, monkeypatch):
    program = ScriptedProgram(tmp_path / "bin", "codex", VERSION)
    monkeypatch.setenv("PATH", f"{program.path.parent}{os.pathsep}{os.environ['PATH']}")
    found = find_program("codex")
    assert (found.path, found.version) == (program.path.resolve(), VERSION)


def test_behind_the_node_script_the_native_program_is_run(tmp_path):
    found = find_program(str(npm_package(tmp_path)))
    assert found.path.parts[-5:] == ("codex-linux-x64", "vendor", "some-triple", "bin", "codex")
    assert found.digest() == digest_of(found.path.read_bytes())


@pytest.mark.parametrize("natives", [(), ("codex-linux-x64", "codex-linux-arm64")])
def test_a_node_script_without_exactly_one_native_program_is_refused(tmp_path, natives):
    with pytest.raises(SettingsError, match=f"{len(natives)} native programs") as caught:
        find_program(str(npm_package(tmp_path, natives)))
    assert caught.value.pointer == "llm.codex.program"


def test_a_program_that_is_not_there_or_is_another_one_is_refused(tmp_path):
    other = ScriptedProgram(tmp_path, "codex", "node v20.1.0")
    for name, says in (("no-such-codex", "no such program"), (str(other.path), "does not answer --version")):
        with pytest.raises(SettingsError, match=says):
            find_program(name)


def test_a_program_that_changed_has_another_digest(tmp_path):
    program = ScriptedProgram(tmp_path, "codex", VERSION)
    found = find_program(str(program.path))
    before = found.digest()
    Path(program.path).write_text(program.path.read_text() + "# an update\n")
    assert found.digest() == digest_of(program.path.read_bytes()) != before


def test_the_version_is_asked_for_without_our_environment_and_outside_our_home(tmp_path, monkeypatch):
    program = tmp_path / "codex"
    program.write_text(f'#!/bin/sh\nenv > "{tmp_path}/seen"\necho "{VERSION}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("DATABASE_PASSWORD", "hidden")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    find_program(str(program))
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    assert "DATABASE_PASSWORD" not in seen
    for name in ("HOME", "CODEX_HOME"):
        assert Path(seen[name]).parent == tmp_path
        assert not Path(seen[name]).exists()
