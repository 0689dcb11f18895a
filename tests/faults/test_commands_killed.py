"""Real commands on a workspace of several cases, killed at every kind of point between two writes; started again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from casebound.testing.faults import kind_of
from casebound.testing.killable import Commands, Ended, Order
from casebound.testing.loopback import Response
from casebound.testing.many_cases import ManyCases, accepted_of, bill
from casebound.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.faults

HOUR = 3600
WORDS = ["stumbling", "absent", "locked"]
IN_FLIGHT = ["plan", "assessment", "interpretation"]


@dataclass(frozen=True)
class Step:
    """A command of the way that every case goes to its end."""

    arguments: tuple[str, ...]
    ahead_s: float
    status: int
    troubled: bool = False  # the server's troubles are met here


AT = ("--workspace", "workspace")
STEPS = [
    Step(("import", "reports", *AT), 0, 0),
    Step(("run", "--jobs", "1", *AT), 0, 1, troubled=True),
    Step(("run", "--jobs", "1", *AT), HOUR, 1),
    Step(("resume", "--due", *AT), HOUR, 0),
]


@pytest.fixture(scope="module")
def way(tmp_path_factory, make_server, settings_of) -> Way:
    return Way.walk(tmp_path_factory.mktemp("way"), make_server, settings_of)


@dataclass
class Way:
    """The steps as nothing disturbs them."""

    folder: Path
    points: list[list[str]]
    log: list[Asked]
    files: dict[str, bytes]
    make_server: Callable[[], ModelServer]
    settings_of: Callable[[ModelServer], str]

    @classmethod
    def walk(cls, folder, make_server, settings_of) -> Way:
        with troubled(make_server(), True) as server, Commands(["casebound_llm_openai.provider"]) as commands:
            project, points = ManyCases.write(folder / "project", settings_of(server), WORDS), []
            for number, step in enumerate(STEPS):
                project.copy(folder / f"before-{number}")
                ended = commands.run(project.order(*step.arguments, ahead_s=step.ahead_s))
                assert ended.status == step.status, ended
                points.append(project.points.read_text().splitlines())
                project.points.unlink()
            return cls(folder, points, server.log, project.files(), make_server, settings_of)

    @contextmanager
    def begin(self, number: int, folder: Path) -> Iterator[tuple[ManyCases, ModelServer]]:
        """Return a copy of the project as it stands before a step, with a server of its own."""
        with troubled(self.make_server(), STEPS[number].troubled) as server:
            project = ManyCases(self.folder / f"before-{number}").copy(folder)
            (folder / "casebound.toml").write_text(self.settings_of(server))
            yield project, server

    def go_on(self, commands: Commands, project: ManyCases, number: int) -> None:
        """Take a copy that was killed in a step to the end."""
        # What a killed `resume --due` has resumed is no longer blocked: it goes on with the next run.
        for step in (*STEPS[number:], *(STEPS[2:3] if number == 3 else [])):
            ended = commands.run(project.order(*step.arguments, ahead_s=step.ahead_s))
            assert ended.status in (0, 1), ended


@contextmanager
def troubled(server: ModelServer, troubles: bool) -> Iterator[ModelServer]:
    with server:
        if troubles:
            server.trouble("absent", "assessment", Response(status=503))
            server.trouble("locked", "plan", Response(status=401))
        yield server


@dataclass(frozen=True)
class Kill:
    """One kill: in a step, at the first point of a kind, or while the server holds the first request of a task."""

    step: int
    name: str
    in_flight: bool = False


# Everything that the commands write, in the order of the way: a write without its place here turns the first test red.
PLACES = set(
    """
index file
package.json
source/report.md
admission.json
index upsert
index claim
build.json
case.json
research/captures/DIGEST.json
research/facts.json
entity-resolution/input.json
input.json
entity-resolution/attempts/plan-N/request.json
entity-resolution/attempts/plan-N/native.json
entity-resolution/attempts/plan-N/native.bin
entity-resolution/attempts/plan-N/reply.json
entity-resolution/attempts/plan-N/outcome.json
entity-resolution/feedback-plan-N.json
entity-resolution/plan.json
entity-resolution/captures/DIGEST.json
entity-resolution/candidates.json
entity-resolution/attempts/assessment-N/request.json
entity-resolution/attempts/assessment-N/native.json
entity-resolution/attempts/assessment-N/native.bin
entity-resolution/attempts/assessment-N/reply.json
entity-resolution/attempts/assessment-N/outcome.json
entity-resolution/feedback-assessment-N.json
entity-resolution/assessment.json
context.json
attempts/interpretation-N/request.json
attempts/interpretation-N/native.json
attempts/interpretation-N/native.bin
attempts/interpretation-N/reply.json
attempts/interpretation-N/outcome.json
feedback-interpretation-N.json
interpretation.json
summary.md
hypothesis-context.json
seal.json
index release_all
events/N.json
index drop
""".strip().splitlines()
)


def test_every_write_of_these_commands_has_a_point_that_a_kill_is_tried_at(way: Way) -> None:
    passed = [name for points in way.points for name in points]
    places = {kind_of(name).removeprefix("behind ") for name in passed if name.startswith("behind ")}
    assert places == PLACES
    named = {name.removeprefix("behind cases/") for name in passed}
    assert set(way.files) <= named
    beside = {path.name for path in (way.folder / "project/workspace").iterdir()}
    assert beside - {"index.sqlite-wal", "index.sqlite-shm"} == {"cases", "tmp", "index.sqlite"}


def kills(way: Way) -> list[Kill]:
    """Return one kill at each kind of point, where it is first passed, and one in flight for each task."""
    found: dict[str, Kill] = {}
    for step, points in enumerate(way.points):
        for name in dict.fromkeys(map(kind_of, points)):
            if not name.startswith("before "):  # behind what was written last, nothing has changed yet
                found.setdefault(f"{name} {step if 'events/' in name else ''}", Kill(step, name))
    return [*found.values(), *(Kill(1, task, in_flight=True) for task in IN_FLIGHT)]


@pytest.mark.spec("A-003", "A-103")
def test_killed_at_every_kind_of_point_and_started_again_every_case_ends_as_it_would_have(way: Way) -> None:
    tried = kills(way)
    assert len({kill.name for kill in tried}) >= 60

    def work(share: list[tuple[int, Kill]]) -> None:
        with Commands(["casebound_llm_openai.provider"]) as commands:
            for number, kill in share:
                with way.begin(kill.step, way.folder / f"kill-{number}") as (project, server):
                    assert_survived(way, commands, project, server, kill)

    with ThreadPoolExecutor(2) as pool:
        numbered = list(enumerate(tried))
        list(pool.map(work, (numbered[::2], numbered[1::2])))


def assert_survived(way: Way, commands: Commands, project: ManyCases, server: ModelServer, kill: Kill) -> None:
    step = STEPS[kill.step]
    order = project.order(*step.arguments, ahead_s=step.ahead_s, end_at=None if kill.in_flight else kill.name)
    ended = run_until_asked(commands, order, server, kill.name) if kill.in_flight else commands.run(order)
    assert ended.status == -signal.SIGKILL, (kill, ended)
    before = project.files()
    way.go_on(commands, project, kill.step)
    after = project.files()
    assert {path: after.get(path) for path in before} == before, kill
    assert accepted_of(after) == accepted_of(way.files), kill
    assert project.verdicts() == {"holds"}, kill
    assert os.listdir(project.workspace / "tmp") == [], kill
    paid = bill(project, server.counts())
    assert (paid.off_record, paid.repeated) == ((), ()), kill
    assert paid.unknown <= 1, kill


def run_until_asked(commands: Commands, order: Order, server: ModelServer, task: str) -> Ended:
    """Run a command that is killed while the server holds the first request of a task."""
    known, process = threading.Event(), []

    def arrived(asked: Asked) -> None:
        if asked.task == task:
            server.arrived = lambda asked: None
            assert known.wait(30)
            os.kill(process[0], signal.SIGKILL)

    server.arrived = arrived
    process.append(commands.start(order))
    known.set()
    return commands.wait()
