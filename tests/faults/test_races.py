"""Several processes at once: each report is worked on by one, and reports do not stand in each other's way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from casebound.testing.faults import calls_in, start_child, wait_for
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.troubled import CASE, REPORT, SEARCHES, TroubledCase
from casebound.verification import verify_package

pytestmark = pytest.mark.faults


def resolve(case: TroubledCase, report: Path, point: Callable[[str], None] = lambda name: None) -> int:
    """Resolve a report once and write the result beside it; a process of its own calls this."""
    result = next(iter(case.project(case.model(point)).resolve([report])))
    report.with_suffix(f".{os.getpid()}.json").write_text(json.dumps(result.to_json()))
    return 0


def results(folder: Path) -> list[tuple[str, str | None]]:
    found = [json.loads(path.read_text()) for path in folder.glob("report*.*.json")]
    return sorted((result["state"], result["code"]) for result in found)


def test_the_second_process_on_a_report_is_told_so_and_the_first_goes_on(tmp_path: Path) -> None:
    case = TroubledCase.write(tmp_path)
    at_work, go_on = os.pipe(), os.pipe()

    def wait(name: str) -> None:
        if name == "before call plan 1":
            os.write(at_work[1], b"x")
            os.read(go_on[0], 1)

    first = start_child(lambda: resolve(case, case.inventory.report, wait))
    try:
        os.read(at_work[0], 1)
        assert wait_for(start_child(lambda: resolve(case, case.inventory.report))) == 0
        assert results(tmp_path) == [("refused", "CASE_BUSY")]
        assert calls_in(case.log) == []
    finally:
        os.write(go_on[1], b"x")  # whatever happened: nobody waits for ever
        assert wait_for(first) == 0
    assert results(tmp_path) == [("blocked", "LLM_AUTH"), ("refused", "CASE_BUSY")]
    case.advance()
    assert verify_package(case.root, case.inventory.host()).answer == "holds"
    for descriptor in (*at_work, *go_on):
        os.close(descriptor)


def test_two_processes_on_a_report_at_once_pay_for_it_once(tmp_path: Path) -> None:
    for number in range(8):
        case = TroubledCase.write(tmp_path / str(number))
        children = [start_child(lambda case=case: resolve(case, case.inventory.report)) for _ in range(2)]
        assert [wait_for(child) for child in children] == [0, 0]
        found = results(case.inventory.folder)
        assert ("blocked", "LLM_AUTH") in found
        assert set(found) <= {("blocked", "LLM_AUTH"), ("refused", "CASE_BUSY")}
        assert [(call["stage"], call["attempt"]) for call in calls_in(case.log)] == [
            ("plan", 1),
            ("plan", 2),
            ("assessment", 1),
        ]


def test_many_processes_on_one_workspace_with_different_reports_do_not_meet(tmp_path: Path) -> None:
    case = TroubledCase.write(tmp_path)
    reports = []
    for number in range(32):
        report = tmp_path / f"report-{number}.md"
        report.write_text(REPORT.replace(CASE, f"INC-{100 + number}"))
        reports.append(report)

    def work(report: Path) -> int:
        result = next(iter(case.project(InventoryModel(SEARCHES)).resolve([report])))
        return 0 if result.state == "interpreted" else 1

    children = [start_child(lambda report=report: work(report)) for report in reports]
    assert [wait_for(child) for child in children] == [0] * len(reports)
    host = case.inventory.host()
    packages = [case.inventory.workspace / "cases" / f"INC-{100 + number}" for number in range(32)]
    assert {verify_package(package, host).answer for package in packages} == {"holds"}
    assert os.listdir(case.inventory.workspace / "tmp") == []
