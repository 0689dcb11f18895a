"""Both sides of a comparison by turns, so that a busy machine troubles both."""

from __future__ import annotations

import time
from collections.abc import Callable


def least(sides: dict[str, Callable[[], object]], rounds: int) -> list[tuple[float, float]]:
    """Return the least CPU and wall time of each side, in seconds, of `rounds` rounds."""
    best = {name: (float("inf"), float("inf")) for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            cpu, wall = time.process_time(), time.perf_counter()
            work()
            spent = (time.process_time() - cpu, time.perf_counter() - wall)
            best[name] = (min(best[name][0], spent[0]), min(best[name][1], spent[1]))
    return list(best.values())
