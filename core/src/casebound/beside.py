"""Work that computes and waits for the disk, beside an event loop that must wait for neither.

A case is a coroutine. Between two calls to a model it reads, derives and flushes files: milliseconds in which the loop
could serve no other case. So `Threads` drive such a coroutine step by step; what belongs to the loop (connections,
limits, counts of calls), and what may wait for long (a database), it reaches through `on_loop`, and only that is
awaited there. Driven by a loop as usual, the same coroutine does everything on it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Enough that some compute while others wait for the disk; those who compute take turns anyway, and more take longer.
MOST_STEPS = 4

_HERE = threading.local()  # `loop`: for which a step is done in this thread


class _Wish(Generic[T]):
    """What a coroutine beside the loop yields: something that is to be awaited on it."""

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self.call = call

    def __await__(self) -> Generator[_Wish[T], T, T]:
        return (yield self)


class _Done(Generic[T]):
    """What the last step gives: the coroutine's own value."""

    def __init__(self, value: T) -> None:
        self.value = value


class Threads:
    """The few threads in which the steps of all work are done. They start with the first."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns; where this is a step already, it goes on in it.

        A step that has begun is never left alone: who is cancelled waits for its end, and `work` is cancelled then.
        """
        if not _runs_a_loop():
            return await work
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MOST_STEPS, thread_name_prefix="casebound-step")
        loop = asyncio.get_running_loop()
        go_on: Callable[[], _Wish[Any]] = partial(work.send, None)
        while True:
            step = loop.run_in_executor(self._pool, _take, loop, go_on)
            try:
                taken = await asyncio.shield(step)
                if isinstance(taken, _Done):
                    return taken.value  # type: ignore[no-any-return]  # what `work` returned
                go_on = partial(work.send, await taken.call())
            except BaseException as exc:
                await _end_of(step)
                if step.exception() is not None or isinstance(step.result(), _Done):
                    raise  # the work is over
                go_on = partial(work.throw, exc)

    def close(self) -> None:
        """Let the threads end; further work would start them anew."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


async def in_other_thread(function: Callable[[], T]) -> T:
    """Return what `function` returns, which may wait for long: in a thread of the loop's own, and not as a step."""
    return await on_loop(lambda: asyncio.to_thread(function))


async def on_loop(call: Callable[[], Awaitable[T]]) -> T:
    """Return what `call` returns, awaited on the event loop."""
    return await (call() if _runs_a_loop() else _Wish(call))


def tell_loop(function: Callable[[T], object], value: T) -> None:
    """Call `function` on the event loop, soon and in order; where this is its thread, at once."""
    loop: asyncio.AbstractEventLoop | None = getattr(_HERE, "loop", None)
    if loop is None:
        function(value)
    else:
        loop.call_soon_threadsafe(function, value)


class OnLoop(AbstractAsyncContextManager[T]):
    """An asynchronous context manager that is entered and left on the event loop."""

    def __init__(self, manager: AbstractAsyncContextManager[T]) -> None:
        self._manager = manager

    async def __aenter__(self) -> T:
        return await on_loop(self._manager.__aenter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await on_loop(lambda: self._manager.__aexit__(kind, raised, trace))


def _take(loop: asyncio.AbstractEventLoop, go_on: Callable[[], _Wish[Any]]) -> _Wish[Any] | _Done[Any]:
    """Take one step in this thread: return the coroutine's next wish, or that it is done."""
    _HERE.loop = loop
    try:
        return go_on()
    except StopIteration as done:
        return _Done(done.value)
    finally:
        _HERE.loop = None


async def _end_of(step: asyncio.Future[Any]) -> None:
    while not step.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([step])


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
