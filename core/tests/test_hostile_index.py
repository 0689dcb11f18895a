"""An index that others wrote into: their values lead nowhere, stop nothing, and paint nothing on a terminal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from casebound.render.run import run_nodes
from casebound.render.tree import plain
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.runs import execute
from casebound.testing.scripted import RaisingProvider
from casebound.workspace.place import own_file


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    """A workspace with one case, and an index that knows it."""
    found = write_inventory(tmp_path / "project")
    found.admit(1)
    assert execute(found, RaisingProvider(), stop_after="admission").exit_status == 0
    return found


def write(inventory: Inventory, values: str) -> None:
    file = own_file(inventory.project(RaisingProvider()).workspace)
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(f"update casebound_case set {values}").rowcount == 1


@pytest.mark.parametrize("time", ["soon", "2026-99-99T99:99:99.999Z", ""])
def test_a_time_that_is_none_is_a_broken_index_and_no_broken_runner(inventory: Inventory, time: str) -> None:
    write(inventory, f"state = 'retry_pending', retry_at = '{time}~'")
    summary = execute(inventory, RaisingProvider())
    assert (summary.stopped, summary.exit_status) == ("INDEX_BROKEN", 1)
    assert "casebound reindex" in (summary.error or "")


def test_a_state_that_is_a_command_to_the_terminal_is_shown_as_what_it_is(inventory: Inventory) -> None:
    write(inventory, "state = char(27) || '[31m' || char(8238)")
    summary = execute(inventory, RaisingProvider()).to_json()
    picture = plain(run_nodes({**summary, "retry_at": "\x1b]0;x\x07", "left": 1}, now=""))
    assert "⟦U+001B⟧[31m⟦U+202E⟧  1" in picture
    assert not {"\x1b", "\x07", "\u202e"} & set(picture)
