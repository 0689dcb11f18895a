"""Killed between a failure and the fallback's reply, a fresh process goes on with the answerer whose turn it is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.llm.attempts import AttemptLog
from casebound.progress import latest_revision
from casebound.testing.faults import Countdown, LoggingModel, Point, calls_in, run_in_child, watch
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_model import SEARCHES
from casebound.verification import verify_package

pytestmark = pytest.mark.faults

SETTINGS = settings_text(model="first", llm='fallback = ["second"]\n[llm.profile.second]\nmodel = "second"\n')


class UsedUp(LoggingModel):
    """The account of the model `first` is used up; that of any other is not."""

    async def send(self, request: ModelRequest) -> NativeReply:
        """Log and answer, or refuse."""
        native = await super().send(request)
        if request.model == "first" and request.stage == "plan":
            raise ProviderError("LLM_QUOTA", retryable=False, found="a test")
        return native


def advance(inventory: Inventory, point: Point) -> str:
    with watch(point):
        model = UsedUp(inventory.folder / "server.log", point=point, searches=SEARCHES)
        return inventory.resolve(model).state


def test_killed_at_any_point_of_the_move_it_ends_with_the_fallback(tmp_path: Path) -> None:
    whole = Countdown()
    assert advance(write_inventory(tmp_path / "whole", settings=SETTINGS), whole) == "interpreted"
    start, end = whole.passed.index("before call plan 1"), whole.passed.index("behind call plan 2")
    assert end - start > 5
    for at in range(start, end + 2):
        name = whole.passed[at]
        inventory = write_inventory(tmp_path / str(at), settings=SETTINGS)
        status = run_in_child(lambda at=at, inventory=inventory: advance(inventory, Countdown(at)) == "interpreted")
        assert status == -signal.SIGKILL, name
        assert advance(inventory, Countdown()) == "interpreted", name
        package = inventory.package()
        log = AttemptLog(package, latest_revision(package), "plan")
        asked = [package.load(log.path(number, "request.json"), ModelRequest).model for number in log.numbers()]
        assert asked == sorted(asked), name  # once it has moved on, it never goes back
        assert [attempt.outcome.code for attempt in log.all() if attempt.outcome].count("LLM_QUOTA") == 1, name
        assert len([call for call in calls_in(inventory.folder / "server.log") if call["stage"] == "plan"]) <= 3, name
        assert verify_package(package.root, inventory.host()).answer == "holds", name
