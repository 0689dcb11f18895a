"""A program on disk that plays what a test prepared and notes how it was run, for providers that run other programs.

It is a real process with real pipes; only what it says is scripted. It needs no path, no home and no variable.
"""

from __future__ import annotations

import json
import os
import select
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_PATIENCE_S = 20
_SOURCE = """\
import json, os, signal, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
if sys.argv[1:] == ["--version"]:
    sys.exit(print(open(os.path.join(here, "version"), encoding="utf-8").read()))
plays = json.load(open(os.path.join(here, "plays.json"), encoding="utf-8"))
number = 0
while True:
    try:
        os.mkdir(os.path.join(here, f"call-{number:04}"))
        break
    except FileExistsError:
        number += 1
play = plays[min(number, len(plays) - 1)]
prompt = sys.stdin.buffer.read().decode() if play["reads_prompt"] else ""
files = {}
for folder, _, names in os.walk(os.path.dirname(os.getcwd())):
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            files[os.path.relpath(path, os.path.dirname(os.getcwd()))] = open(path, errors="replace").read()
call = {"arguments": sys.argv[1:], "environment": dict(os.environ), "prompt": prompt, "folder": os.getcwd(),
        "files": files}
with open(os.path.join(here, f"call-{number:04}", "call.json"), "w", encoding="utf-8") as file:
    json.dump(call, file)
if play["lifeline"]:
    line = os.open(play["lifeline"], os.O_WRONLY)
    os.set_inheritable(line, True)
    child = subprocess.Popen(["sleep", "600"], close_fds=False)
    os.write(line, b"started")
sys.stdout.buffer.write(play["output"].encode("latin-1"))
sys.stdout.buffer.flush()
sys.stderr.buffer.write(play["errors"].encode("latin-1"))
sys.stderr.buffer.flush()
if play["lifeline"]:
    child.wait()
if play["status"] < 0:
    os.kill(os.getpid(), -play["status"])
sys.exit(play["status"])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What the program does once.

    Attributes:
        output, errors: exact bytes for standard output and standard error.
        status: its exit status; negative: it ends itself by that signal.
        lifeline: a `Lifeline`'s path: it starts a child, and both wait for ever, or until they are ended.
        reads_prompt: whether it reads its standard input.
    """

    output: bytes = b""
    errors: bytes = b""
    status: int = 0
    lifeline: str | None = None
    reads_prompt: bool = True


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """How it was run: `files` is what lay beside its working folder, by path from there."""

    arguments: list[str]
    environment: dict[str, str]
    prompt: str
    folder: str
    files: dict[str, str]


class ScriptedProgram:
    """The program; `path` is its file. Plays are used in order; the last one stays."""

    def __init__(self, folder: Path, name: str, version: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / name
        self.path.write_text(f"#!{sys.executable} -IS\n{_SOURCE}", encoding="utf-8")
        self.path.chmod(0o755)
        (folder / "version").write_text(version, encoding="utf-8")

    def plays(self, *plays: Play) -> None:
        """Set what it does from its first call on."""
        texts = [
            asdict(play) | {"output": play.output.decode("latin-1"), "errors": play.errors.decode("latin-1")}
            for play in plays
        ]
        (self.path.parent / "plays.json").write_text(json.dumps(texts), encoding="utf-8")

    @property
    def calls(self) -> list[ProgramCall]:
        """Every call that was noted, in order."""
        notes = sorted(self.path.parent.glob("call-*/call.json"))
        return [ProgramCall(**json.loads(note.read_text(encoding="utf-8"))) for note in notes]


class Lifeline:
    """A pipe that stays open as long as anybody of a program's group lives; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)

    def __enter__(self) -> Self:
        self._reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reader)

    def wait_for_start(self) -> bool:
        """Wait until the program and its child run; False if they do not."""
        return self._read() == b"started"

    def wait_for_end(self) -> bool:
        """Wait until nobody is left; False if somebody stays."""
        return self._read() == b""

    def _read(self) -> bytes | None:
        ready = select.select([self._reader], [], [], _PATIENCE_S)[0]
        return os.read(self._reader, 100) if ready else None
