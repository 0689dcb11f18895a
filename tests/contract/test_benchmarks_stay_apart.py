"""Benchmarks measure what production does; production knows of no benchmark."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.host import build_host

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core" / "src" / "casebound"
# What a person asks for by the name of a benchmark, and what draws its pages.
FRONT = ("bench", "benchmarks.py", "live_runs.py", "cli", "render", "testing", "contracts")
PRODUCTION = [
    *(path for path in CORE.rglob("*.py") if path.relative_to(CORE).parts[0] not in FRONT),
    *(path for path in ROOT.glob("plugins/*/src/**/*.py") if "bench_" not in path.relative_to(ROOT).parts[1]),
]


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.spec("B-007")
def test_production_imports_nothing_of_a_benchmark():
    assert len(PRODUCTION) > 50
    found = {
        str(path.relative_to(ROOT)): name
        for path in PRODUCTION
        for name in imported_by(path)
        if re.match(r"casebound\.bench\b|casebound\.contracts\.bench|casebound_bench_", name)
    }
    assert found == {}


@pytest.mark.spec("B-007", "B-007b")
def test_the_stage_that_is_measured_is_whole_where_no_benchmark_is_installed():
    host = build_host(("entity-link",))
    assert list(host.benchmarks) == []
    protocol = host.protocols[("entity_link", 1)]
    assert host.validators_of("entity_link", protocol.rules)


def test_the_suite_of_the_guide_passes(tmp_path):
    text = (ROOT / "docs" / "guide" / "own-benchmark.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "test_small_conformance.py").write_text(example, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b1[0-9] passed", done.stdout)
