"""A run may be killed at any moment: what is on disk is kept, what was paid for is not paid for again."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from functools import cache, partial
from pathlib import Path

import pytest
from casebound.progress import begun_revisions, derive_progress, latest_revision
from casebound.store import Package, Workspace
from casebound.store.layout import Revision
from casebound.testing.faults import Countdown, calls_in, kill_at_each, run_in_child, watch
from casebound.testing.inventory import Inventory
from casebound.testing.scripted import FixedClock
from casebound.testing.troubled import CASE, TroubledCase, accepted
from casebound.verification import verify_package
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.faults

TOLERATED = 1  # a call whose reply never reached the disk, once a kill


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, bytes], list[dict]]:
    """Return the points of a run that nothing disturbs, its files, and its calls."""
    case = TroubledCase.write(tmp_path_factory.mktemp("unkilled"))
    points = Countdown()
    case.advance(points)
    return points.passed, case.files(), calls_in(case.log)


def test_an_undisturbed_run_passes_enough_points(unkilled) -> None:
    points, files, calls = unkilled
    assert len(points) > 100
    assert len([name for name in points if name.startswith("before call")]) == len(calls) == 6
    created = {name.partition("cases/")[2].partition("/")[2] for name in points if name.startswith("before cases/")}
    assert created == set(files)  # so no file is made that a kill is not tried at


@pytest.mark.spec("A-003", "A-076", "A-092", "A-093", "A-094", "A-113l")
def test_killed_at_any_point_a_fresh_process_ends_in_the_same_bytes(tmp_path: Path, unkilled) -> None:
    points, wanted, calls = unkilled
    begin = partial(written, tmp_path)
    for name, case in kill_at_each(points, begin, TroubledCase.advance):
        before = case.files()
        case.inventory.clock.advance(36000)
        assert run_in_child(lambda case=case: case.advance().state != "interpreted") == 0, name
        assert_resumed(case, before, wanted, calls, kills=1, name=name)


def written(folder: Path, at: int) -> TroubledCase:
    return TroubledCase.write(folder / str(at))


def assert_resumed(
    case: TroubledCase, before: dict, wanted: dict, calls: list, *, kills: int, name: str, number: int = 1
) -> None:
    after = case.files()
    assert {path: after.get(path) for path in before} == before, f"a file changed: {name}"
    assert accepted(after) == accepted(wanted), name
    assert verify_package(case.root, case.inventory.host()).answer == "holds", name
    made = calls_in(case.log)
    assert len(made) <= len(calls) + TOLERATED * kills, name
    assert max(Counter((call["stage"], call["attempt"]) for call in made).values()) == 1, (
        f"an attempt was sent twice: {name}"
    )
    assert_nothing_answered_is_asked_again(case, made, name, Revision(number))
    Workspace(case.inventory.workspace).prepare()  # a case that was finished when it died needed no command more
    assert os.listdir(case.inventory.workspace / "tmp") == [], name


def assert_nothing_answered_is_asked_again(case: TroubledCase, made: list[dict], name: str, revision: Revision) -> None:
    package = Package(case.root)
    answered: set[tuple[str, str]] = set()
    for call in made:
        asked = (call["stage"], call["user"])
        assert asked not in answered, f"a reply that was on the disk was asked for again: {name}"
        folder = revision.attempt(call["stage"], call["attempt"])
        request = json.loads(package.require(f"{folder}/request.json"))
        assert request["user"] == call["user"], f"what was sent is not what was frozen: {name}"
        if package.exists(f"{folder}/native.bin"):
            answered.add(asked)


class Interrupted(BaseException):
    """Ends a run where a kill would, without a process of its own."""


@cache
def undisturbed(folder: Path) -> tuple[int, dict[str, bytes], list[dict]]:
    case = TroubledCase.write(folder)
    points = Countdown()
    case.advance(points)
    return len(points.passed), case.files(), calls_in(case.log)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 150), min_size=1, max_size=4))
def test_interrupted_again_and_again_it_ends_in_the_same_bytes(tmp_path_factory, stops: list[int]) -> None:
    case = TroubledCase.write(tmp_path_factory.mktemp("interrupted"))
    kills, before = 0, {}

    def end() -> None:
        raise Interrupted

    for stop in stops:
        try:
            case.advance(Countdown(stop, end))
        except Interrupted:
            kills += 1
        now = case.files()
        assert {path: now.get(path) for path in before} == before
        before = now
    case.advance()
    _, wanted, calls = undisturbed(tmp_path_factory.getbasetemp() / "undisturbed")
    assert_resumed(case, before, wanted, calls, kills=kills, name=f"stops {stops}")


# --- a revision -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished case; its model server's log is empty again."""
    case = TroubledCase.write(tmp_path_factory.mktemp("finished") / "case")
    case.advance()
    case.log.unlink()
    return case.inventory.folder


def copied(finished: Path, folder: Path) -> TroubledCase:
    return TroubledCase(Inventory(shutil.copytree(finished, folder), FixedClock()))


def revise(case: TroubledCase, point: Countdown) -> None:
    """Revise the case once, and go on until the new interpretation is finished."""
    if latest_revision(Package(case.root)).number == 1:
        with watch(point):
            case.project(case.model(point)).revise(CASE)
    case.advance(point)


@pytest.mark.spec("A-003", "A-104", "A-150c")
def test_a_revision_killed_at_any_point_is_gone_on_with_and_the_first_interpretation_never_changes(
    tmp_path: Path, finished: Path
) -> None:
    unkilled, points = copied(finished, tmp_path / "unkilled"), Countdown()
    first = unkilled.files()
    revise(unkilled, points)
    wanted, calls = unkilled.files(), calls_in(unkilled.log)
    created = {
        name.partition("cases/")[2].partition("/")[2] for name in points.passed if name.startswith("before cases/")
    }
    assert created == set(wanted) - set(first)
    assert len(calls) == 6
    for name, case in kill_at_each(points.passed, lambda at: copied(finished, tmp_path / str(at)), revise):
        before = case.files()
        assert {path: before.get(path) for path in first} == first, name
        case.inventory.clock.advance(36000)
        assert run_in_child(lambda case=case: revise(case, Countdown())) == 0, name
        assert_resumed(case, before, wanted, calls, kills=1, name=name, number=2)


def test_revise_repeated_after_a_kill_begins_no_further_one_while_the_last_can_go_on(
    tmp_path: Path, finished: Path
) -> None:
    unkilled, points = copied(finished, tmp_path / "unkilled"), Countdown()
    revise(unkilled, points)
    for at in range(0, len(points.passed), 5):
        case, name = copied(finished, tmp_path / str(at)), points.passed[at]
        assert run_in_child(lambda case=case, at=at: revise(case, Countdown(at))) == -signal.SIGKILL, name
        package, before = Package(case.root), case.files()
        lasts = derive_progress(package).state in ("interpreted", "blocked")
        following = latest_revision(package).number + lasts
        case.inventory.clock.advance(36000)
        case.project(case.model()).revise(CASE)
        assert [revision.number for revision in begun_revisions(package)] == list(range(1, following + 1)), name
        case.advance()
        after = case.files()
        assert {path: after.get(path) for path in before} == before, name
        assert verify_package(case.root, case.inventory.host()).answer == "holds", name
