"""How long `verify` takes, beside reading and writing the same JSON once; prints one JSON object.

    python bench/verify.py [PACKAGE]

Without a package the vcore demo's is made in a temporary folder. Both sides run in this process, warm, in turn; the
least of all rounds counts, in CPU seconds and in seconds of the wall.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from casebound.host import Host, build_host
from casebound.verification import verify_package

ROUNDS = 60


def measure(root: Path, host: Host, *, rounds: int = ROUNDS) -> dict[str, object]:
    """Return the least time of `verify_package`, that of parsing and dumping every JSON file, and their ratio."""
    documents = [path.read_bytes() for path in sorted(root.rglob("*.json"))]

    def read_and_write() -> None:
        for document in documents:
            json.dumps(json.loads(document), sort_keys=True)

    answer = verify_package(root, host).answer
    read_and_write()
    verify, json_only = least({"verify": lambda: verify_package(root, host), "json": read_and_write}, rounds)
    return {
        "answer": answer,
        "files": len(documents),
        "bytes": sum(map(len, documents)),
        "rounds": rounds,
        "verify_ms": [round(1000 * seconds, 3) for seconds in verify],
        "json_ms": [round(1000 * seconds, 3) for seconds in json_only],
        "ratio": [round(one / other, 2) for one, other in zip(verify, json_only, strict=True)],
        "columns": ["cpu", "wall"],
    }


def least(sides: dict[str, Callable[[], object]], rounds: int) -> list[tuple[float, float]]:
    """Return the least CPU and wall time of each side; they take turns, so that a busy machine troubles both."""
    best = {name: (float("inf"), float("inf")) for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            cpu, wall = time.process_time(), time.perf_counter()
            work()
            spent = (time.process_time() - cpu, time.perf_counter() - wall)
            best[name] = (min(best[name][0], spent[0]), min(best[name][1], spent[1]))
    return list(best.values())


def demo_package(folder: Path) -> Path:
    """Make the demo's finished package in `folder` and return where it is."""
    from casebound.api import Project
    from casebound_catalog_vcore.demo import fill

    reports = fill(folder)
    results = list(Project.open(folder / "casebound.toml").resolve(reports))
    return Path(results[0].package)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else demo_package(Path(folder))
        print(json.dumps(measure(root, build_host())))


if __name__ == "__main__":
    main()
