"""How much memory an import takes at most, of 100 issues and of 10,000; prints one JSON object.

    python bench/import_memory.py [ISSUES]

The command itself, in a process of its own, on one file with a JSON array as the REST interface of GitHub returns it,
some 5 kB an issue. Most of the time is waiting for the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ISSUES = 10_000
FEW = 100
SETTINGS = '[project]\nname = "bench"\n[llm]\nprovider = "offline"\n'
BODY = '1. Open the page of "edge-proxy".\r\n2. Look at [its status] {now}, it says \\ nothing.\r\n' * 45
LINKS = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")


def issue(number: int) -> dict[str, object]:
    rest = "https://api.github.com/repos/acme/router/issues"
    return {
        "url": f"{rest}/{number}",
        "repository_url": "https://api.github.com/repos/acme/router",
        "comments_url": f"{rest}/{number}/comments",
        "html_url": f"https://github.com/acme/router/issues/{number}",
        "id": 1_000_000_000 + number,
        "number": number,
        "title": f"edge-proxy-canary does not answer ({number})",
        "user": {"login": "reporter", **{link: f"https://api.github.com/users/reporter/{link}" for link in LINKS}},
        "labels": [{"id": 1, "name": "bug", "color": "d73a4a", "default": True}],
        "comments": 0,
        "body": BODY,
    }


def write_export(path: Path, issues: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, issues + 1):
            file.write(("[" if number == 1 else ",\n") + json.dumps(issue(number)))
        file.write("]\n")


def measured(folder: Path, issues: int) -> dict[str, float]:
    """Import so many issues into a workspace of its own; return what that took."""
    folder.mkdir()
    (folder / "casebound.toml").write_text(SETTINGS, encoding="utf-8")
    write_export(folder / "issues.json", issues)
    command = [sys.executable, "-m", "casebound", "import", "issues.json", "--format", "json"]
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        answer = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert (process.returncode, answer["imported"]) == (0, issues)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "file_mb": round((folder / "issues.json").stat().st_size / 1e6, 1),
        "peak_mb": round(usage.ru_maxrss * unit / 1e6, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "wall_s": round(time.perf_counter() - begun, 1),
    }


def main(issues: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        few, many = measured(Path(folder, "few"), FEW), measured(Path(folder, "many"), issues)
    ratio = round(many["peak_mb"] / few["peak_mb"], 2)
    print(json.dumps({"import": {f"{FEW} issues": few, f"{issues} issues": many, "peak_ratio": ratio, "bound": 1.2}}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ISSUES)
