"""What the guide on importing shows runs, and what it promises holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from casebound.errors import CODES
from casebound.intake.builtin import READERS
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import write_inventory

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "import.md").read_text(encoding="utf-8")
SETTINGS = '[project]\nname = "p"\n[llm]\nprovider = "offline"\n'
# A program `gh` that prints what such a command prints: all of its fields, or what REST returns.
GH = """\
#!{python}
import json, sys
fields = sys.argv[sys.argv.index("--json") + 1].split(",") if "--json" in sys.argv else ()
number = int(sys.argv[3]) if sys.argv[2] == "view" else 1
url = f"https://github.com/OWNER/REPO/issues/{{number}}"
issue = {{"number": number, "title": "t", "body": "b", "comments": [{{"body": "c"}}], "url": url}}
rest = {{"number": 2, "title": "t", "body": None, "comments": 1, "html_url": url[:-1] + "2"}}
answer = {{name: issue[name] for name in fields}}
print(json.dumps(answer if sys.argv[2] == "view" else [answer] if fields else [rest, rest | {{"pull_request": {{}}}}]))
"""


def test_the_first_command_of_the_guide_runs(tmp_path):
    folder = write_inventory(tmp_path, settings=SETTINGS).folder
    (folder / "tickets").mkdir()
    (folder / "tickets" / "a.md").write_text("A report.")
    (folder / "issues.json").write_text('[{"id": "b", "body": "B"}]')
    (folder / "lines.jsonl").write_text('{"id": "c", "body": "C"}\n')
    (command,) = re.findall(r"^```\ncasebound (.*)\n```", GUIDE, re.MULTILINE)
    done = run_casebound(command.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (0, "4 imported, 0 known\n"), done.stderr


def test_the_commands_about_github_run(tmp_path):
    (tmp_path / "casebound.toml").write_text(SETTINGS)
    programs = tmp_path / "bin"
    programs.mkdir()
    casebound = f'#!/bin/sh\nexec "{sys.executable}" -P -m casebound "$@"\n'
    for name, text in {"gh": GH.format(python=sys.executable), "casebound": casebound}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (block,) = re.findall(r"^```sh\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    answers, told = [], ""
    for command in block.splitlines():
        done = subprocess.run(
            ["sh", "-c", f"{command} --format json"], cwd=tmp_path, env=environment, capture_output=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
        told += done.stderr.decode()
    assert [(answer["imported"], answer["passed_over"]) for answer in answers] == [(1, 0), (1, 0), (1, 1)]
    assert "gh issue list --json number,title,body,comments,url" in told
    assert sorted(path.name for path in (tmp_path / ".casebound" / "cases").iterdir()) == [
        "REPO#1",
        "REPO#12",
        "REPO#2",
    ]


def test_the_guide_names_every_ending_and_only_codes_that_exist():
    endings = {suffix for reader in READERS for suffix in reader.suffixes} - {".github.json"}
    assert [suffix for suffix in sorted(endings) if f"`{suffix}`" not in GUIDE] == []
    codes = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", GUIDE))
    assert len(codes) > 8
    assert codes <= set(CODES)
