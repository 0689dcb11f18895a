"""The purse: a cap is never passed, and what a case has spent stands in its files."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from casebound.budget import Purse
from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import Usage
from casebound.errors import REFUSALS, ProviderError, SettingsError
from casebound.prices import Prices, money_of, money_text
from casebound.settings_model import Budget, Price
from casebound.specs import CORE_STAGES
from casebound.spending import FRAME_TOKENS, Spent, conversations_of_case, spent_on, worst_tokens
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider, model_request, native_error
from hypothesis import given
from hypothesis import strategies as st

REQUEST = model_request(max_output_tokens=100)
WORST = worst_tokens(REQUEST)
PRICE = "[llm.price]\ninput = 2.5\noutput = 10\n"


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path)


def cost(request, input_tokens, output_tokens) -> Decimal:
    return Decimal(input_tokens + output_tokens)


def spent(inventory) -> Spent:
    return spent_on(inventory.package(), conversations_of_case, cost)


def resolve(inventory, model, budget: str = "", llm: str = ""):
    inventory.configure(settings_text(llm=llm, more=f"[budget]\n{budget}\n"))
    return inventory.resolve(model)


# --- what calls take ------------------------------------------------------------------------------------------------


def test_the_worst_case_is_what_the_texts_have_in_bytes_and_what_the_answer_may_have():
    request = model_request(system="é", user="{}", response_schema={"type": "object"}, max_output_tokens=7)
    assert worst_tokens(request) == 2 + 2 + len(canonical_bytes({"type": "object"})) + FRAME_TOKENS + 7


def test_what_a_case_has_spent_adds_up_over_stages_corrections_and_interpretations(inventory):
    model = InventoryModel(scripted={"plan": ["no JSON"]})
    inventory.resolve(model)
    assert spent(inventory).calls == 4
    # The first reply reported nothing, the three others 100 and 10.
    assert spent(inventory).tokens == worst_tokens(model.calls[0]) + 3 * 110
    assert spent(inventory).money == spent(inventory).tokens
    inventory.project(InventoryModel()).revise("INC-7")
    assert spent(inventory).calls == 7


@pytest.mark.parametrize("code", ["LLM_AUTH", "LLM_UNAVAILABLE", "LLM_TIMEOUT", "LLM_RATE_LIMITED", "LLM_QUOTA"])
@pytest.mark.parametrize("arrived", [True, False])
def test_a_failed_call_counts_at_its_worst_unless_the_server_refused_it(inventory, code, arrived):
    """Fault 35: what nobody reported is never taken for nothing; a refusal is reported."""
    error = native_error(code) if arrived else ProviderError(code, retryable=False)
    model = InventoryModel(scripted={"plan": [error]})
    inventory.resolve(model)
    assert spent(inventory).calls == 1
    assert spent(inventory).tokens == (0 if code in REFUSALS else worst_tokens(model.calls[0]))


def test_a_call_whose_reply_never_reached_the_disk_counts_at_its_worst(inventory):
    """Fault 17: it was sent, so it is spent, whether or not anybody decided about it yet."""

    class Killed(BaseException):
        pass

    class Dying(InventoryModel):
        async def send(self, request):
            await super().send(request)
            raise Killed

    model = Dying()
    with pytest.raises(Killed):
        inventory.resolve(model)
    undecided = spent(inventory)
    assert undecided == Spent(1, worst_tokens(model.calls[0]), Decimal(worst_tokens(model.calls[0])))
    inventory.resolve(InventoryModel())
    assert spent(inventory).tokens == undecided.tokens + 3 * 110


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (Usage(input_tokens=5, output_tokens=6), 11),
        (Usage(), WORST),
        (Usage(input_tokens=5), 105),
        (Usage(output_tokens=6), WORST - 94),
        (Usage(input_tokens=-5, output_tokens=6), WORST - 94),
    ],
)
def test_what_is_left_open_counts_at_its_worst(tmp_path, usage, tokens):
    purse = purse_of(tmp_path, run_tokens=10**6)
    purse.reserve_at_once(PACKAGE, REQUEST).used(usage)
    assert purse.spent == Spent(1, tokens)


# --- the purse of a run ---------------------------------------------------------------------------------------------

PACKAGE = None  # without a cap on cases nobody looks at the package


def purse_of(folder, **caps) -> Purse:
    price = "[llm.price]\ninput = 1000000\noutput = 1000000\n"  # a token costs one
    inventory = write_inventory(folder / "inventory", settings=settings_text(llm=price, model="model-1"))
    budget = Budget(**caps)
    return Purse(budget, Prices(inventory.project(RaisingProvider()).bound))


def refused(caught) -> tuple[str, str]:
    return caught.value.code, caught.value.pointer


def test_without_a_cap_on_cases_no_file_is_looked_at(tmp_path):
    purse = purse_of(tmp_path, run_calls=2, run_tokens=10**6, run_money=Decimal(999))
    purse.check(PACKAGE, REQUEST)
    assert purse.reserve_at_once(PACKAGE, REQUEST) is not None


def test_a_call_is_paid_before_it_is_made_and_never_comes_back(tmp_path):
    purse = purse_of(tmp_path, run_calls=2)
    first, _ = (purse.reserve_at_once(PACKAGE, REQUEST) for _ in range(2))
    first.refused()
    with pytest.raises(SettingsError) as caught:
        purse.reserve_at_once(PACKAGE, REQUEST)
    assert refused(caught) == ("BUDGET_REACHED", "budget.run_calls")
    assert (caught.value.found, caught.value.expected) == ("2 calls in this run", "at most 2")


def test_a_call_that_is_not_made_gives_everything_back(tmp_path):
    purse = purse_of(tmp_path, run_calls=1, run_tokens=WORST)
    purse.reserve_at_once(PACKAGE, REQUEST).give_back()
    assert purse.reserve_at_once(PACKAGE, REQUEST) is not None


@pytest.mark.parametrize("cap", ["run_tokens", "run_money"])
def test_who_does_not_fit_waits_for_those_in_flight_and_is_refused_when_none_is_left(tmp_path, cap):
    async def work() -> None:
        purse = purse_of(tmp_path, **{cap: 2 * WORST})
        first, second = (purse.reserve_at_once(PACKAGE, REQUEST) for _ in range(2))
        assert purse.reserve_at_once(PACKAGE, REQUEST) is None
        asked = [asyncio.ensure_future(purse.reserve(PACKAGE, REQUEST)) for _ in range(3)]
        await settled()
        assert not any(task.done() for task in asked)
        first.refused()
        await settled()
        assert [task.done() for task in asked] == [True, False, False]
        second.end()
        asked[0].result().end()
        await settled()
        errors = [task.exception() for task in asked[1:]]
        assert {(error.code, error.pointer) for error in errors} == {("BUDGET_REACHED", f"budget.{cap}")}
        assert purse.spent.tokens == 2 * WORST

    asyncio.run(work())


def test_who_stops_waiting_leaves_the_others_their_room(tmp_path):
    async def work() -> None:
        purse = purse_of(tmp_path, run_tokens=WORST)
        first = purse.reserve_at_once(PACKAGE, REQUEST)
        asked = [asyncio.ensure_future(purse.reserve(PACKAGE, REQUEST)) for _ in range(2)]
        await settled()
        asked[0].cancel()
        first.give_back()
        await settled()
        asked[1].result().give_back()
        assert purse.reserve_at_once(PACKAGE, REQUEST) is not None

    asyncio.run(work())


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


steps = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 600), st.integers(0, 3)), min_size=1, max_size=40)


@given(steps=steps, cap=st.integers(200, 4000), in_flight=st.integers(1, 6))
def test_in_no_order_of_asking_and_answering_more_is_taken_than_the_cap(tmp_path_factory, steps, cap, in_flight):
    """Each call takes at most its worst case; how much less, and when it ends, is anybody's guess."""
    prices = _prices(tmp_path_factory)

    async def work() -> None:
        purse = Purse(Budget(run_tokens=cap), prices)
        taken: list[int] = []
        room = asyncio.Semaphore(in_flight)

        async def call(output: int, used: int, turns: int) -> None:
            request = model_request(max_output_tokens=output)
            async with room:
                try:
                    reservation = purse.reserve_at_once(PACKAGE, request) or await purse.reserve(PACKAGE, request)
                except SettingsError:
                    assert sum(taken) + worst_tokens(request) > cap  # it was refused with reason
                    return
                for _ in range(turns):
                    await asyncio.sleep(0)
                known = used <= worst_tokens(request)
                taken.append(used if known else worst_tokens(request))
                reservation.used(Usage(input_tokens=0, output_tokens=used) if known else Usage())

        await asyncio.gather(*(call(*step) for step in steps))
        assert sum(taken) <= cap
        assert purse.spent.tokens == sum(taken)

    asyncio.run(work())


_CACHE: list[Prices] = []


def _prices(tmp_path_factory) -> Prices:
    if not _CACHE:
        inventory = write_inventory(tmp_path_factory.mktemp("prices"))
        _CACHE.append(Prices(inventory.project(RaisingProvider()).bound))
    return _CACHE[0]


# --- a case ---------------------------------------------------------------------------------------------------------


def test_a_case_stops_before_the_call_that_might_pass_its_cap_and_goes_on_with_a_higher_one(inventory):
    llm = "[llm.stage.assessment]\nmax_output_tokens = 100000\n"  # by far the largest
    model = InventoryModel()
    inventory.configure(settings_text(llm=llm))
    inventory.resolve(model)
    needed = 110 + worst_tokens(model.calls[1])
    fresh, model = write_inventory(inventory.folder / "fresh"), InventoryModel()
    result = resolve(fresh, model, f"case_tokens = {needed - 1}", llm)
    assert (result.code, [request.stage for request in model.calls]) == ("BUDGET_REACHED", ["plan"])
    result = resolve(fresh, model, f"case_tokens = {needed}", llm)
    assert (result.state, len(model.calls), spent(fresh).tokens) == ("interpreted", 3, 330)


def test_a_refusal_says_what_is_spent_and_what_the_next_call_may_take(inventory):
    model = InventoryModel()
    result = resolve(inventory, model, "case_tokens = 5")
    assert (result.code, result.state, model.calls) == ("BUDGET_REACHED", "researched", [])
    assert "budget.case_tokens" in result.error
    assert "0 tokens for this case, in 1 interpretation, and the next call may take" in result.error
    assert "expected: at most 5\n" in result.error


# --- money ----------------------------------------------------------------------------------------------------------


def test_money_is_a_decimal_and_unknown_where_something_is_unknown():
    price = Price(input=Decimal("2.5"), output=Decimal(10))
    assert money_of(Usage(input_tokens=1000, output_tokens=100), price) == Decimal("0.0035")
    assert money_text(Decimal("0.00350")) == "0.0035"
    assert money_text(Decimal("1E+2")) == "100"
    assert money_text(Decimal("1E-9")) == "0.000000001"
    assert money_of(Usage(input_tokens=1000), price) is None
    assert money_of(Usage(input_tokens=1, output_tokens=1), None) is None


@pytest.mark.parametrize("cap", ["run_money", "case_money"])
def test_a_cap_on_money_without_a_price_refuses_to_start_and_asks_nobody(inventory, cap):
    """Fault 35."""
    inventory.configure(settings_text(more=f"[budget]\n{cap} = 1.5\n"))
    with pytest.raises(SettingsError) as caught:
        inventory.project(RaisingProvider()).resolve([inventory.report])
    assert refused(caught) == ("SETTINGS_PRICE", "llm.price")
    assert caught.value.exit_status == 2
    assert f"scripted test-model, who may answer stage plan, and a cap in [budget] {cap}" in str(caught.value)
    assert not inventory.workspace.exists()


def test_a_fallback_needs_a_price_too_and_may_have_its_own(inventory):
    price = "price = {input = 1, output = 1}\n"
    stages = "".join(f"[llm.stage.{stage}]\n{price}" for stage in CORE_STAGES)
    llm = f'fallback = ["spare"]\n{stages}[llm.profile.spare]\nmodel = "spare"\n'
    more = "[budget]\nrun_money = 1.5\n"
    inventory.configure(settings_text(llm=llm, more=more))
    with pytest.raises(SettingsError, match="scripted spare, who may answer stage plan") as caught:
        inventory.project(RaisingProvider()).resolve([inventory.report])
    assert refused(caught)[0] == "SETTINGS_PRICE"
    for priced in (llm + price, llm + PRICE):  # its own, or that of [llm], whose provider it is
        inventory.configure(settings_text(llm=priced, more=more))
        inventory.project(RaisingProvider()).check_run(None)


def test_a_stage_with_a_price_of_its_own_pays_that(inventory):
    llm = f'{PRICE}[llm.stage.plan]\nmodel = "dear"\nprice = {{input = 1000000, output = 0}}\n'
    model = InventoryModel()
    inventory.configure(settings_text(llm=llm, more="[budget]\ncase_money = 50\n"))
    result = inventory.resolve(model)
    assert (result.code, model.calls) == ("BUDGET_REACHED", [])  # its plan may cost more than 50
    inventory.configure(settings_text(llm=llm, more="[budget]\ncase_money = 1000000\n"))
    assert inventory.resolve(model).state == "interpreted"


def test_a_case_that_somebody_without_a_price_answered_is_not_gone_on_with_under_a_cap_on_money(inventory):
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(model="other", llm=PRICE, more="[budget]\ncase_money = 9\n"))
    with pytest.raises(SettingsError) as caught:
        inventory.project(RaisingProvider()).revise("INC-7")
    assert refused(caught)[0] == "SETTINGS_PRICE"
    assert "scripted test-model, which answered stage plan" in str(caught.value)
    known = f'{PRICE}[llm.profile.before]\nmodel = "test-model"\nprice = {{input = 1, output = 1}}\n'
    inventory.configure(settings_text(model="other", llm=known, more="[budget]\ncase_money = 9\n"))
    assert inventory.project(InventoryModel()).revise("INC-7").state == "interpreted"


def test_a_replay_pays_nothing_and_waits_for_nobody(inventory):
    inventory.resolve(InventoryModel())
    fresh = write_inventory(inventory.folder / "fresh", settings=settings_text(more="[budget]\nrun_money = 0.000001\n"))
    project = fresh.project(replay_from=inventory.package().root)
    (result,) = project.resolve([fresh.report])
    assert result.state == "interpreted"
