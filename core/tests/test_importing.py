"""Many reports become admitted cases: each by itself, once, in constant memory."""

import gc
import json
import os
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace

import pytest
from casebound.contracts.case import Admission
from casebound.errors import SettingsError, UnavailableError
from casebound.host import build_host
from casebound.intake.admission import read_again
from casebound.specs import ReportReader
from casebound.store import Workspace, layout
from casebound.testing.faults import run_in_child
from casebound.workspace import admitting
from casebound.workspace.importing import BATCH, MOST_SHOWN, Import

HOST = build_host(entry_points=())
LIMIT = 1 << 20


@pytest.fixture
def workspace(tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    return workspace


def take(workspace, *paths, package_id=None, **more):
    return Import(workspace, HOST, LIMIT, **more).run([str(path) for path in paths], package_id=package_id)


def counts(summary):
    return summary.imported, summary.known, summary.passed_over, summary.refused_total


def write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def issue(number, repo="router", owner="acme", **changes):
    url = f"https://github.com/{owner}/{repo}/issues/{number}"
    return {"number": number, "title": f"Issue {number}", "body": "b", "comments": [], "url": url, **changes}


def test_a_case_keeps_the_bytes_of_its_own_report_and_is_read_again_from_them(workspace, tmp_path):
    (tmp_path / "a.json").write_text(f'[ {json.dumps(issue(1), indent=1)} ,\n{{"id": "x", "body": "B", "more": 1}}]')
    write(tmp_path / "b.jsonl", {"id": "y", "body": "C"})
    assert counts(take(workspace, tmp_path / "a.json", tmp_path / "b.jsonl")) == (3, 0, 0, 0)
    assert workspace.package_ids() == ["router#1", "x", "y"]
    kept = {}
    for package_id in workspace.package_ids():
        package = workspace.package(package_id)
        admission = package.load(layout.ADMISSION, Admission)
        data = package.require(layout.source(admission.file))
        kept[package_id] = (admission.reader, admission.file, data.decode())
        assert read_again(data, admission, HOST.readers).case_id == package_id
    assert kept == {
        "router#1": ("github", "a.json", json.dumps(issue(1), indent=1)),
        "x": ("record", "a.json", '{"id": "x", "body": "B", "more": 1}'),
        "y": ("record", "b.jsonl", '{"id": "y", "body": "C"}'),
    }


def test_importing_again_adds_nothing(workspace, tmp_path):
    file = write(tmp_path / "a.jsonl", *(issue(number) for number in range(1, 21)), issue(1))
    assert counts(take(workspace, file)) == (20, 1, 0, 0)
    before = {path: path.stat().st_mtime_ns for path in workspace.root.rglob("*")}
    assert counts(take(workspace, file, file)) == (0, 42, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in workspace.root.rglob("*")} == before


def test_the_first_of_two_reports_with_one_id_is_the_case_and_the_other_is_refused(workspace, tmp_path):
    file = write(tmp_path / "a.jsonl", issue(1), issue(1, owner="other"), issue(2))
    for imported, known in ((2, 0), (0, 2)):
        summary = take(workspace, file)
        assert counts(summary) == (imported, known, 0, 1)
        (refused,) = summary.refused
        assert (refused.report, refused.code) == (f"{file}, line 2", "REPORT_DUPLICATE")
        assert "--package-id" in refused.error
    (tmp_path / "other.json").write_text(json.dumps(issue(1, owner="other")))
    assert counts(take(workspace, tmp_path / "other.json", package_id="other-router-1")) == (1, 0, 0, 0)
    assert workspace.package_ids() == ["other-router-1", "router#1", "router#2"]


def test_one_bad_report_is_refused_with_its_place_and_the_rest_goes_on(workspace, tmp_path):
    lines = [
        b'{"id": "a", "body": "A"}',
        b'{"id": "b", "body": "B", "id": "c"}',
        b'{"id": "d", "body": NaN}',
        b"",
        b'{"id": "e", "body": "\xff"}',
        b'{"id": "f", "body": "' + b"x" * LIMIT + b'"}',
        b'{"id": "../g", "body": "G"}',
        b'{"id": "h", "body": "\\ud800"}',
        b'{"id": "i", "body": " "}',
        b"[" * 200_000,
        b'{"id": "j", "title": 5, "body": "J"}',
        b'{"id": "k", "body": "K"}',
        b'{"id": "l", "body": "torn',
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\r\n".join(lines))
    summary = take(workspace, tmp_path / "a.jsonl", tmp_path / "missing.md", tmp_path / "a.docx\0", tmp_path / "b.md\n")
    assert workspace.package_ids() == ["a", "k"]
    told = [(refused.report.removeprefix(f"{tmp_path}/"), refused.code) for refused in summary.refused]
    assert told == [
        ("a.jsonl, line 2", "REPORT_SYNTAX"),
        ("a.jsonl, line 3", "REPORT_SYNTAX"),
        ("a.jsonl, line 5", "REPORT_ENCODING"),
        ("a.jsonl, line 6", "REPORT_TOO_LARGE"),
        ("a.jsonl, line 7", "CASE_ID"),
        ("a.jsonl, line 8", "REPORT_SYNTAX"),
        ("a.jsonl, line 9", "REPORT_EMPTY"),
        ("a.jsonl, line 10", "REPORT_SYNTAX"),
        ("a.jsonl, line 11", "REPORT_SYNTAX"),
        ("a.jsonl, line 13", "REPORT_SYNTAX"),
        ("missing.md", "REPORT_UNREADABLE"),
        ("a.docx\0", "REPORT_UNREADABLE"),
        ("b.md\n", "REPORT_UNREADABLE"),
    ]
    errors = [refused.error for refused in summary.refused]
    assert f"where: {tmp_path}/a.jsonl at /id line 2\n" in errors[0]
    assert f"where: {tmp_path}/a.jsonl at /title line 11\n" in errors[8]
    assert f"where: {tmp_path}/a.jsonl line 13, column " in errors[9]
    assert all("what to do: " in error for error in errors)


def test_a_line_of_half_a_gigabyte_hides_no_other(workspace, tmp_path):
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.write(b'{"id": "a", "body": "A"}\n')
        file.seek(500 << 20)  # a hole: it takes no disk
        file.write(b'\n{"id": "b", "body": "B"}\n')
    tracemalloc.start()
    summary = take(workspace, tmp_path / "a.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts(summary) == (2, 0, 0, 1)
    assert (summary.refused[0].report, summary.refused[0].code) == (f"{tmp_path}/a.jsonl, line 2", "REPORT_TOO_LARGE")
    assert peak < 8 * LIMIT


def test_pull_requests_and_missing_comments_are_counted(workspace, tmp_path):
    file = write(tmp_path / "a.jsonl", issue(1, pull_request={"url": "u"}), issue(2, comments=4), issue(3))
    summary = take(workspace, file)
    assert counts(summary) == (2, 0, 1, 0)
    assert summary.lacking_comments == 1


def test_a_package_id_is_for_one_report(workspace, tmp_path):
    two = write(tmp_path / "a.jsonl", issue(1), issue(2))
    with pytest.raises(SettingsError, match="USAGE"):
        take(workspace, two, package_id="mine")
    assert workspace.package_ids() == []
    one = write(tmp_path / "b.jsonl", issue(1))
    assert counts(take(workspace, one, package_id="mine")) == (1, 0, 0, 0)
    assert counts(take(workspace, one, package_id="mine")) == (0, 1, 0, 0)
    assert counts(take(workspace, one, package_id="../mine")) == (0, 0, 0, 1)


def test_a_report_that_another_import_admits_at_this_moment_is_known(workspace, tmp_path, monkeypatch):
    file = write(tmp_path / "a.jsonl", issue(1))
    exclusive = admitting.exclusive

    def too_late(package, **more):
        monkeypatch.setattr(admitting, "exclusive", exclusive)
        assert counts(take(workspace, file)) == (1, 0, 0, 0)
        return exclusive(package, **more)

    monkeypatch.setattr(admitting, "exclusive", too_late)
    assert counts(take(workspace, file)) == (0, 1, 0, 0)


# --- what is told while it goes on ------------------------------------------------------------------------------------


def test_new_cases_are_told_in_batches_and_known_ones_not(workspace, tmp_path):
    file = write(tmp_path / "a.jsonl", *(issue(number) for number in range(1, 2 * BATCH + 11)))
    batches, seen = [], []
    take(workspace, file, on_batch=batches.append, on_report=lambda running: seen.append(running.summary.total))
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 10]
    assert [package.root.name for batch in batches for package in batch] == [f"router#{n}" for n in range(1, 211)]
    assert seen == list(range(1, 211))
    take(workspace, file, on_batch=batches.append)
    assert len(batches) == 3


def test_a_workspace_that_cannot_be_written_ends_the_import(workspace, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise UnavailableError("WORKSPACE_WRITE", path="x", found="No space left on device")

    monkeypatch.setattr(Workspace, "admit", full)
    seen = []
    with pytest.raises(UnavailableError, match="WORKSPACE_WRITE"):
        take(workspace, write(tmp_path / "a.jsonl", *map(issue, range(100))), on_report=seen.append)
    assert seen == []


def test_an_import_holds_nothing_of_what_it_did(workspace, tmp_path):
    """Refused ones are counted, and the first are shown."""

    def peak(file):
        def sweep(running):  # what waits for the collector is no more held than what was given back
            if running.summary.total % 20 == 0:
                gc.collect()

        tracemalloc.start()
        running = Import(workspace, HOST, LIMIT, on_report=sweep)
        running.run([str(file)])
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size, running

    bad = [{"id": f"bad {number}", "body": "x" * 5000} for number in range(500)]
    good = [issue(number, body="x" * 5000) for number in range(50)]
    some, many = write(tmp_path / "some.jsonl", *good, *bad[:50]), write(tmp_path / "many.jsonl", *good * 10, *bad)
    peak(some)  # what is loaded once
    small, _ = peak(some)
    large, running = peak(many)
    assert large - small < 500_000  # of 900 reports more, with 5,000 characters each
    assert (running.summary.known, running.summary.refused_total) == (500, 500)
    assert len(running.summary.refused) == MOST_SHOWN
    assert (len(running._begun), len(running._new)) == (0, 0)


def test_no_report_makes_it_look_through_the_workspace(workspace, tmp_path, monkeypatch):
    def listed(*args):
        raise AssertionError("the cases were listed")

    monkeypatch.setattr(Workspace, "package_ids", listed)
    monkeypatch.setattr(Workspace, "admissions", listed)
    assert counts(take(workspace, write(tmp_path / "a.jsonl", issue(1), issue(1), issue(2)))) == (2, 1, 0, 0)


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_walked_by_name_without_links_hidden_names_and_pipes(workspace, tmp_path):
    folder = tmp_path / "reports"
    for name in ("b/2.md", "b/.hidden.md", ".git/x.md", "a.txt", "c.JSONL", "d.docx", "e/f/g/1.json", "z.md/1.md"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"id": "{len(name)}", "body": "{name}"}}')
    (folder / "loop").symlink_to(folder)
    (folder / "link.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    os.mkfifo(folder / "pipe.md")
    bad = os.fsencode(folder) + b"/\xff.md"
    with open(bad, "wb") as file:
        file.write(b"\x00")
    summary = take(workspace, folder)
    assert counts(summary) == (5, 0, 0, 1)
    (refused,) = summary.refused
    assert refused.report == f"{folder}/\\udcff.md"
    files = [workspace.package(name).load(layout.ADMISSION, Admission).file for name in workspace.package_ids()]
    assert sorted(files) == ["1.json", "1.md", "2.md", "a.txt", "c.JSONL"]


def test_what_is_named_itself_is_taken_whatever_its_name_or_kind(workspace, tmp_path):
    (tmp_path / ".hidden.md").write_text("hidden")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("in a linked folder")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert counts(take(workspace, tmp_path / ".hidden.md", tmp_path / "link")) == (2, 0, 0, 0)


def test_the_workspace_below_a_folder_is_passed_over(tmp_path, workspace):
    (tmp_path / "a.md").write_text("a report")
    for imported, known in ((1, 0), (0, 1)):
        assert counts(take(workspace, tmp_path)) == (imported, known, 0, 0)


def test_a_folder_that_cannot_be_read_is_refused_and_the_rest_goes_on(workspace, tmp_path):
    for name in ("a", "b"):
        (tmp_path / "reports" / name).mkdir(parents=True)
        (tmp_path / "reports" / name / "x.md").write_text(name)
    (tmp_path / "reports" / "a").chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:3], workspace.root, workspace.cases, workspace.tmp):
        with suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | (0o777 if folder.is_relative_to(workspace.root) else 0o055))

    def nobody_imports():
        if os.geteuid() == 0:
            os.setuid(65534)  # nothing is forbidden to root
        return 3 if counts(take(workspace, tmp_path / "reports")) == (1, 0, 0, 1) else 4

    assert run_in_child(nobody_imports) == 3


def test_files_of_a_plugin_count_in_a_folder(workspace, tmp_path):
    readers = {**HOST.readers, "rst": ReportReader("rst", (".rst",), read="casebound.intake.readers.text:read")}
    host = SimpleNamespace(readers=readers, plugins=())

    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a.rst").write_text("A report")
    assert counts(Import(workspace, host, LIMIT).run([str(tmp_path / "reports")])) == (1, 0, 0, 0)
