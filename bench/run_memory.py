"""The most memory of `casebound run`: 10,000 cases beside 100, and 500 beside Inspect AI. Prints JSON.

- Where the number of cases is what matters, rules answer, so that it ends in minutes; every case goes to its end.
- Beside the peer both ask the same model server, with as many cases and samples under way as calls in flight.

The measure is the most resident memory of the whole process, its start included, on both sides. Ends with 1 where a
bound is missed. A first argument is another number than 10,000.
"""

from __future__ import annotations

import json
import sys

import many_cases
import model_server
import run_rate

FEW, MANY = 100, 10_000
BOUNDS = {"many_over_few": 1.2, "over_inspect": 0.5}


def by_rules(cases: int) -> float:
    """Return the megabytes of a run over so many cases that rules answer."""
    return many_cases.run(many_cases.workspace(cases), [["run", "--jobs", str(run_rate.JOBS)]]).peak_mb


def beside_peer() -> tuple[float, float]:
    """Return our megabytes and the peer's, with as many cases as samples."""
    with model_server.running(run_rate.LATENCY_S) as server:
        folder = many_cases.workspace(run_rate.CASES, url=server.url, in_flight=run_rate.IN_FLIGHT)
        ours = many_cases.run(folder, [["run"]]).peak_mb
        return ours, run_rate.peer(server, "inspect", run_rate.CASES)["peak_mb"]


def main(many: int) -> int:
    """Measure, print, and return the exit status."""
    few_mb, many_mb = by_rules(FEW), by_rules(many)
    ours, inspect = beside_peer()
    figures = {
        f"mb_at_{FEW}": round(few_mb),
        f"mb_at_{many}": round(many_mb),
        "many_over_few": round(many_mb / few_mb, 2),
        "mb_asking_a_server": round(ours),
        "inspect_mb": round(inspect),
        "over_inspect": round(ours / inspect, 2),
    }
    print(json.dumps({"run_memory": {**figures, "bounds": BOUNDS}}))
    missed = [name for name, bound in BOUNDS.items() if figures[name] > bound]
    print("missed:", *missed, file=sys.stderr) if missed else None
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else MANY))
