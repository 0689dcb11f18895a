"""Who leases a case, who is dead, and that no order of events leases a case to two or loses one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from casebound.testing.faults import start_child, wait_for
from casebound.testing.index_place import LEASE_S, IndexPlace, Worker, cases, claim, dead_owner
from casebound.workspace.lease import is_dead, new_owner
from casebound.workspace.leases import Leases as RunLeases
from casebound.workspace.row import CaseRow
from casebound.workspace.selection import Selection
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker()
    yield found
    found.kill()


def test_an_owner_lives_as_long_as_its_process(worker: Worker) -> None:
    assert not is_dead(new_owner())
    assert not is_dead(worker.owner)
    worker.kill()
    assert is_dead(worker.owner)
    assert is_dead(dead_owner())


def test_a_process_that_has_ended_is_dead_before_anybody_has_asked_how() -> None:
    reading, writing = os.pipe()
    child = start_child(lambda: os.read(reading, 1) and 0)
    owner = new_owner(child)
    os.write(writing, b"x")
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert is_dead(owner)
    wait_for(child)
    os.close(reading)
    os.close(writing)


def test_another_process_of_the_same_number_is_not_the_owner(worker: Worker) -> None:
    assert is_dead(re.sub(r":([0-9]+):(?=[0-9a-f]+$)", ":1:", worker.owner))


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (r":[^:/]+:(?=[0-9]*/)", ":another-start-of-the-machine:"),
        (r":[0-9]*/", ":1/"),
        (r"/[0-9]+:", f"/{'9' * 20}:"),
        (r"/[0-9]+:", f"/{'9' * 5000}:"),
        (r"^.*$", "somebody"),
    ],
    ids=["another boot", "another namespace", "no process's number", "no number at all", "no name"],
)
def test_nobody_knows_of_a_process_elsewhere_whether_it_lives(part: str, other: str) -> None:
    owner = re.sub(part, other, dead_owner())
    assert other in owner
    assert not is_dead(owner)


def test_no_two_owners_have_one_name() -> None:
    assert len({new_owner() for _ in range(100)}) == 100


def test_cases_that_end_in_one_turn_of_the_loop_are_given_back_in_one_transaction(tmp_path: Path, monkeypatch) -> None:
    with IndexPlace.write(tmp_path).open(*cases(5)) as index:
        written: list[int] = []
        release_all = index.release_all

        def noted(owner: str, rows: Sequence[tuple[CaseRow, str | None]]) -> None:
            written.append(len(rows))
            release_all(owner, rows)

        async def end_all() -> None:
            leases = RunLeases(index, new_owner(), lease_s=LEASE_S, derive=CaseRow)
            names = await leases.claim(5, Selection())
            await asyncio.gather(*(leases.release(CaseRow(name, state="review"), None) for name in names))
            assert await leases.held() == []

        monkeypatch.setattr(index, "release_all", noted)
        asyncio.run(end_all())
        assert written == [5]
        assert {row.state for row in index.rows()} == {"review"}


class Leases(RuleBasedStateMachine):
    """Workers that claim, renew, finish, give up and die, under a clock that goes forward and back.

    What the index must hold is kept beside it: who has which case, and until when he may rely on it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rest = ExitStack()
        self.place = IndexPlace.write(Path(self.rest.enter_context(TemporaryDirectory())))
        self.index = self.rest.enter_context(self.place.open(*cases(6)))
        self.workers: list[Worker] = []
        self.leases: dict[str, tuple[Worker, float]] = {}
        self.finished: set[str] = set()
        self.runs = 0

    @property
    def now(self) -> float:
        return self.place.clock.now().timestamp()

    @initialize()
    def start(self) -> None:
        self.workers = [Worker() for _ in range(3)]

    @rule(number=st.integers(0, 2), limit=st.integers(1, 4))
    def claim(self, number: int, limit: int) -> None:
        worker = self.workers[number]
        if worker.lives:
            self.runs += 1
            for name in claim(self.index, worker.owner, run=str(self.runs), limit=limit):
                self.take(name, worker)

    @rule(number=st.integers(0, 2), case=st.integers(0, 5))
    def hold(self, number: int, case: int) -> None:
        worker, name = self.workers[number], f"p-{case:05}"
        if worker.lives and self.index.hold(worker.owner, CaseRow(name)):
            self.take(name, worker)

    def take(self, name: str, worker: Worker) -> None:
        if name in self.leases:
            owner, until = self.leases[name]
            assert not owner.lives or not self.now < until <= self.now + LEASE_S
        self.leases[name] = (worker, self.now + LEASE_S)

    @rule(number=st.integers(0, 2), case=st.integers(0, 5), finished=st.booleans())
    def release(self, number: int, case: int, finished: bool) -> None:
        worker, name = self.workers[number], f"p-{case:05}"
        state = "interpreted" if finished else "planned"
        if worker.lives and self.leases.get(name, (worker, 0))[0] is worker:
            self.index.release(worker.owner, CaseRow(name, "c-0", state, finished=finished))
            self.leases.pop(name, None)
            (self.finished.add if finished else self.finished.discard)(name)
        elif worker.lives:  # it has lost the lease: nothing happens
            self.index.release(worker.owner, CaseRow(name, state="review"))

    @rule(number=st.integers(0, 2))
    def renew(self, number: int) -> None:
        worker = self.workers[number]
        if worker.lives:
            self.index.renew(worker.owner)
            mine = [name for name, (owner, _) in self.leases.items() if owner is worker]
            self.leases.update({name: (worker, self.now + LEASE_S) for name in mine})

    @rule(number=st.integers(0, 2))
    def drop(self, number: int) -> None:
        worker = self.workers[number]
        if worker.lives:
            self.index.drop(worker.owner)
            self.leases = {name: lease for name, lease in self.leases.items() if lease[0] is not worker}

    @rule(number=st.integers(0, 2))
    def crash(self, number: int) -> None:
        self.workers[number].kill()

    @precondition(lambda self: not all(worker.lives for worker in self.workers))
    @rule()
    def start_again(self) -> None:
        self.workers = [worker if worker.lives else Worker() for worker in self.workers]

    @rule(seconds=st.sampled_from([1, LEASE_S - 1, LEASE_S, 3600, -1, -LEASE_S, -3600]))
    def move_the_clock(self, seconds: int) -> None:
        self.place.clock.set_now(self.place.clock.now() + timedelta(seconds=seconds))

    @invariant()
    def rows_say_who_has_what(self) -> None:
        rows = self.index.rows()
        assert {row.package_id: row.lease_owner for row in rows if row.lease_owner} == {
            name: worker.owner for name, (worker, _) in self.leases.items()
        }
        assert {row.package_id for row in rows if row.finished} == self.finished

    def teardown(self) -> None:
        with self.rest:
            for worker in self.workers:
                worker.kill()
            # Nothing is lost: whatever happened, somebody who lives gets every case that is left to do.
            found = claim(self.index, run="last")
            assert set(found) == {f"p-{n:05}" for n in range(6)} - (self.finished - set(self.leases))


TestLeases = Leases.TestCase
TestLeases.settings = examples(max_examples=30, stateful_step_count=25, deadline=None)
