"""A run that is killed two hundred times at random: after some more requests and files, whatever it is at then."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from casebound.testing.killable import Commands
from casebound.testing.many_cases import ManyCases, accepted_of, bill
from casebound.testing.model_server import ModelServer

pytestmark = pytest.mark.faults

SEED = 20261201
KILLS = 200
AT_ONCE = 2  # workspaces, each with a process
JOBS = 8
MOST_EVENTS = 90  # files and requests until a kill; a workspace has about 230
WORDS = ["calm", "stumbling", "calm", "calm", "stumbling", "calm"]
# A kill may lose a call: so many must fit into the policy of a stage, else its case is blocked in the end.
PATIENT = "[llm.retry]\nmax_retries = 100\n"
RUN = ("run", "--jobs", str(JOBS), "--workspace", "workspace", "--format", "json")


@pytest.fixture
def imported(tmp_path: Path, make_server, settings_of) -> ManyCases:
    """Return a project whose cases are admitted; each copy of it gets a server of its own."""
    with make_server() as server:
        project = ManyCases.write(tmp_path / "imported", settings_of(server, llm=PATIENT), WORDS)
    assert project.run("import", "reports", "--workspace", "workspace").returncode == 0
    return project


def test_killed_two_hundred_times_every_case_ends_as_it_would_have(
    tmp_path: Path, imported: ManyCases, make_server, settings_of
) -> None:
    with make_server() as server:
        unkilled = own(imported, tmp_path / "unkilled", settings_of(server, llm=PATIENT))
        assert unkilled.run(*RUN).returncode == 0
        wanted, calls = accepted_of(unkilled.files()), len(server.log)

    def work(worker: int) -> int:
        random, kills, number = Random(SEED + worker), 0, 0
        with Commands(["casebound_llm_openai.provider"]) as commands:
            while kills < KILLS / AT_ONCE:
                number += 1
                with make_server() as server:
                    project = own(imported, tmp_path / f"{worker}-{number}", settings_of(server, llm=PATIENT))
                    killed, lost = kill_until_finished(commands, project, server, random)
                    assert_ended(project, server, lost, place=(worker, number))
                    kills += killed
        return kills

    def assert_ended(project: ManyCases, server: ModelServer, lost: int, place: tuple[int, int]) -> None:
        assert accepted_of(project.files()) == wanted, place
        assert project.verdicts() == {"holds"}, place
        paid = bill(project, server.counts())
        assert (paid.off_record, paid.repeated) == ((), ()), place
        assert paid.unknown <= lost, place
        assert paid.sent <= calls + lost, place

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(work, range(AT_ONCE))) >= KILLS


def own(imported: ManyCases, folder: Path, settings: str) -> ManyCases:
    project = imported.copy(folder)
    (folder / "casebound.toml").write_text(settings)
    return project


def kill_until_finished(commands: Commands, project: ManyCases, server: ModelServer, random: Random) -> tuple[int, int]:
    """Run and kill until a run ends by itself; return how often it was killed, and how many calls that lost at most."""
    kills, lost, before = 0, 0, project.files()
    while True:
        process = commands.start(project.order(*RUN))
        if not ends_before(commands, project, server, random.randint(0, MOST_EVENTS)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        last = commands.wait()
        if last.status != -signal.SIGKILL:  # it was as fast as the signal, or faster
            assert last.status == 0, last
            assert_kept(before, project.files())
            return kills, lost
        kills += 1
        after = project.files()
        assert_kept(before, after)
        in_flight = sum(attempt.kind is None and not attempt.arrived for attempt in project.attempts())
        assert in_flight <= JOBS
        lost, before = lost + in_flight, after


def ends_before(commands: Commands, project: ManyCases, server: ModelServer, events: int) -> bool:
    """Wait until so many more files and requests are there; tell whether the command has ended by itself before."""
    start = seen(project, server)
    while seen(project, server) - start < events:
        if commands.has_ended(within_s=0.005):
            return True
    return False


def seen(project: ManyCases, server: ModelServer) -> int:
    return len(server.log) + sum(len(files) for _, _, files in os.walk(project.workspace / "cases"))


def assert_kept(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    assert {path: after.get(path) for path in before} == before
