"""The real command line in processes that die at a chosen point, and whose wall clock a test may set.

`Commands` keeps one process that has imported everything already; each command is a child of it, and begins where a
fresh `casebound` would, some hundred milliseconds later. So every point of a long run can be tried.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Self

from casebound.__main__ import main as run_program
from casebound.clock import SystemClock
from casebound.testing.faults import Point, kind_of, start_child, wait_for, watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One command.

    Attributes:
        arguments: of `casebound`.
        folder: where it runs, and where `out` and `err` get what it prints.
        plugins: a folder of distributions on its path.
        clock: a file with the seconds by which its wall clock is ahead, read whenever it asks for the time.
        points: a file that gets the name of each point it passes, one a line.
        end_at: it ends itself with SIGKILL at the first point of this kind; None: at none.
    """

    arguments: tuple[str, ...]
    folder: str
    plugins: str
    clock: str | None = None
    points: str | None = None
    end_at: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: `status` as `wait_for` has it."""

    status: int
    out: str
    err: str


class Commands:
    """A context manager: one process with everything imported, whose children are the commands, one after the other.

    Args:
        modules: what is imported beside core, such as a provider.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        command = [sys.executable, "-P", "-m", __spec__.name, *modules]
        self._server = subprocess.Popen(  # noqa: S603  # this interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def start(self, order: Order) -> int:
        """Start one command and return the id of its process; the one before has ended."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._folder = Path(order.folder)
        for name in ("out", "err"):  # it may die before it has opened them
            (self._folder / name).write_bytes(b"")
        self._server.stdin.write(json.dumps(asdict(order)) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def has_ended(self, within_s: float = 0) -> bool:
        """Tell whether the command that was started has ended, or ends within so many seconds."""
        assert self._server.stdout is not None
        return bool(select.select([self._server.stdout], [], [], within_s)[0])

    def wait(self) -> Ended:
        """Wait for the command that was started."""
        assert self._server.stdout is not None
        status = int(self._server.stdout.readline())
        out, err = ((self._folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return Ended(status, out, err)

    def run(self, order: Order) -> Ended:
        """Run one command to its end."""
        self.start(order)
        return self.wait()


def noted(notes: int, end_at: str | None) -> Point:
    """Return a point that writes down each name, and ends this process at the first one of the kind `end_at`."""

    def point(name: str) -> None:
        os.write(notes, f"{name}\n".encode())
        if kind_of(name) == end_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def set_clock(ahead: Path) -> None:
    """Let this process's wall clock go as many seconds ahead as stand in the file `ahead`; `monotonic` stays."""
    now = SystemClock.now

    def moved(clock: SystemClock) -> datetime:
        return now(clock) + timedelta(seconds=float(ahead.read_text(encoding="ascii")))

    SystemClock.now = moved  # type: ignore[method-assign, assignment]  # this process is the test's


def carry_out(order: Order) -> int:
    """Run the program in this process, which is good for nothing else then."""
    os.chdir(order.folder)
    sys.path.insert(0, order.plugins)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), descriptor)
    sys.argv = ["casebound", *order.arguments]
    with ExitStack() as watched:
        if order.clock is not None:
            set_clock(Path(order.clock))
        if order.points is not None:
            notes = os.open(order.points, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            watched.enter_context(watch(noted(notes, order.end_at)))
        status = run_program()
    sys.stdout.flush()
    return status


def serve(modules: Iterable[str]) -> None:
    """Import everything, then run a child for each order on standard input; tell its id, then its status."""
    for module in ("casebound.api", "casebound.runs", "casebound.cli.cases", "casebound.cli.workspace", *modules):
        import_module(module)
    answers = os.dup(1)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        child = start_child(lambda order=order: carry_out(order))  # type: ignore[misc]  # bound at once
        os.write(answers, f"{child}\n".encode())
        os.write(answers, f"{wait_for(child)}\n".encode())


if __name__ == "__main__":
    serve(sys.argv[1:])
