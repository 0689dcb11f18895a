"""Rate and CPU of `casebound run` beside its peers, on one model server of 200 ms with 64 calls in flight. Prints JSON.

- Rates are what the server sees, from the first request to the last reply, over the ideal: calls × latency ÷ 64.
- Every process of ours is the real command, on a workspace that holds the admitted reports. Its CPU is that of all it
  does, less what the same command takes for one case: the start. Of the peers only the calls count too.
- The server is a process of its own; a first run of ours fills its memory, so that it costs every side the same.

Ends with 1 where a bound is missed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import many_cases
import model_server

CASES, CALLS_A_CASE = 500, 3
IN_FLIGHT = 64
LATENCY_S = 0.2
ROUNDS = 3
JOBS = 128  # under way at once: while some wait for the model, others are looked up, judged and written
PEERS = Path(__file__).resolve().parents[1] / ".venv-bench" / "bin" / "python"
BOUNDS = {
    "one_process": (">=", 0.75),
    "two_processes": (">=", 0.90),
    "times_inspect_rate": (">=", 4.0),
    "cpu_of_inspect": ("<=", 0.25),
    "cpu_of_sdk": ("<=", 1.5),
}


def ours(server: model_server.RunningServer, processes: int, cases: int = CASES) -> dict[str, float]:
    """Return rate (1: ideal) and CPU seconds of a run over fresh cases by so many processes."""
    folder = many_cases.workspace(cases, url=server.url, in_flight=IN_FLIGHT // processes)
    server.figures()
    ran = many_cases.run(folder, [["run", "--jobs", str(JOBS // processes)]] * processes)
    seen = server.figures()
    if seen["calls"] != CALLS_A_CASE * cases or seen["most_in_flight"] > IN_FLIGHT:
        sys.exit(f"the server saw something else: {seen}")
    return {"rate": _rate(seen), "cpu_s": ran.cpu_s}


def cpu_ms_a_call(server: model_server.RunningServer, whole_s: float) -> float:
    """Return what one call takes of the CPU, where a run over all cases took `whole_s`."""
    return (whole_s - ours(server, 1, cases=1)["cpu_s"]) * 1000 / (CALLS_A_CASE * (CASES - 1))


def peer(server: model_server.RunningServer, side: str, calls: int) -> dict[str, float]:
    """Return rate and CPU a call of a peer."""
    server.figures()
    script = str(Path(__file__).with_name("peer_calls.py"))
    command = [str(PEERS), script, side, server.root, str(calls), str(IN_FLIGHT)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{side} failed: {ran.stderr[-2000:]}")
    return {"rate": _rate(server.figures()), **json.loads(ran.stdout.splitlines()[-1])}


def _rate(seen: dict[str, Any]) -> float:
    ideal_s: float = seen["calls"] * LATENCY_S / IN_FLIGHT
    return ideal_s / seen["seconds"]


def measure() -> dict[str, float]:
    """Measure all sides in turn, some rounds, and return the medians."""
    found: dict[str, list[float]] = {name: [] for name in (*BOUNDS, "cpu_ms_a_call", "sdk_cpu_ms", "inspect_cpu_ms")}
    with model_server.running(LATENCY_S) as server:
        ours(server, 1)
        for _ in range(ROUNDS):
            one, two = ours(server, 1), ours(server, 2)
            call = cpu_ms_a_call(server, one["cpu_s"])
            sdk, inspect = peer(server, "sdk", CALLS_A_CASE * CASES), peer(server, "inspect", CASES)
            found["one_process"].append(one["rate"])
            found["two_processes"].append(two["rate"])
            found["times_inspect_rate"].append(one["rate"] / inspect["rate"])
            found["cpu_of_inspect"].append(call / inspect["cpu_ms_a_call"])
            found["cpu_of_sdk"].append(call / sdk["cpu_ms_a_call"])
            found["cpu_ms_a_call"].append(call)
            found["sdk_cpu_ms"].append(sdk["cpu_ms_a_call"])
            found["inspect_cpu_ms"].append(inspect["cpu_ms_a_call"])
    return {name: round(statistics.median(values), 3) for name, values in found.items()}


def missed(figures: dict[str, float]) -> list[str]:
    """Return which bounds do not hold."""
    return [
        f"{name} is {figures[name]}, bound {sign} {bound}"
        for name, (sign, bound) in BOUNDS.items()
        if (figures[name] < bound if sign == ">=" else figures[name] > bound)
    ]


if __name__ == "__main__":
    figures = measure()
    print(json.dumps({"run": figures}))
    sys.exit("\n".join(missed(figures)) or 0)
