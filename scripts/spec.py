"""Which rows of the checklist a test proves: rows without a test, marks that name no row, and the count.

usage: spec.py [--quiet]     exit status 1 for a mark that names no row; --quiet prints only those and the count

A test names its rows with `@pytest.mark.spec("A-011", …)`. The rows are data: `tests/data/checklist.jsonl`.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "tests" / "data" / "checklist.jsonl"
PLACES = ("core/tests", "core/src/casebound/testing", "plugins/*/tests", "tests")


def load_rows(path: Path = ROWS) -> dict[str, str]:
    """Return the requirement of each row by its id, in order. Raises `ValueError` for an id that stands there twice."""
    rows: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["id"] in rows:
            raise ValueError(f"{path}: the row {row['id']} stands there twice")
        rows[row["id"]] = row["requirement"]
    return rows


def marks_in(source: str) -> Iterator[tuple[str, int]]:
    """Yield each row that a `pytest.mark.spec` of `source` names, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "spec":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, node.lineno


def find_marks(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the places (`file:line`) of the marks by row."""
    found: dict[str, list[str]] = defaultdict(list)
    for place in PLACES:
        for file in sorted(path for folder in root.glob(place) for path in folder.rglob("*.py")):
            for row, line in marks_in(file.read_text(encoding="utf-8")):
                found[row].append(f"{file.relative_to(root)}:{line}")
    return dict(found)


def main(arguments: list[str]) -> int:
    rows, marks = load_rows(), find_marks()
    missing = [row for row in rows if row not in marks]
    strange = {row: places for row, places in marks.items() if row not in rows}
    if "--quiet" not in arguments:
        print(f"rows without a test ({len(missing)}):")
        for row in missing:
            print(f"  {row}  {rows[row]}")
    for row, places in sorted(strange.items()):
        print(f"a mark names no row: {row} in {', '.join(places)}")
    print(f"{len(rows) - len(missing)} of {len(rows)} rows have a test; {len(strange)} marks name no row")
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
