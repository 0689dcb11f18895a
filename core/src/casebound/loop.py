"""One event loop for all calls of a project, so that a provider's connections stay usable from one case to the next.

In a plain program the loop runs in the caller's thread, where Ctrl-C reaches it. Where a loop already runs there (a
notebook), it runs in a thread of its own instead.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

MOST_THREADS = 8  # for what plugins do that blocks, such as phases; each costs memory


class Loop:
    """Runs coroutines to their end, one at a time, always on the same event loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._thread: ThreadPoolExecutor | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        if self._runner is None:
            self._runner = asyncio.Runner()
            blocking = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="casebound-blocking")
            self._runner.get_loop().set_default_executor(blocking)
            # A loop that nobody closed is let go of without running anything on it: another may run here then.
            weakref.finalize(self, self._runner.get_loop().close)
        if not _a_loop_runs_here():
            return self._runner.run(work)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="casebound")
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        """End the loop and its thread; `run` may start a new one."""
        if self._thread is not None:
            self._thread.submit(self._close_runner).result()
            self._thread.shutdown()
            self._thread = None
        self._close_runner()

    def _close_runner(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _a_loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
