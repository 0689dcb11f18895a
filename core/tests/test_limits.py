"""Turns of a provider: how many at a time, how many a minute, in which order, and what a pause does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from casebound.llm.limits import MOST_PAUSE_S, WINDOW_S, Limiter, Turn
from casebound.settings_model import Limits
from casebound.testing.scripted import FixedClock
from hypothesis import given
from hypothesis import strategies as st

T = TypeVar("T")


def limiter(clock: FixedClock, *, in_flight: int = 4096, requests: int = 0, tokens: int = 0) -> Limiter:
    limits = Limits(in_flight=in_flight, requests_per_minute=requests, tokens_per_minute=tokens)
    return Limiter(limits, clock)


def run(work: Callable[[FixedClock], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(work(FixedClock()))


async def settled() -> None:
    """Let everybody go as far as they go without more time."""
    for _ in range(20):
        await asyncio.sleep(0)


async def played(clock: FixedClock, *work: Awaitable[T]) -> list[T]:
    """Let time pass, from one waking to the next, until all `work` is done."""
    tasks = [asyncio.ensure_future(one) for one in work]
    for _ in range(100_000):
        await settled()
        if all(task.done() for task in tasks):
            return [task.result() for task in tasks]
        waking = clock.next_waking()
        assert waking is not None, "everybody waits, and nobody sleeps"
        clock.advance(max(waking, 1e-6))
    raise AssertionError("time passes without end")


# --- in flight ------------------------------------------------------------------------------------------------------


def test_no_more_calls_are_in_flight_than_allowed_and_who_came_first_goes_first():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=2)
        order: list[int] = []

        async def call(number: int) -> None:
            turn = limits.turn_at_once("m") or await limits.turn("m")
            order.append(number)
            assert len(flying) < 2
            flying.add(number)
            await ends[number].wait()
            flying.remove(number)
            turn.over()
            turn.end()

        flying: set[int] = set()
        ends = [asyncio.Event() for _ in range(6)]
        tasks = [asyncio.ensure_future(call(number)) for number in range(6)]
        for end in ends:
            await settled()
            assert len(flying) == min(2, 6 - ends.index(end))
            end.set()
        await asyncio.gather(*tasks)
        assert order == list(range(6))
        assert clock.next_waking() is None

    run(work)


def test_a_turn_that_is_told_over_twice_frees_one_place():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=1)
        turn = limits.turn_at_once("m")
        assert turn is not None
        turn.over()
        turn.end()
        turn.end()
        assert limits.turn_at_once("m") is not None
        assert limits.turn_at_once("m") is None

    run(work)


def test_who_stops_waiting_leaves_nothing_behind():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=1, tokens=100)
        first = limits.turn_at_once("m", 100)
        assert first is not None
        waiting = [asyncio.ensure_future(limits.turn("m", 100)) for _ in range(3)]
        await settled()
        waiting[0].cancel()
        await settled()
        first.give_back()
        await settled()
        assert [task.done() for task in waiting] == [True, True, False]
        # The leave of one that is cancelled in the very moment in which it gets it goes to the next.
        waiting[1].result().give_back()
        waiting[2].cancel()
        await settled()
        assert limits.turn_at_once("m", 100) is not None

    run(work)


# --- prepared ahead -------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.lists(st.integers(0, 5), max_size=60), st.randoms())
def test_a_few_calls_are_prepared_ahead_and_depart_in_their_order_as_places_become_free(in_flight, ends, chance):
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=in_flight)
        departed: list[int] = []
        having, flying = set[int](), dict[int, Turn]()

        async def call(number: int) -> None:
            turn = limits.turn_at_once("m") or await limits.turn("m")
            having.add(number)
            await turn.depart()
            departed.append(number)
            flying[number] = turn

        tasks = [asyncio.ensure_future(call(number)) for number in range(len(ends))]
        for _ in range(len(ends) + 1):
            await settled()
            left = len(ends) - (len(departed) - len(flying))
            assert len(flying) == min(in_flight, left)
            assert len(having) == min(in_flight + in_flight // 4, left)
            for number in chance.sample(sorted(flying), min(len(flying), 1 + ends[0])) if flying else ():
                flying.pop(number).end()
                having.remove(number)
        for turn in flying.values():
            turn.end()
        await asyncio.gather(*tasks)
        assert departed == list(range(len(ends)))
        assert clock.next_waking() is None

    run(work)


async def departed(limits: Limiter, many: int) -> list[Turn]:
    """Return so many turns whose calls are in flight."""
    turns = [begin(limits) for _ in range(many)]
    for turn in turns:
        await turn.depart()
    return turns


def test_nothing_is_prepared_ahead_where_a_minute_is_limited():
    async def work(clock: FixedClock) -> None:
        for limits in (limiter(clock, in_flight=8, requests=1000), limiter(clock, in_flight=8, tokens=1000)):
            turns = [limits.turn_at_once("m", 1) for _ in range(9)]
            assert [turn is None for turn in turns] == [False] * 8 + [True]

    run(work)


def test_who_is_prepared_and_stops_waiting_frees_its_turn():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=4)
        flying = await departed(limits, 4)
        prepared = begin(limits)
        departing = asyncio.ensure_future(prepared.depart())
        await settled()
        assert limits.turn_at_once("m") is None
        departing.cancel()
        await settled()
        prepared.end()
        following = asyncio.ensure_future(begin(limits).depart())
        await settled()
        assert not following.done()  # it was a turn that became free, and no place
        flying[0].end()
        await following

    run(work)


def test_a_pause_holds_turns_and_nobody_who_has_one():
    """Who is prepared may hold what the one that goes alone waits for: room in the purse."""

    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=8)
        flying = await departed(limits, 8)
        departing = [asyncio.ensure_future(begin(limits).depart()) for _ in range(2)]
        flying[0].pause(30)
        waiting = asyncio.ensure_future(limits.turn("m"))
        for turn in flying:
            turn.end()
        await settled()
        assert [task.done() for task in departing] == [True, True]
        assert not waiting.done()
        clock.advance(30)
        await settled()
        assert waiting.done()

    run(work)


# --- the rolling minute ---------------------------------------------------------------------------------------------


def most_in_a_minute(begun: list[tuple[float, int]]) -> int:
    """Return the most that begins in any 60 s, both ends included."""
    return max(sum(amount for at, amount in begun if start <= at <= start + 60) for start, _ in begun)


arrivals = st.lists(st.tuples(st.floats(0, 200), st.integers(1, 100), st.floats(0, 90)), min_size=1, max_size=30)


@given(arrivals=arrivals, requests=st.integers(1, 6))
def test_no_window_of_a_minute_has_more_requests_than_the_limit_and_none_waits_without_need(arrivals, requests):
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, requests=requests)
        begun: list[tuple[float, int]] = []

        async def call(at: float, lasts: float) -> None:
            await clock.sleep(at)
            turn = limits.turn_at_once("m") or await limits.turn("m")
            begun.append((clock.monotonic(), 1))
            await clock.sleep(lasts)
            turn.end()

        await played(clock, *(call(at, lasts) for at, _, lasts in arrivals))
        assert most_in_a_minute(begun) <= requests
        # Each begins when it came, or as soon as the one that is `requests` before it is a minute old.
        came = sorted(at for at, _, _ in arrivals)
        for place, (at, _) in enumerate(begun):
            earliest = came[place]
            if place >= requests:
                earliest = max(earliest, begun[place - requests][0] + WINDOW_S)
            assert at <= earliest + 0.02

    run(work)


@given(arrivals=arrivals, most=st.integers(100, 250))
def test_no_window_of_a_minute_has_more_tokens_than_the_limit(arrivals, most):
    """What was thought to be taken is corrected by what was: that stays below it, so the limit holds for it too."""

    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, tokens=most)
        begun: list[list[float]] = []

        async def call(at: float, tokens: int, lasts: float) -> None:
            await clock.sleep(at)
            turn = limits.turn_at_once("m", tokens) or await limits.turn("m", tokens)
            mine = [clock.monotonic(), tokens]
            begun.append(mine)
            await clock.sleep(lasts)
            turn.over()
            if tokens % 3:
                mine[1] = tokens // 2
                turn.used(tokens // 2)
            turn.end()

        await played(clock, *(call(*arrival) for arrival in arrivals))
        assert most_in_a_minute([(at, int(tokens)) for at, tokens in begun]) <= most

    run(work)


def test_what_was_not_taken_is_free_before_the_minute_is_over():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, tokens=1000)
        first = limits.turn_at_once("m", 900)
        assert first is not None
        second = asyncio.ensure_future(limits.turn("m", 500))
        await settled()
        assert not second.done()
        clock.advance(5)
        first.over()
        await settled()
        assert not second.done()
        first.used(400)
        await settled()
        assert second.done()

    run(work)


def test_a_correction_sets_the_alarm_earlier():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, tokens=1000)
        early = limits.turn_at_once("m", 300)
        clock.advance(30)
        late = limits.turn_at_once("m", 700)
        assert early is not None
        assert late is not None
        waiting = asyncio.ensure_future(limits.turn("m", 600))
        await settled()
        assert clock.next_waking() == pytest.approx(WINDOW_S)  # both must be a minute old
        late.used(400)
        await settled()
        assert clock.next_waking() == pytest.approx(WINDOW_S - 30)  # the early one is enough now
        clock.advance(WINDOW_S - 30)
        await settled()
        assert waiting.done()

    run(work)


def test_a_call_larger_than_the_limit_is_alone_in_its_minute():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, tokens=100)
        small = limits.turn_at_once("m", 1)
        assert small is not None
        large = asyncio.ensure_future(limits.turn("m", 5000))
        behind = asyncio.ensure_future(limits.turn("m", 1))
        small.end()
        await settled()
        assert not large.done()
        clock.advance(WINDOW_S)
        await settled()
        assert large.done()
        assert not behind.done()  # nobody overtakes, and nobody joins it
        large.result().used(99)  # it was not so large after all
        await settled()
        assert behind.done()

    run(work)


def test_a_small_call_does_not_overtake_a_large_one():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, tokens=100)
        first = limits.turn_at_once("m", 60)
        assert first is not None
        large = asyncio.ensure_future(limits.turn("m", 90))
        await settled()
        assert limits.turn_at_once("m", 1) is None
        assert limits.turn_at_once("another model", 1) is None
        first.used(10)
        await settled()
        assert large.done()
        assert limits.turn_at_once("another model", 0) is not None

    run(work)


# --- pauses ---------------------------------------------------------------------------------------------------------


def begin(limits: Limiter, model: str = "m", *, patient: bool = True) -> Turn:
    turn = limits.turn_at_once(model, patient=patient)
    assert turn is not None
    return turn


@pytest.mark.parametrize("wish", [7.0, 10 * MOST_PAUSE_S])
def test_a_wish_of_the_server_holds_everybody_within_a_bound_and_then_one_goes_first(wish):
    """Fault 18: a server that asks to wait hears of one call a pause, however many would ask it."""

    async def work(clock: FixedClock) -> None:
        limits = limiter(clock)
        begin(limits).pause(wish)
        waiting = [asyncio.ensure_future(limits.turn("m")) for _ in range(50)]
        for round_ in range(3):
            await settled()
            assert sum(task.done() for task in waiting) == round_
            assert clock.next_waking() == pytest.approx(min(wish, MOST_PAUSE_S))
            clock.advance(min(wish, MOST_PAUSE_S))
            await settled()
            assert sum(task.done() for task in waiting) == round_ + 1
            first = waiting[round_].result()
            first.over()
            if round_ < 2:
                first.pause(wish)
            first.end()
        await settled()
        assert all(task.done() for task in waiting)

    run(work)


def test_who_lands_with_a_wish_lets_nobody_in_before_the_wish_is_told():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock, in_flight=1)
        turn = begin(limits)
        waiting = asyncio.ensure_future(limits.turn("m"))
        await settled()
        turn.over()
        turn.pause(30)
        turn.end()
        await settled()
        assert not waiting.done()
        clock.advance(30)
        await settled()
        assert waiting.done()

    run(work)


def test_a_pause_holds_neither_another_model_nor_somebody_for_whom_another_would_be_asked():
    async def work(clock: FixedClock) -> None:
        limits = limiter(clock)
        begin(limits).pause(30)
        assert limits.turn_at_once("m") is None
        held = asyncio.ensure_future(limits.turn("m"))
        await settled()
        begin(limits, "another")
        begin(limits, patient=False).pause(30)  # it causes none either
        begin(limits, patient=False)
        assert not held.done()
        clock.advance(30)
        await settled()
        assert held.done()

    run(work)


def test_the_limiter_works_on_one_loop_after_another():
    clock = FixedClock()
    limits = limiter(clock, requests=1)

    async def first() -> None:
        begin(limits).end()
        waiting = asyncio.ensure_future(limits.turn("m"))
        await settled()
        waiting.cancel()
        await settled()

    async def second() -> None:
        waiting = asyncio.ensure_future(limits.turn("m"))
        await settled()
        clock.advance(WINDOW_S)
        await settled()
        assert waiting.done()

    asyncio.run(first())
    asyncio.run(second())
