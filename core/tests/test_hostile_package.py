"""A package of a stranger is data: showing, explaining and verifying it ends in an answer or in an error of ours."""

from __future__ import annotations

import json
import os

import pytest
from casebound.canonical import canonical_bytes, digest_of
from casebound.errors import CaseboundError, IntegrityError, SettingsError
from casebound.store import Package
from casebound.store.layout import Revision
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.verification import verify_package

AT = Revision()


@pytest.fixture
def inventory(tmp_path):
    inventory = write_inventory(tmp_path)
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    return inventory


def change(inventory, path, edit) -> None:
    """Edit the parsed JSON at `path`, and make the seal again, as a forger would."""
    root = inventory.package().root
    value = json.loads((root / path).read_bytes())
    edit(value)
    (root / path).write_bytes(canonical_bytes(value))
    package = Package(root)
    files = {name: data for name, data in package.files() if name != AT.seal}
    listed = [{"path": name, "size": len(data), "digest": digest_of(data)} for name, data in sorted(files.items())]
    (root / AT.seal).write_bytes(canonical_bytes({"format": "casebound-seal/v1", "files": listed}))


def drop(*way):
    def edit(value):
        for key in way[:-1]:
            value = value[key]
        del value[way[-1]]

    return edit


def put(new, *way):
    def edit(value):
        for key in way[:-1]:
            value = value[key]
        value[way[-1]] = new

    return edit


def ended(look) -> str:
    try:
        look("INC-7")
    except CaseboundError as exc:
        return exc.code
    return "shown"


@pytest.mark.parametrize(
    ("path", "edit"),
    [
        (AT.plan, drop("reply", "searches")),
        (AT.plan, put("x", "reply", "searches", 0)),
        (AT.assessment, drop("reply", "resolutions")),
        (AT.assessment, drop("reply", "resolutions", 0, "entity")),
        (AT.assessment, put([], "groundings")),
        (AT.assessment, put(["x"], "reply", "resolutions", 0, "role")),
        (AT.candidates, put([], "searches")),
        ("case.json", put("nowhere", "entities", 0, "mentions", 0, "field")),
        ("case.json", put(None, "entities", 0, "mentions", 0, "field")),
    ],
)
def test_artifacts_that_do_not_fit_together_are_told_and_never_a_bug_of_ours(inventory, path, edit):
    change(inventory, path, edit)
    project = inventory.project(InventoryModel())
    assert verify_package(inventory.package().root, inventory.host()).answer == "does_not_hold"
    assert {ended(project.show), ended(project.explain)} <= {"shown", "VERIFY_FAILED"}
    [result] = project.resolve([inventory.report])
    assert result.code in (None, "VERIFY_FAILED")


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_json_of_any_depth_in_an_artifact_is_refused_as_such(inventory, depth):
    path = inventory.package().root / AT.plan
    value = json.loads(path.read_bytes())
    value["reply"] = "here"
    path.write_bytes(canonical_bytes(value).replace(b'"here"', b'{"a":' * depth + b"1" + b"}" * depth))
    assert verify_package(inventory.package().root, inventory.host()).answer == "does_not_hold"
    project = inventory.project(InventoryModel())
    for look in (project.show, project.explain):
        with pytest.raises(IntegrityError):
            look("INC-7")


def test_folders_without_end_are_refused(inventory):
    root = inventory.package().root
    folder = os.open(root / "analysis", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    with pytest.raises(SettingsError, match="PACKAGE_UNREADABLE"):
        verify_package(root, inventory.host())
    os.rename(root / "analysis" / "d", root / "d")  # what removes temporary folders recurses less than that
    for _ in range(1500):
        os.rename(root / "d", root / "e")
        if (root / "e" / "d").exists():
            os.rename(root / "e" / "d", root / "d")
        os.rmdir(root / "e")


def test_a_hole_of_a_terabyte_is_not_read(inventory):
    root = inventory.package().root
    with open(root / AT.summary, "ab") as file:
        file.truncate(1 << 40)
    answer = verify_package(root, inventory.host())
    assert AT.summary in {finding.file for finding in answer.findings}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("message", "all is well"),
        ("retryable", True),
        ("retry_after_ms", 5),
        ("at", "x"),
        ("at", "2026-13-01T00:00:00.000Z"),
    ],
)
def test_what_an_accepted_reply_cannot_carry_does_not_hold(inventory, key, value):
    """The last attempt: nothing that was written later has its digest but the seal."""
    path = f"{AT.attempt('interpretation', 1)}/outcome.json"
    change(inventory, path, put(value, key))
    answer = verify_package(inventory.package().root, inventory.host())
    assert answer.answer == "does_not_hold"
    assert path in {finding.file for finding in answer.findings}
