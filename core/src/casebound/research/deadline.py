"""The time that one question to a database may take, for each thread by itself."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from casebound.clock import Clock

_GRACE_S = 1


class Deadline:
    """Counts the time of a question, and cuts a connection off whose server is silent.

    Attributes:
        seconds: what one question may take.
        wait_s: what a driver may wait for the server: a little more, so that the server's own limit is met first.
    """

    def __init__(self, seconds: int, clock: Clock) -> None:
        self.seconds = seconds
        self.wait_s = seconds + _GRACE_S
        self._clock = clock
        self._thread = _OfThread()

    def is_late(self) -> bool:
        """Tell whether the question of this thread has used up its time."""
        return self._clock.monotonic() > self._thread.ends

    @contextmanager
    def question(self) -> Iterator[None]:
        """Give the block the time of one question."""
        self._thread.ends = self._clock.monotonic() + self.seconds
        try:
            yield
        finally:
            self._thread.ends = float("inf")

    def watch(self, fileno: int) -> None:
        """Keep a second handle on the socket of this thread's connection, for `cutting_off`."""
        self.forget()
        self._thread.twin = socket.socket(fileno=os.dup(fileno))

    def forget(self) -> None:
        """Let go of the second handle."""
        if self._thread.twin is not None:
            self._thread.twin.close()
            self._thread.twin = None

    @contextmanager
    def cutting_off(self) -> Iterator[None]:
        """Shut the watched socket down once `wait_s` is over: some drivers wait for ever for a silent server."""
        timer = threading.Timer(self.wait_s, _shut_down, (self._thread.__dict__,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class _OfThread(threading.local):
    ends: float = float("inf")
    twin: socket.socket | None = None


def _shut_down(of_thread: dict[str, object]) -> None:
    twin = of_thread.get("twin")
    if isinstance(twin, socket.socket):
        with suppress(OSError):
            twin.shutdown(socket.SHUT_RDWR)
