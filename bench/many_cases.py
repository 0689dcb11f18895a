"""Workspaces with many cases, and `casebound run` on them in processes of its own: for rate and memory."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import host_overhead

_PROVIDERS = {
    "offline": 'provider = "offline"\n',
    "server": 'provider = "openai"\nmodel = "model-1"\n[llm.openai]\nbase_url = "{url}"\n',
}
PLUGINS = ("llm-offline", "llm-openai")


@dataclass(frozen=True, slots=True)
class Ran:
    """What processes took that ran at once.

    Attributes:
        cpu_s: of all of them together, their start included.
        wall_s: until the last one ended.
        peak_mb: the most memory that one of them held.
        summaries: what each of them printed.
    """

    cpu_s: float
    wall_s: float
    peak_mb: float
    summaries: list[dict[str, Any]]


@cache
def _all_workspaces() -> str:
    """Return a folder that is removed at the end, and no workspace before: it would cost the next one.

    For half a minute ext4 passes over each number of a file that is gone, one by one, whenever it looks for a free one.
    """
    name = tempfile.mkdtemp(prefix="casebound-bench-", dir=os.environ.get("BENCH_DIR"))
    atexit.register(shutil.rmtree, name)
    return name


def workspace(cases: int, *, url: str | None = None, in_flight: int = 64) -> Path:
    """Make a folder with settings, a database and a workspace that has admitted so many reports.

    Args:
        cases: how many.
        url: of the model server; None: rules answer, and no server is needed.
        in_flight: calls at once, for each process.
    """
    folder = Path(tempfile.mkdtemp(dir=_all_workspaces()))
    host_overhead.prepare(folder, 0)
    provider = _PROVIDERS["offline" if url is None else "server"].format(url=url)
    settings = host_overhead.SETTINGS.replace('["llm-offline"]', json.dumps(PLUGINS)).replace(
        _PROVIDERS["offline"], provider
    )
    (folder / "casebound.toml").write_text(f"{settings}[limits]\nin_flight = {in_flight}\n")
    with (folder / "reports.jsonl").open("w") as stream:
        for number in range(cases):
            stream.write(json.dumps(host_overhead.report(number)) + "\n")
    run(folder, [["import", str(folder / "reports.jsonl")]])
    return folder


def run(folder: Path, commands: Sequence[Sequence[str]]) -> Ran:
    """Run commands of casebound at once, each in its own process, and wait for all; one that fails ends the bench.

    Of several, one may end 1: it had nothing left to do while another still worked on its last cases.
    """
    given = ["--project-config", str(folder / "casebound.toml"), "--format", "json"]
    began = time.perf_counter()
    processes = [
        subprocess.Popen([sys.executable, "-m", "casebound", *command, *given], stdout=subprocess.PIPE)
        for command in commands
    ]
    cpu, peak, summaries = 0.0, 0.0, []
    for process in processes:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ((0,) if len(commands) == 1 else (0, 1)):
            sys.exit(f"`casebound {commands[0][0]}` ended {process.returncode}: {said.decode()}")
        cpu += used.ru_utime + used.ru_stime
        peak = max(peak, used.ru_maxrss / 1024)
        summaries.append(json.loads(said))
    return Ran(cpu, time.perf_counter() - began, peak, summaries)
