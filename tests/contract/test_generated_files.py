"""What scripts write stays as fresh as the code, and the checklist's marks name rows that exist."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from casebound import hookspecs

ROOT = Path(__file__).resolve().parents[2]


def script(name: str):
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_says():
    done = subprocess.run([sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", [name for name in vars(hookspecs) if name.startswith("casebound_")])
def test_every_hook_says_what_an_author_needs(name):
    text = inspect.getdoc(getattr(hookspecs, name)) or ""
    wanted = ["Called:", "Returns:", "Collisions:", "Errors:", "Example:", "Since:"]
    assert [part for part in wanted if part not in text] == []
    assert [text.index(part) for part in wanted] == sorted(text.index(part) for part in wanted)
    assert f"def {name}(" in text


def test_every_mark_names_a_row_of_the_checklist():
    spec = script("spec")
    rows = spec.load_rows()
    assert len([row for row in rows if row.startswith("A-")]) == 253
    assert len([row for row in rows if row.startswith("B-")]) == 150
    assert {row: places for row, places in spec.find_marks().items() if row not in rows} == {}


def test_marks_are_found_on_functions_classes_modules_and_parameters():
    source = """
import pytest
pytestmark = [pytest.mark.spec("A-001"), pytest.mark.services]
@pytest.mark.spec("A-002", "A-003")
class TestIt:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("A-004"))])
    def test_it(self, x): ...
"""
    assert sorted(row for row, _ in script("spec").marks_in(source)) == ["A-001", "A-002", "A-003", "A-004"]


def test_the_order_of_imports_holds():
    lint = Path(sys.executable).with_name("lint-imports")
    if not lint.is_file():
        pytest.skip("capability: import-linter is not installed here; `make check` runs it")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
