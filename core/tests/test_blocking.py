"""Work in threads: what is over in a moment is waited for, everything else goes on beside the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from casebound import blocking
from casebound.blocking import Blocking


@pytest.fixture
def moments(monkeypatch):
    """How long each wait of the loop may take is up to the test; the list holds a line a wait."""
    waits: list[float] = []

    def counted(works, seconds):
        waits.append(seconds)
        return waiting(works, seconds)

    waiting = blocking.wait
    monkeypatch.setattr(blocking, "wait", counted)
    return waits


async def take_longer(threads):
    """Run what ends only when the loop turns."""
    turned = threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    assert await threads.run(lambda: turned.wait(60), computes=True)


def test_what_is_over_in_a_moment_is_done_before_the_loop_turns(monkeypatch):
    monkeypatch.setattr(blocking, "MOMENT_S", 60)

    async def work() -> None:
        turned: list[int] = []
        asyncio.get_running_loop().call_soon(turned.append, 1)
        assert await Blocking(1, "test").run(lambda: threading.current_thread().name, computes=True) == "test_0"
        assert turned == []

    asyncio.run(work())


@pytest.mark.parametrize("moment_s", [0, 60])
def test_what_the_work_raises_is_raised(monkeypatch, moment_s):
    monkeypatch.setattr(blocking, "MOMENT_S", moment_s)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Blocking(1, "test").run(lambda: 1 // 0, computes=True))


def test_the_loop_goes_on_beside_what_takes_longer():
    asyncio.run(take_longer(Blocking(1, "test")))


def test_where_it_is_in_vain_the_loop_waits_only_now_and_then_until_a_work_is_over_in_time(moments):
    async def work() -> None:
        threads = Blocking(1, "test")
        for _ in range(40):
            await take_longer(threads)
        assert len(moments) == 8 + 2

    asyncio.run(work())


def test_a_work_that_is_over_in_time_makes_the_loop_wait_again(moments, monkeypatch):
    async def work() -> None:
        threads = Blocking(1, "test")
        for _ in range(16):
            await take_longer(threads)
        moments.clear()
        monkeypatch.setattr(blocking, "MOMENT_S", 60)
        await threads.run(lambda: None, computes=True)
        monkeypatch.setattr(blocking, "MOMENT_S", 0)
        for _ in range(2):
            await take_longer(threads)
        assert len(moments) == 3

    asyncio.run(work())


def test_who_is_cancelled_leaves_the_work_to_its_thread():
    async def work() -> None:
        begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

        def slow() -> None:
            begun.set()
            goes_on.wait(60)
            ended.set()

        task = asyncio.ensure_future(Blocking(1, "test").run(slow, computes=True))
        while not begun.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()
        assert ended.wait(60)

    asyncio.run(work())


def test_what_asks_a_server_is_not_waited_for(moments):
    assert asyncio.run(Blocking(1, "test").run(lambda: 7, computes=False)) == 7
    assert moments == []


def test_closed_threads_begin_nothing_that_waits_and_begin_anew_where_they_are_asked_to():
    async def work() -> None:
        threads, begun, goes_on = Blocking(1, "test"), threading.Event(), threading.Event()

        def slow() -> None:
            begun.set()
            goes_on.wait(60)

        first = asyncio.ensure_future(threads.run(slow, computes=False))
        second = asyncio.ensure_future(threads.run(lambda: 2, computes=False))
        while not begun.is_set():
            await asyncio.sleep(0)
        threads.close()
        goes_on.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert await threads.run(lambda: 3, computes=False) == 3

    asyncio.run(work())
