"""A live run may be killed at any moment: the model's own server sees no slot twice, and nothing unknown is called."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.bench import live
from casebound.bench.live_folder import LiveFolder
from casebound.bench.live_status import derive_status
from casebound.testing.faults import Countdown, kill_at_each, run_in_child, watch
from casebound.testing.live_trial import LiveTrial
from casebound.testing.scribe import Watched, logged

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a prepared run that nobody has executed."""
    trial = LiveTrial(tmp_path_factory.mktemp("prepared") / "trial")
    trial.folder.mkdir()
    trial.write_bundle()
    trial.prepare()
    return trial.folder


def copied(prepared: Path, folder: Path) -> LiveTrial:
    """Return a copy of the prepared run; its server logs into the copied folder's place."""
    shutil.copytree(prepared, folder)
    return LiveTrial(folder)


def execute(trial: LiveTrial, point: Countdown) -> None:
    execution = trial.execution()
    with watch(point):
        asyncio.run(live.execute(replace(execution, provider=Watched(execution.provider, point))))


@pytest.mark.spec("B-119", "B-120", "B-121", "B-122", "B-123")
def test_killed_at_any_point_and_restarted_no_slot_is_called_twice(tmp_path: Path, prepared: Path) -> None:
    log = LiveTrial(prepared).log  # where the frozen settings of the scribe say
    unkilled, points = copied(prepared, tmp_path / "unkilled"), Countdown()
    execute(unkilled, points)
    wanted, calls = unkilled.files(), logged(log)
    assert len(calls) == len(set(calls)) == 2
    created = {name.removeprefix("before ") for name in points.passed if name.startswith("before ") and "/" in name}
    assert {name for name in wanted if name.startswith("slots/")} == {name for name in created if "slots/" in name}

    def begin(at: int) -> LiveTrial:
        log.unlink(missing_ok=True)
        return copied(prepared, tmp_path / str(at))

    for name, trial in kill_at_each(points.passed, begin, execute):
        before, sent = trial.files(), logged(log)
        unknown = {slot.case_id for slot in status(trial).slots if slot.state == "unknown"}
        for _ in range(2):
            assert run_in_child(lambda trial=trial: execute(trial, Countdown())) == 0, name
        after, made = trial.files(), logged(log)
        assert {path: after.get(path) for path in before} == before, f"a file changed: {name}"
        assert max(Counter(made).values(), default=0) <= 1, f"a slot was called twice: {name}"
        found = status(trial)
        if unknown:
            assert (found.stopped, found.complete, made) == (True, False, sent), name
        else:
            assert (found.stopped, found.complete, made) == (False, True, calls), name
            assert evidence(after) == evidence(wanted), name
        assert found.captures is not None, name
        assert os.listdir(trial.folder / "run" / "tmp") == [], name


def status(trial: LiveTrial):
    return derive_status(LiveFolder(trial.folder / "run"))


def evidence(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files in which neither a random name nor a digest of one stands."""
    return {name: data for name, data in files.items() if not name.endswith("reservation.json")}
