"""Whole-process start of the command, as a multiple of `python -c pass` in the same run. Prints JSON.

Both sides run from compiled bytecode; the two are measured in turn, and the medians compared: machines are noisy.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import casebound

BOUNDS = {"--version": 2.0, "--help": 6.0, "plugins": 12.0}
ROUNDS = 25


def wall_ms(command: list[str], environment: dict[str, str]) -> float:
    """Return the wall time of one process, in milliseconds."""
    begin = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    """Measure and print."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    sources = Path(casebound.__file__).parents[3]
    for folder in (sources / "core" / "src", sources / "plugins", Path(sysconfig.get_path("purelib"))):
        compileall.compile_dir(str(folder), quiet=2)
    script = str(Path(sys.executable).with_name("casebound"))
    commands = {"pass": [sys.executable, "-c", "pass"], **{word: [script, word] for word in BOUNDS}}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(wall_ms(command, environment))
    base = statistics.median(times["pass"])
    figures = {
        name: {"ratio": round(statistics.median(times[name]) / base, 2), "bound": bound}
        for name, bound in BOUNDS.items()
    }
    print(json.dumps({"startup": figures, "python_pass_ms": round(base, 1)}))


if __name__ == "__main__":
    main()
