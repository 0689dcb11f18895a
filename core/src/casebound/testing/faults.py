"""Breaking things on purpose: processes that are killed at a chosen point, and a model whose server keeps its own log.

`watch` calls a function at every point of a run where the state on disk, or at the server, is about to change or just
has: before a file is begun, between its last byte and its name, behind it, before and behind each call. What that
function does is the test's: count, raise, or end the process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.store import write as write_module
from casebound.testing.inventory_model import InventoryModel, Search, message_of
from casebound.workspace import index_file
from casebound.workspace.connection import Database
from casebound.workspace.index import Index

Point = Callable[[str], None]
S = TypeVar("S")


def run_in_child(work: Callable[[], object]) -> int:
    """Run `work` in a process of its own and return its exit status; below zero: the signal that killed it."""
    return wait_for(start_child(work))


def start_child(work: Callable[[], object]) -> int:
    """Start `work` in a process of its own and return its id; the status is what `work` returns, or 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the runner's own threads hold nothing that a child needs
        child = os.fork()
    if child:
        return child
    status = 70
    try:
        status = int(work() or 0)  # type: ignore[call-overload]  # what cannot be a status ends as 70
    except BaseException:  # noqa: BLE001  # a child may not return into the test runner, whatever happens
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait_for(child: int) -> int:
    """Wait for a child and return its exit status."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


@contextmanager
def watch(point: Point) -> Iterator[None]:
    """Call `point` with the name of each place that a run passes where files are made.

    A file passes `before PATH`, `nameless PATH` (its last byte is flushed, its name is not there) and `behind PATH`.
    A transaction of the index passes `uncommitted index NAME` and `behind index NAME`, by the function that makes it.
    """
    fill, link = write_module._fill, write_module._link
    create_index, writing = vars(index_file)["create_new_file"], Database.writing

    def watched_fill(path: str, data: bytes, folder: int, name: str, mode: int) -> None:
        point(f"before {path}")
        fill(path, data, folder, name, mode)

    def watched_link(path: str, below: int, name: str, folder: int, last: str) -> bool:
        point(f"nameless {path}")
        new = link(path, below, name, folder, last)
        point(f"behind {path}")
        return new

    def watched_index(path: Path, data: bytes) -> None:
        point("before index file")
        create_index(path, data)
        point("behind index file")

    @contextmanager
    def watched_writing(database: Database) -> Iterator[Connection]:
        name = _index_call(sys._getframe(2))  # behind this generator and the context manager that it became
        with writing(database) as connection:
            yield connection
            point(f"uncommitted index {name}")
        point(f"behind index {name}")

    write_module._fill, write_module._link = watched_fill, watched_link
    vars(index_file)["create_new_file"], Database.writing = watched_index, watched_writing  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        write_module._fill, write_module._link = fill, link
        vars(index_file)["create_new_file"], Database.writing = create_index, writing  # type: ignore[method-assign]


def _index_call(frame: FrameType | None) -> str:
    """Return the name of the outermost function of the index that is at work in `frame`, or of the frame's own."""
    name = "" if frame is None else frame.f_code.co_name
    while frame is not None and frame.f_globals["__name__"] == Index.__module__:
        name, frame = frame.f_code.co_name, frame.f_back
    return name


_CASE = re.compile(r"\bcases/[^/]+/(?:analysis/interpretations/[0-9]{4}/)?")
_NUMBER = re.compile(r"(?<=[-/])[0-9]{4}(?=[./])")


def kind_of(name: str) -> str:
    """Return the name of a point without case, number and digest: what all points of its kind share."""
    return re.sub(r"sha256-[0-9a-f]{64}", "DIGEST", _NUMBER.sub("N", _CASE.sub("", name)))


@dataclass(slots=True)
class Countdown:
    """Counts points by name and calls `end` at the one numbered `at` (from 0); None: at none.

    Attributes:
        passed: names of all points so far.
    """

    at: int | None = None
    end: Callable[[], object] = field(default=lambda: os.kill(os.getpid(), signal.SIGKILL))
    passed: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        """Pass the point `name`."""
        self.passed.append(name)
        if self.at is not None and len(self.passed) == self.at + 1:
            self.end()


def kill_at_each(
    points: Sequence[str], begin: Callable[[int], S], work: Callable[[S, Countdown], object]
) -> Iterator[tuple[str, S]]:
    """Kill work once at each point that an undisturbed run passes; yield the point's name, and what the kill left.

    Args:
        points: the names, in order.
        begin: makes what is worked on anew; it is called with the number of the point.
        work: works on it, and passes every point. It runs in a process of its own, which ends itself with SIGKILL.

    Raises:
        AssertionError: the process ended otherwise.
    """
    for at, name in enumerate(points):
        subject = begin(at)
        status = run_in_child(lambda: work(subject, Countdown(at)))  # noqa: B023  # it has ended before the next round
        assert status == -signal.SIGKILL, f"{name}: ended with {status}"
        yield name, subject


class LoggingModel(InventoryModel):
    """An `InventoryModel` whose server writes one line a call, and whose first word in some stages is wrong.

    Args:
        log: where the server keeps its log, a JSON line a call: stage, attempt, and the user message.
        point: called before and behind each call.
        searches: what its plans propose.
        stumbles: stages whose requests without feedback get an invalid reply.
    """

    def __init__(
        self,
        log: Path,
        *,
        point: Point = lambda name: None,
        searches: tuple[Search, ...],
        stumbles: tuple[str, ...] = (),
    ) -> None:
        super().__init__(searches)
        self._log = log
        self._point = point
        self._stumbles = stumbles

    async def send(self, request: ModelRequest) -> NativeReply:
        """Log the call, then answer it."""
        self._point(f"before call {request.stage} {request.attempt}")
        line = json.dumps({"stage": request.stage, "attempt": request.attempt, "user": request.user})
        with self._log.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
        native = await super().send(request)
        self._point(f"behind call {request.stage} {request.attempt}")
        return native

    def answer(self, request: ModelRequest) -> dict[str, object]:
        """Return a valid answer, or one that lacks everything."""
        stumbles = request.stage in self._stumbles and "feedback" not in message_of(request)
        return {"nothing": "of use"} if stumbles else super().answer(request)


def calls_in(log: Path) -> list[dict[str, Any]]:
    """Return what the server logged, in order."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
