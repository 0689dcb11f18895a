"""A proposal may be killed at any moment: what arrived is kept, what was paid for is not paid for again."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.testing.faults import Countdown, run_in_child, watch
from casebound.testing.inventory import Inventory
from casebound.testing.scripted import FixedClock

pytestmark = pytest.mark.faults

KILLED = -signal.SIGKILL


def go_on(pair, point):
    """Propose, then decide; whatever a killed run left is gone on with."""
    with watch(point):
        scripted = ("no JSON",) if not pair.calls() else ()
        link = pair.journal(pair.model(*scripted, point=point)).propose(*pair.sides)
        if link.suggestion and not link.decisions():
            pair.journal().decide(link.name, "accepted", rationale="looked at it", by="Kim")
        return 0 if link.suggestion and link.decisions() else 1


def copied(finished: Path, folder: Path, pair):
    return replace(pair, inventory=Inventory(shutil.copytree(finished, folder), FixedClock()))


def test_killed_at_any_point_a_fresh_journal_finishes_the_link(finished, pair, tmp_path):
    points = Countdown()
    assert go_on(pair, points) == 0
    wanted = pair.files()
    created = {name.partition("links/")[2] for name in points.passed if name.startswith("before links/")}
    assert created == set(wanted)  # so no file is made that a kill is not tried at
    for at, name in enumerate(points.passed):
        each = copied(finished, tmp_path / str(at), pair)
        assert run_in_child(lambda each=each, at=at: go_on(each, Countdown(at))) == KILLED, name
        before = each.files()
        assert go_on(each, Countdown()) == 0, name
        after = each.files()
        assert {path: after[path] for path in before} == before, f"a file changed: {name}"
        assert_paid_once(each, after, name)
        assert each.verify(next(each.journal().links())).answer == "holds", name
        assert os.listdir(each.inventory.workspace / "tmp") == [], name


def assert_paid_once(pair, files, name):
    calls = pair.calls()
    assert max(Counter(call["attempt"] for call in calls).values()) == 1, f"an attempt was sent twice: {name}"
    assert len(calls) <= 3, f"more than the one lost call was sent again: {name}"
    (link,) = {path.partition("/")[0] for path in files}
    for call in calls:
        request = json.loads(files[f"{link}/attempts/entity_link-{call['attempt']:04d}/request.json"])
        assert request["user"] == call["user"], f"what was sent is not what was frozen: {name}"
    answered = [path for path in files if path.endswith("native.bin")]
    unknown = [path for path in files if path.endswith("outcome.json") and json.loads(files[path])["kind"] == "unknown"]
    assert len(calls) - len(answered) in (0, 1), name
    assert len(unknown) <= 1, name
