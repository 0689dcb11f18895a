"""`status` where nothing can be written: an archive, a mount of somebody else's, a file system that broke."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from casebound.errors import UnavailableError
from casebound.settings import load_settings
from casebound.store import Workspace
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_command import install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.workspace.status import Status, take_status

pytestmark = pytest.mark.faults

LEAVES_ITS_LOG = """
import os, signal, sys
from pathlib import Path
from casebound.clock import SystemClock
from casebound.settings import load_settings
from casebound.store import Workspace
from casebound.workspace.index import Index
from casebound.workspace.row import derive_row
workspace = Workspace(Path("workspace"))
index = Index.open(workspace, load_settings(Path("casebound.toml")), SystemClock())
index.upsert(derive_row(workspace.package(name)) for name in workspace.package_ids())
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Inventory]:
    """A project on a file system of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    yield write_inventory(folder)
    subprocess.run(["umount", folder], check=True)


def interpret(inventory: Inventory) -> None:
    """Take the one case to its end, and leave nothing of the file system open."""
    with closing(inventory.project(InventoryModel())) as project:
        list(project.resolve([inventory.report]))


def protect(inventory: Inventory) -> None:
    """Let nothing be written from now on."""
    subprocess.run(["mount", "-o", "remount,ro", inventory.folder], check=True)


def taken(inventory: Inventory) -> Status:
    settings = load_settings(inventory.folder / "casebound.toml")
    return take_status(Workspace(inventory.workspace), settings, inventory.clock, ())


def test_an_index_that_is_up_to_date_is_read(mounted: Inventory, tmp_path: Path) -> None:
    interpret(mounted)
    wanted = taken(mounted)
    protect(mounted)
    assert taken(mounted) == wanted
    assert (wanted.states, wanted.error) == ({"interpreted": 1}, None)
    plugins = install_inventory(tmp_path / "plugins")
    done = run_casebound(["status", "--workspace", "workspace"], plugins=plugins, cwd=mounted.folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_index_whose_writer_was_killed_is_read_with_what_its_log_holds(mounted: Inventory) -> None:
    interpret(mounted)
    killed = subprocess.run([sys.executable, "-P", "-c", LEAVES_ITS_LOG], cwd=mounted.folder, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert os.path.getsize(mounted.workspace / "index.sqlite-wal") > 0
    protect(mounted)
    assert taken(mounted).states == {"interpreted": 1}


def test_what_the_index_cannot_be_told_is_said(mounted: Inventory, tmp_path: Path) -> None:
    interpret(mounted)
    taken(mounted)
    (mounted.workspace / "cases" / "later").mkdir()
    protect(mounted)
    found = taken(mounted)
    assert (found.states, found.unknown_cases) == ({"interpreted": 1}, 1)
    assert found.error is not None
    assert found.error.startswith("INDEX_UNAVAILABLE")
    plugins = install_inventory(tmp_path / "plugins")
    done = run_casebound(["status", "--workspace", "workspace"], plugins=plugins, cwd=mounted.folder)
    assert done.returncode == 0
    assert "could not be brought up to date, and does not know 1 case: INDEX_UNAVAILABLE" in done.stdout
    done = run_casebound(
        ["status", "--workspace", "workspace", "--format", "json"], plugins=plugins, cwd=mounted.folder
    )
    assert json.loads(done.stdout)["index"]["unknown_cases"] == 1


def test_without_an_index_one_clear_error_says_why_there_is_none(mounted: Inventory) -> None:
    interpret(mounted)
    protect(mounted)
    with pytest.raises(UnavailableError, match="INDEX_UNAVAILABLE") as caught:
        taken(mounted)
    assert caught.value.found == "Read-only file system"
    assert caught.value.where == str(mounted.workspace / "index.sqlite")
