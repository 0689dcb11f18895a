r"""The suite that every runner passes, ours and yours.

Subclass `RunnerConformance`, name the class `Test…`, and supply a fixture:

    class TestQueue(RunnerConformance):
        uses = "command"          # "here": your runner calls `job.here`; "command": it runs `job.command`

        @pytest.fixture
        def runner(self):
            return Runner("queue", run="my_plugin.queue:run")

The jobs of the suite leave signs in a folder, whether they run here or in another process, and wait there until the
test lets them go; no test measures time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import pytest

from casebound.specs import Runner
from casebound.workspace.runner import Job, RunJobs

T = TypeVar("T")

_PATIENCE_S = 30.0
_BETWEEN_LOOKS_S = 0.005
# What a job does, in a process of its own. Its arguments: the folder of signs, and the job's name.
_PROGRAM = """\
import os, pathlib, sys, time
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
(folder / f"started-{name}-{os.getpid()}").touch()
while not (folder / f"go-{name}").exists():
    time.sleep(0.005)
(folder / f"ended-{name}").touch()
"""


class Failed(Exception):
    """What a job, or the waiting for one, raises in this suite."""


class Signs:
    """The folder in which the suite's jobs leave signs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def job(self, name: str) -> Job:
        """Return a job that starts, waits until it is let go, and ends."""
        program = (sys.executable, "-c", _PROGRAM, str(self.folder), name)
        return Job(name, lambda: self._here(name), program)

    def broken_job(self, name: str) -> Job:
        """Return a job that starts, and raises `Failed` once it is let go."""

        async def here() -> None:
            await self._here(name)
            raise Failed(name)

        return Job(name, here, ("false",))

    def let_go(self, *names: str) -> None:
        """Let jobs go on to their end."""
        for name in names:
            (self.folder / f"go-{name}").touch()

    def started(self) -> list[str]:
        """Return the names of the jobs that started, once for each time, sorted."""
        return sorted(path.name.split("-")[1] for path in self.folder.glob("started-*"))

    def ended(self) -> set[str]:
        """Return the names of the jobs that came to their end."""
        return {path.name.split("-")[1] for path in self.folder.glob("ended-*")}

    def alive(self) -> set[str]:
        """Return the names of jobs that still run: tasks that nobody ended, and processes that nobody did."""
        ended, alive = self.ended(), set()
        for path in self.folder.glob("started-*"):
            name, process = path.name.split("-")[1:]
            if name not in ended and not (self.folder / f"cancelled-{name}").exists() and _lives(process):
                alive.add(name)
        return alive

    async def _here(self, name: str) -> None:
        number = sum(1 for _ in self.folder.glob(f"started-{name}-*"))
        (self.folder / f"started-{name}-task{number}").touch()
        try:
            await until((self.folder / f"go-{name}").exists)
        except asyncio.CancelledError:
            (self.folder / f"cancelled-{name}").touch()
            raise
        (self.folder / f"ended-{name}").touch()


def _lives(process: str) -> bool:
    if not process.isdecimal():
        return True  # a task; had it been ended, it would have said so
    with suppress(ProcessLookupError):
        os.kill(int(process), 0)
        return True
    return False


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition. Raises `TimeoutError` where it does not come."""
    async with asyncio.timeout(_PATIENCE_S):
        while not condition():
            await asyncio.sleep(_BETWEEN_LOOKS_S)


async def stream(jobs: Iterable[Job], *, at_each: Callable[[int], object] = lambda taken: None) -> AsyncIterator[Job]:
    """Yield jobs; whenever the runner asks for one, `at_each` is called with the number of those that it has taken."""
    taken = 0
    for job in jobs:
        at_each(taken)
        yield job
        taken += 1
    at_each(taken)


def in_time(work: Awaitable[T]) -> T:
    """Return what `work` returns. Raises `TimeoutError` where it never ends."""

    async def bounded() -> T:
        async with asyncio.timeout(_PATIENCE_S):
            return await work

    return asyncio.run(bounded())


class RunnerConformance:
    """What is promised in `casebound.specs.Runner`, test by test."""

    uses: ClassVar[Literal["here", "command"]] = "here"

    # --- what the author supplies -----------------------------------------------------------------------------------

    @pytest.fixture
    def runner(self) -> Runner:
        """Supply: the runner."""
        raise NotImplementedError("override the fixture `runner`")

    @pytest.fixture
    def run(self, runner: Runner) -> RunJobs:
        """The function that the runner names."""
        module, _, attribute = runner.run.partition(":")
        function: RunJobs = getattr(import_module(module), attribute)
        return function

    @pytest.fixture
    def signs(self, tmp_path: Path) -> Signs:
        """Where the jobs of one test leave their signs."""
        return Signs(tmp_path)

    # --- what it does -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("most", [1, 3, 64])
    def test_every_job_is_done_exactly_once(self, run: RunJobs, signs: Signs, most: int) -> None:
        """A case is worked on once. Repair: do each job that was taken, and do it once, whatever `most` is."""
        names = [f"{number:02d}" for number in range(7)]
        signs.let_go(*names)
        in_time(run(stream(map(signs.job, names)), most))
        assert signs.started() == names
        assert signs.ended() == set(names)

    def test_nothing_to_do_ends_at_once(self, run: RunJobs) -> None:
        """A workspace may be done. Repair: return when the stream ends, also before its first job."""
        in_time(run(stream(()), 4))

    def test_as_many_jobs_as_permitted_are_under_way_at_once(self, run: RunJobs, signs: Signs) -> None:
        """Places are used. Repair: start the next job while others run, as long as there is room."""

        async def scenario() -> None:
            running = asyncio.ensure_future(run(stream(map(signs.job, "abcde")), 3))
            await until(lambda: len(signs.started()) == 3)
            signs.let_go("b")  # one place is free, so one job more starts
            await until(lambda: len(signs.started()) == 4)
            signs.let_go(*"abcde")
            await running

        in_time(scenario())
        assert signs.ended() == set("abcde")

    def test_a_job_is_taken_only_when_there_is_room_for_it(self, run: RunJobs, signs: Signs) -> None:
        """A job that is taken is leased to this run, and waits for nobody. Repair: wait for room, then take the job."""
        places: list[int] = []  # that were taken, each time when a further job was asked for

        async def scenario() -> None:
            jobs = stream(map(signs.job, "abcdef"), at_each=lambda taken: places.append(taken - len(signs.ended())))
            running = asyncio.ensure_future(run(jobs, 2))
            for number, name in enumerate("abcdef"):
                await until(lambda number=number: len(signs.started()) >= min(number + 2, 6))  # type: ignore[misc]
                signs.let_go(name)
            await running

        in_time(scenario())
        assert len(places) == 7
        assert max(places) < 2

    def test_it_returns_when_all_jobs_have_ended(self, run: RunJobs, signs: Signs) -> None:
        """The run's leases end with it. Repair: wait for every job that was started."""

        async def scenario() -> None:
            running = asyncio.ensure_future(run(stream(map(signs.job, "ab")), 4))
            await until(lambda: len(signs.started()) == 2)
            signs.let_go("a")
            await until(lambda: signs.ended() == {"a"})
            assert not running.done()
            signs.let_go("b")
            await running

        in_time(scenario())
        assert signs.ended() == {"a", "b"}

    def test_jobs_go_on_while_the_next_one_is_waited_for(self, run: RunJobs, signs: Signs) -> None:
        """A case may become due when another has ended. Repair: do not hold jobs back until the stream goes on."""

        async def waiting() -> AsyncIterator[Job]:
            yield signs.job("a")
            await until(lambda: signs.ended() == {"a"})
            yield signs.job("b")

        signs.let_go("a", "b")
        in_time(run(waiting(), 2))
        assert signs.ended() == {"a", "b"}

    # --- how it ends ------------------------------------------------------------------------------------------------

    def test_where_waiting_raises_the_others_end_first_and_the_error_comes_out(
        self, run: RunJobs, signs: Signs
    ) -> None:
        """The index may go away. Repair: end what is under way, wait for that, and raise the same exception."""

        async def breaking() -> AsyncIterator[Job]:
            yield signs.job("a")
            yield signs.job("b")
            await until(lambda: len(signs.started()) == 2)
            raise Failed("no next job")

        with pytest.raises(Failed, match="no next job"):
            in_time(run(breaking(), 3))
        assert signs.alive() == set()

    def test_where_a_job_raises_the_others_end_first_and_the_error_comes_out(self, run: RunJobs, signs: Signs) -> None:
        """A job raises only to end the run. Repair: end the others, even while the next job is waited for."""
        if self.uses == "command":
            pytest.skip("capability: a program raises nothing")

        async def endless() -> AsyncIterator[Job]:
            yield signs.job("a")
            yield signs.broken_job("b")
            await until(lambda: len(signs.started()) == 2)
            signs.let_go("b")
            await asyncio.Event().wait()

        with pytest.raises(Failed, match="b"):
            in_time(run(endless(), 3))
        assert signs.alive() == set()
        assert signs.ended() == {"b"}

    def test_cancelling_it_reaches_every_job_and_leaves_none_behind(self, run: RunJobs, signs: Signs) -> None:
        """The second Ctrl-C ends at once. Repair: end jobs and their processes, wait for that, and let it through."""

        async def scenario() -> None:
            running = asyncio.ensure_future(run(stream(map(signs.job, "abc")), 3))
            await until(lambda: len(signs.started()) == 3)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert signs.alive() == set()

        in_time(scenario())
        assert signs.ended() == set()
