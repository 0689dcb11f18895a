"""What an index promises on every database. Subclass `IndexSuite`, name it `Test…`, and say where the index is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casebound.testing.index_place import LEASE_S, IndexPlace, cases, claim, dead_owner, leased
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.row import CaseRow, RowState
from casebound.workspace.selection import Selection
from casebound.workspace.totals import Sums, sum_cases

WAITING: tuple[RowState, ...] = ("blocked", "review", "broken")


class IndexSuite:
    """Rows, claims and leases."""

    @pytest.fixture
    def place(self) -> IndexPlace:
        """Return a workspace without an index yet."""
        raise NotImplementedError("say where the index is")

    # --- rows -------------------------------------------------------------------------------------------------------

    def test_a_row_comes_back_as_it_was_written(self, place: IndexPlace) -> None:
        """Every column keeps what it is given, nulls and large numbers too."""
        row = CaseRow(
            "INC-1#x", "INC-1", "retry_pending", "LLM_TIMEOUT", "plan", place.time(5), False, 3, 0, 2**53 - 1, 2, 1
        )
        with place.open(row, CaseRow("empty")) as index:
            assert index.get("INC-1#x") == replace(row, changes=1)
            assert index.get("empty") == CaseRow("empty", changes=1)
            assert index.get("nothing") is None

    def test_rows_come_in_pages_in_the_order_of_package_ids(self, place: IndexPlace) -> None:
        """Code points decide, whatever the locale of a server is."""
        names = ["B", "a", "A-1", "A.1", "A1", "A_1", "Z", "a#2"]
        with place.open(*(CaseRow(name, state="built") for name in names), *cases(3, "review")) as index:
            found, after = [], ""
            while page := index.rows(state="built", after=after, limit=3):
                found += [row.package_id for row in page]
                after = found[-1]
            assert found == sorted(names)
            assert [row.package_id for row in index.rows(limit=2)] == ["A-1", "A.1"]

    def test_what_was_derived_is_added_and_does_not_replace_what_is_known(self, place: IndexPlace) -> None:
        """Else whoever derived a row long ago would undo what happened since; only a `new` row says nothing."""
        with place.open(CaseRow("p", state="planned"), CaseRow("q")) as index:
            index.upsert([CaseRow("p", state="admitted"), CaseRow("q", state="admitted")])
            assert [row.state for row in index.rows()] == ["planned", "admitted"]

    def test_a_row_that_was_read_replaces_what_it_was_read_as_and_nothing_newer(self, place: IndexPlace) -> None:
        """Compare and set, by the number of changes."""
        with place.open(CaseRow("p", state="planned")) as index:
            first, second = index.rows(), index.rows()
            index.upsert(replace(row, state="assessed") for row in first)
            index.upsert(replace(row, state="built") for row in second)
            assert [row.state for row in index.rows()] == ["assessed"]

    def test_a_removed_row_is_gone_unless_somebody_changed_it(self, place: IndexPlace) -> None:
        """What was claimed since it was read is somebody's."""
        with place.open(*cases(2)) as index:
            rows = index.rows()
            claim(index, limit=1)
            index.remove(rows)
            assert [row.package_id for row in index.rows()] == ["p-00000"]

    def test_sums_are_those_of_the_rows_and_what_was_not_reported_is_counted(self, place: IndexPlace) -> None:
        """A sum without its missing parts would look like a whole one."""
        spent = CaseRow("a", state="interpreted", finished=True, calls=4, input_tokens=7, output_tokens=5)
        with place.open() as index:
            assert (index.states(), sums(index)) == ({}, Sums(0, 0, 0, 0, 0, 0, 0))
            other = replace(spent, package_id="b", output_tokens=0, unreported_calls=1, unknown_calls=2, finished=False)
            index.upsert([spent, other])
            assert index.states() == {"interpreted": 2}
            assert sums(index) == Sums(
                cases=2, finished=1, calls=8, input_tokens=14, output_tokens=5, unreported_calls=1, unknown_calls=2
            )

    # --- claims -----------------------------------------------------------------------------------------------------

    def test_each_case_is_claimed_once_in_the_order_of_admission(self, place: IndexPlace) -> None:
        """Later batches come later, whatever their names are."""
        with place.open() as index:
            for name in ("c", "a", "b"):
                index.upsert([CaseRow(name, state="admitted")])
            assert claim(index, limit=2) == ["c", "a"]
            assert claim(index, limit=2) == ["b"]
            assert claim(index) == []

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            (Selection(), ["new", "admitted", "built", "researched", "planned", "looked_up", "assessed", "phases"]),
            (Selection(stop_after="admission"), []),
            (Selection(stop_after="construction"), ["new", "admitted"]),
            (Selection(stop_after="research"), ["new", "admitted", "built"]),
            (
                Selection(stop_after="interpretation"),
                ["new", "admitted", "built", "researched", "planned", "looked_up", "assessed"],
            ),
            (Selection(package_ids=("built", "blocked", "finished")), ["built"]),
            (Selection(case_ids=("c",), package_ids=("planned",)), ["planned", "phases"]),
            (Selection(case_ids=("c",), stop_after="research"), []),
        ],
    )
    def test_only_what_is_left_to_do_is_claimed(
        self, place: IndexPlace, selection: Selection, expected: list[str]
    ) -> None:
        """A case that waits for a person is never taken up by itself."""
        states: tuple[RowState, ...] = ("new", "admitted", "built", "researched", "planned", "looked_up", "assessed")
        rows = [CaseRow(state, state=state) for state in (*states, *WAITING)]
        rows += [CaseRow("phases", "c", "interpreted"), CaseRow("finished", "c", "interpreted", finished=True)]
        with place.open() as index:
            for row in rows:
                index.upsert([row])
            assert claim(index, selection=selection) == expected

    def test_a_retry_is_claimed_when_its_time_has_come_by_the_same_run_too(self, place: IndexPlace) -> None:
        """Not before; and never by a run that it has stopped."""
        owner = new_owner()
        waits = CaseRow("p", state="retry_pending", code="LLM_TIMEOUT", stage="plan", retry_at=place.time(60))
        with place.open(waits) as index:
            assert claim(index) == []
            assert index.next_due("run", Selection()) == place.time(60)
            assert index.next_due("run", Selection(stop_after="research")) is None
            assert index.next_due("run", Selection(package_ids=("q",))) is None
            place.clock.advance(60)
            assert claim(index, selection=Selection(stop_after="research")) == []
            for _ in range(2):
                assert claim(index, owner) == ["p"]
                index.release(owner, replace(waits, retry_at=place.time(0)))
            claim(index, owner)
            index.release(owner, replace(waits, retry_at=place.time(0)), stopped="BUDGET_REACHED")
            assert claim(index) == []
            assert index.next_due("run", Selection()) is None
            assert claim(index, run="next") == ["p"]

    def test_what_a_run_has_left_as_it_was_is_the_next_runs(self, place: IndexPlace) -> None:
        """Else a run would try the same refused case for ever."""
        owner = new_owner()
        with place.open(*cases(1)) as index:
            claim(index, owner)
            index.release(owner, cases(1)[0], stopped="BINDING_CHANGED")
            assert claim(index) == []
            row = index.get("p-00000")
            assert row is not None
            assert (row.stopped, row.last_run, row.lease_owner, row.lease_until) == (
                "BINDING_CHANGED",
                "run",
                None,
                None,
            )
            assert claim(index, run="next") == ["p-00000"]

    # --- leases -----------------------------------------------------------------------------------------------------

    def test_a_lease_ends_with_its_time_unless_it_is_renewed(self, place: IndexPlace) -> None:
        """A process that hangs, or is on another machine, loses it by time alone."""
        first, second = new_owner(), new_owner()
        with place.open(*cases(2)) as index:
            assert claim(index, first, limit=1) == ["p-00000"]
            assert claim(index, second, limit=1) == ["p-00001"]
            place.clock.advance(LEASE_S - 1)
            index.renew(first)
            assert claim(index, run="next") == []
            place.clock.advance(1)
            assert claim(index, run="next") == ["p-00001"]
            assert leased(index) == ["p-00000", "p-00001"]

    def test_nobody_is_given_what_he_has_already(self, place: IndexPlace) -> None:
        """A run that was late to renew would else begin a case that it is working on."""
        owner = new_owner()
        with place.open(*cases(1)) as index:
            claim(index, owner)
            place.clock.advance(LEASE_S)
            assert claim(index, owner, run="next") == []
            assert claim(index, run="next") == ["p-00000"]

    def test_a_clock_that_was_set_back_lets_no_lease_last_for_ever(self, place: IndexPlace) -> None:
        """Further ahead than any lease lasts is as good as past."""
        with place.open(*cases(1)) as index:
            assert claim(index) == ["p-00000"]
            start = place.clock.now()
            place.clock.advance(3600)
            assert claim(index) == ["p-00000"]
            place.clock.set_now(start)
            assert leased(index) == []
            assert claim(index) == ["p-00000"]
            assert claim(index) == []

    def test_the_lease_of_a_dead_process_is_free_at_once_whatever_its_row_shows(self, place: IndexPlace) -> None:
        """It may have moved on without its row; `--case-id` still holds, and phases do not matter."""
        with place.open(*cases(1), CaseRow("held", "c-9", "interpreted", finished=True)) as index:
            dead = dead_owner()
            assert claim(index, dead) == ["p-00000"]
            assert index.hold(dead, CaseRow("held"))
            assert [row.package_id for row in index.idle(states=())] == ["held", "p-00000"]
            assert claim(index, selection=Selection(case_ids=("c-9",))) == ["held"]
            assert claim(index) == ["p-00000"]
            assert claim(index) == []
            assert index.idle() == []

    def test_a_case_whose_lease_was_lost_is_left_to_whoever_has_it_now(self, place: IndexPlace) -> None:
        """Two owners never write one row."""
        slow, quick = new_owner(), new_owner()
        with place.open(*cases(1)) as index:
            claim(index, slow)
            place.clock.advance(LEASE_S)
            claim(index, quick)
            index.release(slow, CaseRow("p-00000", state="planned"))
            index.renew(slow)
            index.drop(slow)
            row = index.get("p-00000")
            assert row is not None
            assert (row.state, row.lease_owner) == ("admitted", quick)
            index.release(quick, CaseRow("p-00000", state="assessed"))
            index.release(slow, CaseRow("p-00000", state="interpreted"))  # nobody's now: its last owner knows best
            assert [row.state for row in index.rows()] == ["interpreted"]

    def test_many_rows_are_released_at_once_and_missing_ones_added(self, place: IndexPlace) -> None:
        """An index that was made anew while somebody worked still gets what was done."""
        owner = new_owner()
        with place.open(*cases(600)) as index:
            found = claim(index, owner)
            index.release_all(owner, [(CaseRow(name, state="built"), None) for name in (*found, "lost")])
            assert index.states() == {"built": 601}
            assert leased(index) == []
            index.release_all(owner, [])

    def test_one_case_is_held_whatever_its_state_and_by_one_only(self, place: IndexPlace) -> None:
        """What `resume` and `revise` do beside a run."""
        owner = new_owner()
        with place.open(CaseRow("p", state="blocked")) as index:
            assert index.hold(owner, CaseRow("p"))
            assert not index.hold(new_owner(), CaseRow("p"))
            assert index.hold(owner, CaseRow("q", state="admitted"))
            assert claim(index) == []
            index.release(owner, CaseRow("p", state="planned"))
            assert claim(index) == ["p"]
            index.drop(owner)
            assert claim(index) == ["q"]


def sums(index: Index) -> Sums:
    """Return what all cases of an index come to."""
    with index.database.reading() as connection:
        return sum_cases(connection)
