"""What a run does while calls wait for their turn, and what becomes of a call of which nobody knows."""

from __future__ import annotations

import asyncio

import pytest
from casebound.errors import ProviderError
from casebound.gate import INTERRUPTED
from casebound.progress import derive_progress
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.runs import HeldModel, execute, until
from casebound.testing.scripted import RaisingProvider

HOLD = 'unknown_calls = "hold"\n'


@pytest.fixture
def inventory(tmp_path):
    inventory = write_inventory(tmp_path / "project")
    text = inventory.report.read_text(encoding="utf-8")
    for number in range(6):
        inventory.report.write_text(text.replace("INC-7", f"INC-{number}"), encoding="utf-8")
        inventory.resolve(RaisingProvider(), stop_after="construction")
    return inventory


def requests_on_disk(inventory):
    return len(list(inventory.workspace.rglob("request.json")))


@pytest.mark.parametrize("limits", ["requests_per_minute = 2", "tokens_per_minute = 1"], ids=["requests", "tokens"])
def test_a_run_that_ends_waits_for_no_minute_and_nothing_is_left_of_calls_that_waited(inventory, limits):
    inventory.configure(settings_text(more=f"[limits]\nin_flight = 64\n{limits}\n"))
    model = InventoryModel()

    async def interrupt(run):
        await until(lambda: inventory.clock.next_waking() is not None and len(model.calls) == run.tally.sent > 0)
        run.gate.close(INTERRUPTED)

    summary = execute(inventory, model, interrupt)
    assert (summary.stopped, summary.exit_status) == (INTERRUPTED, 130)
    assert 0 < len(model.calls) == requests_on_disk(inventory) <= 2
    assert {derive_progress(inventory.package(f"INC-{n}")).state for n in range(6)} <= {"researched", "looked_up"}


def test_a_call_that_is_prepared_waits_for_its_place_and_is_still_made_when_the_run_is_to_end(inventory):
    inventory.configure(settings_text(more="[limits]\nin_flight = 4\n"))
    model = HeldModel()

    async def interrupt(run):
        await until(lambda: model.in_flight == 4 and requests_on_disk(inventory) == 5)
        assert (run.tally.in_flight, run.tally.begun) == (4, 5)
        run.gate.close(INTERRUPTED)
        model.go.set()

    summary = execute(inventory, model, interrupt, jobs=6)
    assert (model.most, summary.dispatches, summary.stopped) == (4, 5, INTERRUPTED)
    assert requests_on_disk(inventory) == len(model.calls) == 5


class Timed(InventoryModel):
    """A model that notes by the clock when it was asked."""

    def __init__(self, clock, **options):
        super().__init__(**options)
        self.times = []
        self._clock = clock

    async def send(self, request):
        self.times.append(self._clock.monotonic())
        return await super().send(request)


def ticking(inventory):
    """Return what lets time pass, an eighth of a second (which adds up exactly) at a time, until six cases have ended.

    It stands still while a call is made: what is on its way from here to the server takes no minute.
    """

    async def tick(run):
        while run.outcomes.states.total() < 6:
            inventory.clock.advance(0.125)
            await asyncio.sleep(0.001)
            await until(lambda: run.tally.begun == 0)

    return tick


def test_minutes_pass_and_every_case_ends(inventory):
    inventory.configure(settings_text(more="[limits]\nin_flight = 64\nrequests_per_minute = 9\n"))
    model = Timed(inventory.clock)
    assert execute(inventory, model, ticking(inventory)).exit_status == 0
    assert len(model.times) == 18
    assert max(sum(start <= at <= start + 60 for at in model.times) for start in model.times) <= 9


def test_a_wish_of_the_server_holds_the_whole_run(inventory):
    """Fault 18: six cases would ask; the server that asked to wait hears of one more call, when it is time."""
    inventory.configure(settings_text(more="[limits]\nin_flight = 1\n"))
    slow = ProviderError("LLM_RATE_LIMITED", retryable=True, retry_after=30, found="429")
    model = Timed(inventory.clock, scripted={"plan": [slow]})
    summary = execute(inventory, model, ticking(inventory))
    assert summary.cases["interpreted"] >= 5
    assert model.times[1] - model.times[0] >= 30


# --- a call that was sent, and whose reply never reached the disk -----------------------------------------------------


class Killed(BaseException):
    pass


class Dying(InventoryModel):
    async def send(self, request):
        await super().send(request)
        raise Killed


def die(inventory):
    """Leave a request of INC-0 that was sent, and of which nobody knows more."""
    with pytest.raises(Killed):
        execute(inventory, Dying(), package_id="INC-0")


@pytest.mark.parametrize(("unknown_calls", "state"), [("retry", "interpreted"), ("hold", "blocked")])
def test_a_run_asks_again_or_leaves_it_to_a_person_as_the_case_froze_it(inventory, unknown_calls, state):
    inventory.configure(settings_text(llm=f'unknown_calls = "{unknown_calls}"\n'))
    die(inventory)
    model = InventoryModel()
    summary = execute(inventory, model, package_id="INC-0")
    assert summary.cases == {state: 1}
    assert len(model.calls) == (3 if state == "interpreted" else 0)
    if state == "blocked":
        assert derive_progress(inventory.package("INC-0")).code == "LLM_CALL_UNKNOWN"
        assert execute(inventory, RaisingProvider(), package_id="INC-0").exit_status == 1
        inventory.clock.advance(61)
        assert execute(inventory, RaisingProvider(), package_id="INC-0").exit_status == 1  # never by itself
        assert inventory.project(model).resume("INC-0").state == "interpreted"


def test_a_call_of_which_nobody_knows_counts_as_spent(inventory):
    inventory.configure(settings_text(llm=HOLD.replace("hold", "retry"), more="[budget]\ncase_calls = 1\n"))
    die(inventory)
    summary = execute(inventory, RaisingProvider(), package_id="INC-0")
    assert [(one["code"], summary.exit_status) for one in summary.refused] == [("BUDGET_REACHED", 1)]
