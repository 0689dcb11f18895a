"""An import may be killed at any moment: what is left is whole cases, and repeating it finishes it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from casebound.host import build_host
from casebound.store import Workspace, layout
from casebound.testing.faults import Countdown, run_in_child, watch
from casebound.verification import verify_package
from casebound.workspace import importing
from casebound.workspace.importing import Import

pytestmark = pytest.mark.faults

HOST = build_host(entry_points=())
REPORTS = 3


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def take(root: Path, reports: Path, point) -> int:
    workspace = Workspace(root)
    workspace.prepare()
    with watch(point):
        return Import(workspace, HOST, 1 << 20).run([str(reports)]).exit_status


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports.jsonl"
    path.write_text("".join(json.dumps({"id": f"r-{n}", "body": "B"}) + "\n" for n in range(REPORTS)))
    return path


@pytest.mark.parametrize("writers", [1, importing.WRITERS])
def test_killed_at_any_point_a_repeated_import_ends_in_the_same_bytes(
    tmp_path: Path, reports: Path, writers: int, monkeypatch
) -> None:
    monkeypatch.setattr(importing, "WRITERS", writers)
    points = Countdown()
    assert take(tmp_path / "unkilled", reports, points) == 0
    wanted = files_of(tmp_path / "unkilled")
    assert len(points.passed) == 9 * REPORTS  # before, between and behind, of three files
    for at, name in enumerate(points.passed):
        root = tmp_path / f"{writers}-{at}"
        status = run_in_child(lambda at=at, root=root: take(root, reports, Countdown(at)))
        assert status == -signal.SIGKILL, name
        before = {path: data for path, data in files_of(root / "cases").items() if "tmp/" not in path}
        unfinished = [one for one in (root / "cases").iterdir() if not (one / layout.ADMISSION).exists()]
        assert len(unfinished) <= writers, name
        assert take(root, reports, Countdown()) == 0, name
        assert files_of(root) == wanted, name
        assert {path: wanted[f"cases/{path}"] for path in before} == before, name
        assert os.listdir(root / "tmp") == [], name
    for case in (tmp_path / "unkilled" / "cases").iterdir():
        assert verify_package(case, HOST).answer == "unfinished"


def test_two_imports_of_the_same_reports_share_them(tmp_path: Path) -> None:
    """None is refused because another one is at it, and none is counted twice."""
    reports = tmp_path / "reports.jsonl"
    reports.write_text("".join(json.dumps({"id": f"r-{n}", "body": "B"}) + "\n" for n in range(120)))
    root = tmp_path / "workspace"
    children = []
    for _ in range(3):
        ready, go = os.pipe()
        child = os.fork()
        if not child:
            os.close(go)
            os.read(ready, 1)
            workspace = Workspace(root)
            workspace.prepare()
            summary = Import(workspace, HOST, 1 << 20).run([str(reports)])
            os._exit(255 if summary.refused_total else summary.imported)
        os.close(ready)
        children.append((child, go))
    for _, go in children:
        os.close(go)
    imported = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    assert sum(imported) == 120  # each by one of them
    assert len(Workspace(root).package_ids()) == 120
    assert all((case / layout.ADMISSION).exists() for case in (root / "cases").iterdir())
