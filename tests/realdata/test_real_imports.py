"""The real reports, imported as the lines that they are."""

import json
import os
from pathlib import Path

import pytest
from casebound.contracts.case import Admission
from casebound.host import build_host
from casebound.intake.admission import read_again
from casebound.store import Workspace, layout
from casebound.workspace.importing import Import
from casebound_catalog_vcore.testing import find_test_data

pytestmark = pytest.mark.realdata

ROOT = Path(__file__).resolve().parents[2]
HOST = build_host(entry_points=())


@pytest.fixture
def reports():
    data = find_test_data(os.environ, ROOT)
    if data is None:
        pytest.skip("no real data: set CASEBOUND_TEST_DATA")
    return data / "reports-dev.jsonl"


def test_every_real_report_is_imported_once_with_its_text(reports, tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    lines = [json.loads(line) for line in reports.read_text("utf-8").splitlines()]
    for imported, known in ((len(lines), 0), (0, len(lines))):
        summary = Import(workspace, HOST, 1 << 20).run([str(reports)])
        assert (summary.imported, summary.known, summary.refused_total) == (imported, known, 0)
    for line in lines:
        package = workspace.package(line["id"])
        admission = package.load(layout.ADMISSION, Admission)
        report = read_again(package.require(layout.source(admission.file)), admission, HOST.readers)
        assert (report.case_id, report.title, report.body) == (line["id"], line["title"], line["body"])


def test_the_same_reports_as_an_array_are_known(reports, tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    lines = reports.read_text("utf-8").splitlines()
    (tmp_path / "all.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    assert Import(workspace, HOST, 1 << 20).run([str(reports)]).imported == len(lines)
    assert Import(workspace, HOST, 1 << 20).run([str(tmp_path / "all.json")]).known == len(lines)
