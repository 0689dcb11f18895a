"""What `run --dry-run` foretells: the next request of each case exactly, bounds for the rest; nothing is written."""

from __future__ import annotations

import pytest
from casebound.errors import ProviderError
from casebound.render.forecast import forecast_nodes
from casebound.render.tree import plain
from casebound.runs import Run, RunOptions
from casebound.spending import worst_input
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider

PRICE = "[llm.price]\ninput = 2\noutput = 10\n"


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project", settings=settings_text(llm=PRICE))


def foretell(inventory, **options):
    project = inventory.project(RaisingProvider())
    try:
        return Run(project, RunOptions(**options)).forecast()
    finally:
        project.close()


def files(inventory):
    return {path: path.read_bytes() for path in inventory.workspace.rglob("*") if path.is_file()}


def admit(inventory, stop_after="admission", **options):
    project = inventory.project(InventoryModel(**options))
    list(project.resolve([inventory.report], stop_after=stop_after))
    project.close()


@pytest.mark.parametrize("phase", ["admission", "construction", "research"])
def test_the_next_request_is_foretold_exactly_however_far_the_case_is_and_nothing_is_written(inventory, phase):
    admit(inventory, phase)
    before = files(inventory)
    found = foretell(inventory)
    assert files(inventory) == before
    model = InventoryModel()
    inventory.resolve(model)
    plan = model.calls[0]
    assert dict(found.next) == {"plan": 1}
    assert (found.input_tokens, found.output_tokens) == (worst_input(plan), plan.max_output_tokens)
    assert found.to_json()["next_requests"]["calls"] == 1
    assert found.money * 10**6 == 2 * worst_input(plan) + 10 * plan.max_output_tokens


def test_a_case_in_the_middle_asks_its_next_stage_and_what_it_spent_is_not_left(inventory):
    """Three replies that do not hold, two retries and the first try: so a stage asks at most five times."""
    admit(inventory)
    assert foretell(inventory).calls_at_most == 3 * 5
    inventory.configure(settings_text(llm=PRICE, more="[budget]\nrun_calls = 2\n"))
    inventory.resolve(InventoryModel(scripted={"assessment": ["no JSON"]}))
    inventory.configure(settings_text(llm=PRICE))
    found = foretell(inventory)
    assert (dict(found.next), found.calls_at_most) == ({"assessment": 1}, 4 + 5)
    model = InventoryModel()
    inventory.resolve(model)
    assert worst_input(model.calls[0]) == found.input_tokens  # with the feedback in it


@pytest.mark.parametrize(
    ("scripted", "calls"),
    [
        ({stage: ["x", "x"] for stage in ("plan", "assessment", "interpretation")}, 9),
        ({"plan": ["x", "x", "x"]}, 3),
        ({"plan": ["x", "x", *[ProviderError("LLM_UNAVAILABLE", retryable=True)] * 3]}, 5),
    ],
)
def test_no_run_makes_more_calls_or_may_get_longer_answers_than_was_foretold(inventory, scripted, calls):
    admit(inventory)
    found = foretell(inventory, wait=True)
    model = InventoryModel(scripted=scripted)
    for _ in range(4):
        inventory.resolve(model)
        inventory.clock.advance(61)
    assert len(model.calls) == calls <= found.calls_at_most
    assert sum(request.max_output_tokens for request in model.calls) <= found.output_tokens_at_most


def test_longer_answers_after_cut_ones_are_in_the_bound(inventory):
    inventory.configure(settings_text(llm=f"max_output_tokens = 100\n{PRICE}"))
    admit(inventory)
    # A stage: 100 + 200 + 400 for three cut replies, and 400 for each of two calls that fail.
    assert foretell(inventory).output_tokens_at_most == 3 * (700 + 2 * 400)
    assert str(foretell(inventory).output_money_at_most) == "0.045"


def test_only_what_a_run_would_take_is_foretold(inventory):
    admit(inventory)
    assert foretell(inventory, stop_after="construction").to_json()["next"] == {"none": 1}
    inventory.resolve(InventoryModel(scripted={"plan": [ProviderError("LLM_UNAVAILABLE", retryable=True)]}))
    assert dict(foretell(inventory).cases) == {}  # it waits, and a run does not
    assert dict(foretell(inventory, wait=True).next) == {"plan": 1}
    inventory.clock.advance(61)
    assert dict(foretell(inventory).cases) == {"retry_pending": 1}
    inventory.resolve(InventoryModel())
    assert foretell(inventory).to_json()["cases"] == {}


def test_caps_bound_the_calls_and_are_told(inventory):
    inventory.configure(settings_text(llm=PRICE, more="[budget]\ncase_calls = 6\nrun_money = 1.5\n"))
    admit(inventory)
    found = foretell(inventory, max_dispatches=9)
    assert (found.calls_at_most, found.limits) == (6, {"max_dispatches": 9, "run_money": "1.5", "case_calls": 6})
    assert foretell(inventory, max_dispatches=2).calls_at_most == 2


def test_without_a_price_there_is_no_money(inventory):
    inventory.configure(settings_text())
    admit(inventory)
    found = foretell(inventory).to_json()
    assert (found["next_requests"]["money"], found["at_most"]["output_money"]) == (None, None)


def test_a_case_that_cannot_go_on_is_told_and_the_others_are_foretold(inventory):
    inventory.configure(settings_text(llm=PRICE, more="[budget]\nrun_calls = 1\n"))
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(llm=PRICE, model="another"))
    report = inventory.report.read_text().replace("INC-7", "INC-8")
    inventory.report.write_text(report)
    admit(inventory)
    found = foretell(inventory)
    assert (dict(found.next), found.refused_total) == ({"plan": 1}, 1)
    assert (found.refused[0]["package"], found.refused[0]["code"]) == ("INC-7", "BINDING_CHANGED")


def test_a_database_that_is_away_is_no_error_of_the_forecast(inventory):
    admit(inventory)
    inventory.damage()
    before = files(inventory)
    assert dict(foretell(inventory).next) == {"none": 1}
    assert files(inventory) == before
    assert foretell(inventory).money == 0


def admit_several(inventory, number):
    text = inventory.report.read_text()
    for name in range(number):
        inventory.report.write_text(text.replace("INC-7", f"INC-{name}"))
        admit(inventory)


def test_tokens_and_money_are_of_no_more_calls_than_may_be_made(inventory):
    inventory.configure(settings_text(llm=f"max_output_tokens = 100\n{PRICE}"))
    admit_several(inventory, 3)
    found = foretell(inventory, max_dispatches=2)
    assert (found.calls_at_most, found.output_tokens_at_most) == (2, 2 * 400)  # the longest ones of all
    assert found.output_money_at_most * 10**6 == 10 * 2 * 400
    assert (found.calls, found.output_tokens, sum(found.next.values())) == (2, 200, 3)
    nothing = foretell(inventory, max_dispatches=0)
    assert (nothing.calls, nothing.input_tokens, nothing.money, nothing.output_tokens_at_most) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("cap", "tokens", "money"),
    [
        ("case_money = 0.02", 2 * 9000, "0.04"),
        ("run_money = 0.03", 2 * 9000, "0.03"),
        ("case_tokens = 6000", 2 * 6000, "0.18"),
        ("run_tokens = 5500", 5500, "0.18"),
        ("case_calls = 2", 2 * 1600, "0.032"),
        ("run_calls = 1", 800, "0.008"),
    ],
)
def test_each_cap_bounds_what_policies_would_allow(inventory, cap, tokens, money):
    inventory.configure(settings_text(llm=f"max_output_tokens = 200\n{PRICE}", more=f"[budget]\n{cap}\n"))
    admit_several(inventory, 2)
    found = foretell(inventory)
    assert found.refused == []
    assert (found.output_tokens_at_most, found.to_json()["at_most"]["output_money"]) == (tokens, money)


@pytest.mark.parametrize("cap", ["case_money = 0.0001", "run_money = 0.0001", "case_tokens = 99", "run_tokens = 99"])
def test_a_cap_under_which_not_one_call_fits_is_told_with_what_the_call_would_take(inventory, cap):
    inventory.configure(settings_text(llm=PRICE, more=f"[budget]\n{cap}\n"))
    admit_several(inventory, 2)
    found = foretell(inventory)
    assert (found.calls, found.calls_at_most, found.output_money_at_most, found.refused_total) == (0, 0, 0, 2)
    drawn = plain(forecast_nodes(found.to_json()))
    assert drawn.count("BUDGET_REACHED") == 2
    assert drawn.count(f"budget.{cap.split()[0]}") == drawn.count("and the next call may take") == 1
