"""A coroutine beside the event loop: its steps in threads, what belongs to the loop on it, and an end in every case."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
from casebound.beside import MOST_STEPS, OnLoop, Threads, in_other_thread, on_loop, tell_loop

HERE = threading.current_thread


async def thread() -> threading.Thread:
    return HERE()


def test_steps_are_taken_in_other_threads_and_wishes_granted_on_the_loop() -> None:
    async def work() -> list[bool]:
        mine = HERE()
        wished = await on_loop(thread)
        again = await on_loop(thread)
        return [mine is main, wished is main, again is main]

    main = HERE()
    assert asyncio.run(Threads().do(work())) == [False, True, True]


def test_driven_by_a_loop_the_same_coroutine_stays_on_it() -> None:
    async def work() -> list[threading.Thread]:
        told: list[threading.Thread] = []
        tell_loop(lambda _: told.append(HERE()), None)
        return [HERE(), await on_loop(thread), *told]

    assert set(asyncio.run(work())) == {HERE()}


def test_beside_within_beside_is_one() -> None:
    async def inner() -> threading.Thread:
        return await on_loop(thread)

    async def outer() -> threading.Thread:
        return await Threads().do(inner())

    assert asyncio.run(Threads().do(outer())) is HERE()


def test_what_is_told_arrives_on_the_loop_in_order_and_before_the_next_wish() -> None:
    told: list[tuple[int, bool]] = []

    async def work() -> list[tuple[int, bool]]:
        for number in range(3):
            tell_loop(lambda number: told.append((number, HERE() is main)), number)
        await on_loop(thread)
        return list(told)

    main = HERE()
    assert asyncio.run(Threads().do(work())) == [(0, True), (1, True), (2, True)]


def test_an_error_of_a_wish_is_raised_where_it_was_wished_and_may_be_met_there() -> None:
    async def fail() -> None:
        raise LookupError("gone")

    async def meets() -> str:
        try:
            await on_loop(fail)
        except LookupError as exc:
            return f"met {exc}"
        return "nothing"

    async def lets_go() -> None:
        await on_loop(fail)

    assert asyncio.run(Threads().do(meets())) == "met gone"
    with pytest.raises(LookupError, match="gone"):
        asyncio.run(Threads().do(lets_go()))


def test_a_manager_is_entered_and_left_on_the_loop_and_hears_of_errors() -> None:
    passed: list[object] = []

    @asynccontextmanager
    async def manager() -> AsyncIterator[str]:
        passed.append(HERE())
        try:
            yield "value"
        except ValueError:
            passed.append("error")
        finally:
            passed.append(HERE())

    async def work() -> object:
        async with OnLoop(manager()) as value:
            passed.append(value)
            raise ValueError
        return HERE()

    assert asyncio.run(Threads().do(work())) is not HERE()
    assert passed == [HERE(), "value", "error", HERE()]


@pytest.mark.parametrize("during", ["a step", "a wish"])
def test_who_is_cancelled_waits_for_the_step_and_the_work_cleans_up_in_it(during: str) -> None:
    begun, go_on, cleaned = threading.Event(), threading.Event(), []

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def work() -> None:
        try:
            if during == "a step":
                begun.set()
                go_on.wait()
                cleaned.append("step ended")
            await on_loop(never)
        except asyncio.CancelledError:
            cleaned.append("cancelled")
            raise
        finally:
            cleaned.append(HERE() is not main)

    async def scene() -> None:
        task = asyncio.ensure_future(Threads().do(work()))
        await asyncio.to_thread(begun.wait)
        for _ in range(3):  # impatience changes nothing
            task.cancel()
            await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    main = HERE()
    asyncio.run(scene())
    ended = ["step ended"] if during == "a step" else []
    assert cleaned == [*ended, "cancelled", True]


def test_a_step_that_raises_ends_the_work_even_while_it_is_cancelled() -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        go_on.wait()
        raise LookupError

    async def scene() -> None:
        task = asyncio.ensure_future(Threads().do(work()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())


def test_while_one_works_the_loop_serves_others() -> None:
    """Two of them wait for each other: the one in a step, the other in a wish; on one loop they would wait for ever."""
    first, second = threading.Event(), threading.Event()

    async def one() -> bool:
        first.set()
        return second.wait(10)

    async def other() -> bool:
        assert first.wait(10)
        await on_loop(thread)
        second.set()
        return True

    async def both() -> list[bool]:
        threads = Threads()
        return list(await asyncio.gather(threads.do(one()), threads.do(other())))

    assert asyncio.run(both()) == [True, True]


def test_what_may_wait_for_long_holds_up_no_step() -> None:
    """More of them wait than there are threads for steps, until a step lets them go on."""
    many, go_on, threads = 2 * MOST_STEPS, threading.Barrier(2 * MOST_STEPS + 1), Threads()

    async def waits() -> int:
        return await in_other_thread(lambda: go_on.wait(20))

    async def lets_go() -> int:
        return go_on.wait(20)

    async def scene() -> list[int]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(many))
        return await asyncio.gather(*(threads.do(waits()) for _ in range(many)), threads.do(lets_go()))

    assert sorted(asyncio.run(scene())) == list(range(many + 1))
