"""What an index promises to many processes at once. Subclass `IndexRaces`, name it `Test…`, and say where it is."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from casebound.contracts.case import Admission
from casebound.store import Package
from casebound.testing.faults import start_child, wait_for
from casebound.testing.index_place import IndexPlace, cases, claim, leased
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.reindex import reindex
from casebound.workspace.row import DERIVED, CaseRow, derive_row

PROCESSES = 8
STEPS = ("case.json", "research/facts.json")  # which the state of a case goes by


@contextmanager
def started_together(number: int, work: Callable[[int], object]) -> Iterator[list[int]]:
    """Start processes that all begin `work` when the last one is there; the block has their ids, then they must end."""
    gate_reading, gate_writing = os.pipe()

    def wait_and_work(place: int) -> object:
        os.close(gate_writing)
        os.read(gate_reading, 1)
        return work(place)

    children = [start_child(lambda place=place: wait_and_work(place)) for place in range(number)]  # type: ignore[misc]
    os.close(gate_writing)
    os.close(gate_reading)
    try:
        yield children
    finally:
        statuses = [wait_for(child) for child in children]
    assert set(statuses) <= {0, -signal.SIGKILL}, statuses


class IndexRaces:
    """Many processes on one index."""

    @pytest.fixture
    def place(self) -> IndexPlace:
        """Return a workspace without an index yet."""
        raise NotImplementedError("say where the index is")

    def test_thirty_two_processes_open_a_new_index_at_once(self, place: IndexPlace) -> None:
        """None fails, and all find one index."""

        def add_a_row(number: int) -> None:
            with place.open(CaseRow(f"p-{number}", state="admitted")):
                pass

        with started_together(32, add_a_row):
            pass
        with place.open() as index:
            assert {row.package_id for row in index.rows()} == {f"p-{number}" for number in range(32)}

    def test_each_of_many_cases_is_claimed_by_exactly_one_process(self, place: IndexPlace, tmp_path: Path) -> None:
        """Five hundred cases, a few at a time."""
        with place.open(*cases(500)):
            pass

        def claim_all(number: int) -> None:
            owner, found = new_owner(), []
            with place.open() as index:
                while names := claim(index, owner, run=owner, limit=1 + number % 3):
                    found += names
                    done = [(CaseRow(name, state="interpreted", finished=True), None) for name in names]
                    index.release_all(owner, done)
            (tmp_path / f"claimed-{number}").write_text("\n".join(found))

        with started_together(PROCESSES, claim_all):
            pass
        claimed = [name for path in tmp_path.glob("claimed-*") for name in path.read_text().split()]
        assert sorted(claimed) == [row.package_id for row in cases(500)]

    def test_no_update_is_lost(self, place: IndexPlace) -> None:
        """Each process adds one to whatever row it gets, while others renew, hold and read."""
        rounds = 40
        with place.open(*cases(5)):
            pass

        def add(number: int) -> None:
            owner, left = new_owner(), rounds
            with place.open() as index:
                while left:
                    for name in self._taken(index, owner, f"{owner}-{left}"):
                        row = index.get(name)
                        assert row is not None
                        index.renew(owner)
                        index.release(owner, replace(row, calls=row.calls + 1))
                        left -= 1

        with started_together(4, add):
            pass
        with place.open() as index:
            assert sum(row.calls for row in index.rows()) == 4 * rounds
            assert leased(index) == []

    def _taken(self, index: Index, owner: str, run: str) -> list[str]:
        name = f"p-{random.randrange(5):05}"  # noqa: S311  # no secret
        if index.hold(owner, CaseRow(name)):
            return [name]
        return claim(index, owner, run=run, limit=1)

    def test_processes_that_are_killed_lose_no_case(self, place: IndexPlace) -> None:
        """Every case that they had leased is another's at once, and each one is finished in the end."""
        with place.open(*cases(300)):
            pass

        def work(number: int) -> None:
            owner = new_owner()
            with place.open() as index:
                while names := claim(index, owner, run=owner, limit=5):
                    for name in names:
                        index.release(owner, CaseRow(name, state="interpreted", finished=True))

        with started_together(PROCESSES, work) as children, place.open() as index:
            for least, child in zip(range(20, 300, 40), children[1:], strict=True):
                while index.states().get("interpreted", 0) < least:
                    pass
                os.kill(child, signal.SIGKILL)
        owner = new_owner()
        with place.open() as index:
            while names := claim(index, owner, limit=50):
                index.release_all(owner, [(CaseRow(name, state="interpreted", finished=True), None) for name in names])
            assert index.states() == {"interpreted": 300}
            assert leased(index) == []

    def test_reindex_beside_processes_at_work_undoes_nothing(self, place: IndexPlace) -> None:
        """It derives rows while others change the packages; in the end each row is what its package says."""
        packages = [place.workspace.package(row.package_id) for row in cases(12)]
        for package in packages:
            package.create("admission.json", _admission(package))
        with closing(reindex(place.workspace, place.settings, place.clock, ())) as index:
            assert index.states() == {"admitted": 12}

        def work(number: int) -> None:
            owner = new_owner()
            with place.open() as index:
                for step in STEPS:
                    for name in claim(index, owner, run=f"{owner}-{step}", limit=6):
                        package = place.workspace.package(name)
                        done = next((path for path in STEPS if not package.exists(path)), None)
                        if done is not None:
                            package.create(done, b"{}")
                        index.release(owner, derive_row(package))

        def make_again(number: int) -> None:
            for _ in range(8):
                reindex(place.workspace, place.settings, place.clock, ()).close()

        with started_together(6, lambda number: make_again(number) if number < 2 else work(number)):
            pass
        with place.open() as index:
            rows = {row.package_id: row for row in index.rows()}
        assert set(rows) == {package.root.name for package in packages}
        for package in packages:
            row, wanted = rows[package.root.name], derive_row(package)
            assert [getattr(row, name) for name in DERIVED] == [getattr(wanted, name) for name in DERIVED]


def _admission(package: Package) -> bytes:
    name = package.root.name
    admission = Admission(
        case_id=name, package_id=name, reader="text", file="report.txt", size=0, digest=f"sha256:{'0' * 64}"
    )
    return admission.to_bytes()
