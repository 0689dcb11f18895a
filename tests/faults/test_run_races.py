"""Several processes on one workspace: they share its cases, each is one's at a time, and each call is paid for once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from casebound.strict_json import parse_json
from casebound.testing.many_cases import accepted_of, bill, ended
from casebound.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.faults

AT = ("--workspace", "workspace")
CASES = 60


def run_command(jobs: int) -> tuple[str, ...]:
    return ("run", "--jobs", str(jobs), *AT, "--format", "json")


class Overlaps:
    """Watches the server: how many requests of one case are in flight at once, and whether several processes asked."""

    def __init__(self, server: ModelServer) -> None:
        self._lock = threading.Lock()
        self._flying: Counter[str] = Counter()
        self.most = 0
        server.arrived, server.answered = self._arrived, self._answered

    def _arrived(self, asked: Asked) -> None:
        with self._lock:
            self._flying[asked.case] += 1
            self.most = max(self.most, self._flying[asked.case])

    def _answered(self, asked: Asked) -> None:
        with self._lock:
            self._flying[asked.case] -= 1


@pytest.mark.spec("A-100")
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_sixty_cases_and_each_call_is_made_once(project, processes: int) -> None:
    many, server = project("shared", ["calm"] * CASES)
    assert many.run("import", "reports", *AT).returncode == 0
    overlaps = Overlaps(server)
    started = [many.start(*run_command(4)) for _ in range(processes)]
    finished = [ended(process, 400) for process in started]
    assert {one.returncode for one in finished} <= {0, 1}, finished  # 1: another one still had a case
    summaries = [parse_json(one.stdout.encode()) for one in finished]
    assert sum(summary["refused_total"] for summary in summaries) == 0, summaries
    assert many.states() == {"interpreted": CASES}
    assert sum(summary["dispatches"] for summary in summaries) == len(server.log) == 3 * CASES
    assert all(summary["dispatches"] for summary in summaries), summaries  # nobody stood by
    assert overlaps.most == 1
    paid = bill(many, server.counts())
    assert (paid.unknown, paid.off_record, paid.repeated) == (0, (), ())
    assert many.verdicts() == {"holds"}


def test_every_other_command_works_beside_a_run(project) -> None:
    many, server = project("beside", ["calm"] * 16, timeout_s=600)
    assert many.run("import", "reports", *AT).returncode == 0
    go_on, arrived = threading.Event(), threading.Semaphore(0)

    def hold(asked: Asked) -> None:
        arrived.release()
        assert go_on.wait(300)

    server.arrived = hold
    running = many.start(*run_command(2))
    assert all(arrived.acquire(timeout=120) for _ in range(2))  # both of its cases are known: no other is its own
    held = {asked.case for asked in server.log}
    others = [case for case in many.progress() if case not in held][:2]
    server.arrived = lambda asked: None if asked.case in others or asked.case == "INC-16" else hold(asked)
    commands = [
        ("status", *AT, "--format", "json"),
        ("import", "reports", *AT),
        ("reindex", *AT),
        ("resolve", many.reports[-1], *AT),
        ("resume", "--due", *AT),
        ("status", *AT),
        ("resolve", f"reports/{int(others[0][4:]):04d}.md", *AT),
        ("run", "--package-id", others[1], *AT),
    ]
    with ThreadPoolExecutor(len(commands)) as pool:
        done = list(pool.map(lambda arguments: many.run(*arguments, timeout_s=300), commands))
    assert [one.returncode for one in done] == [0] * len(commands), done
    busy = many.run("resolve", f"reports/{int(min(held)[4:]):04d}.md", *AT)
    assert (busy.returncode, "CASE_BUSY" in busy.stdout + busy.stderr) == (1, True), busy
    go_on.set()
    assert ended(running, 300).returncode in (0, 1)
    last_run = many.run(*run_command(2))
    assert last_run.returncode == 0, last_run
    assert many.states() == {"interpreted": 16}
    paid = bill(many, server.counts())
    assert (paid.sent, paid.unknown, paid.off_record, paid.repeated) == (3 * 16, 0, (), ())
    assert many.verdicts() == {"holds"}


def test_thirty_two_commands_at_once_begin_on_a_workspace_that_has_no_index_yet(project) -> None:
    """Fault 28: none fails for a locked database."""
    many, server = project("crowd", ["calm"] * 4)
    assert many.run("resolve", *many.reports, *AT, "--stop-after", "admission").returncode == 0
    assert not (many.workspace / "index.sqlite").exists()
    started = [many.start(*(run_command(1) if number % 4 == 0 else ("status", *AT))) for number in range(32)]
    finished = [ended(process, 500) for process in started]
    failed = [one for number, one in enumerate(finished) if one.returncode not in ((0, 1) if number % 4 == 0 else (0,))]
    assert failed == []
    assert many.states() == {"interpreted": 4}
    assert len(server.log) == 12
    assert accepted_of(many.files())
