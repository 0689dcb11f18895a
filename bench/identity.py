"""How long the measurement identity of this installation takes, beside plain SHA-256 of the same bytes; prints JSON.

    python bench/identity.py [BENCHMARK]

Both sides run in this process, warm, in turn; the least of all rounds counts, in seconds of the CPU and of the wall.
The first, cold measurement of the process is told as well: that is what a command waits for.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from casebound.bench.identity import shared_library
from casebound.bench.instrument import open_instrument
from casebound.bench.measurement import Measurement, Sources, freeze_measurement
from casebound.host import build_host
from turns import least

ROUNDS = 20
BOUND_S = 2


def measure(name: str, *, rounds: int = ROUNDS) -> dict[str, object]:
    """Return the least time of both sides, and the speed of each in megabytes a second."""
    started = time.perf_counter()
    instrument = open_instrument(build_host(), name)

    def identity() -> Measurement:
        return freeze_measurement(instrument, Sources(), datetime.now(UTC))

    found = identity().identity
    first = time.perf_counter() - started
    trees = [found.checker, *(part.tree for part in (*found.production, *found.validators))]
    library = shared_library()
    programs = [Path(sys.executable).resolve(), *([library] if library else [])]
    size = sum(tree.bytes for tree in trees) + sum(path.stat().st_size for path in programs)
    block = bytes(size)
    bound, plain = least({"identity": identity, "sha256": lambda: hashlib.sha256(block).digest()}, rounds)
    return {
        "benchmark": name,
        "files": sum(tree.files for tree in trees) + len(programs),
        "bytes": size,
        "rounds": rounds,
        "first_s": round(first, 3),
        "identity_s": [round(seconds, 4) for seconds in bound],
        "sha256_s": [round(seconds, 4) for seconds in plain],
        "identity_mb_per_s": [round(size / 1e6 / seconds) for seconds in bound],
        "sha256_mb_per_s": [round(size / 1e6 / seconds) for seconds in plain],
        "columns": ["cpu", "wall"],
        "bound_s": BOUND_S,
        "within_bound": first < BOUND_S,
    }


def main() -> int:
    found = measure(*sys.argv[1:2] or ["entity-link"])
    print(json.dumps(found))
    return 0 if found["within_bound"] else 1


if __name__ == "__main__":
    sys.exit(main())
