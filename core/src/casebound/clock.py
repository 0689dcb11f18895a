"""The only reader of time. Everything else is handed a `Clock`, so that a test can set it."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Protocol

# What `format_time` writes, whether or not a calendar and a clock have such a moment.
WRITTEN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


class Clock(Protocol):
    """What the engine may know about time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on the clock that never goes back."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed."""
        import asyncio  # costs as much as all of `casebound --version`

        await asyncio.sleep(seconds)


def format_time(moment: datetime) -> str:
    """Return `moment` as artifacts write it: RFC 3339, UTC, whole milliseconds (`2026-11-01T08:00:00.000Z`)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def parse_time(text: str) -> datetime:
    """Return the moment that `format_time` wrote. Raises `ValueError` for anything else."""
    if not WRITTEN_TIME.fullmatch(text):
        raise ValueError("a time is written as 2026-11-01T08:00:00.000Z, in UTC")
    return datetime.fromisoformat(text)  # a tenth of what `strptime` takes, and every artifact with a time needs it
