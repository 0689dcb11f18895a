"""The script that freezes prompts writes what is missing, and refuses to touch what is there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "freeze_goldens.py"))


def test_nothing_is_frozen_twice(tmp_path):
    SCRIPT["create"](tmp_path / "v1" / "a.json", b"1")
    with pytest.raises(FileExistsError):
        SCRIPT["create"](tmp_path / "v1" / "a.json", b"2")
    assert (tmp_path / "v1" / "a.json").read_bytes() == b"1"


def test_every_version_is_frozen_so_there_is_nothing_to_do(capsys):
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "tests" / "golden").rglob("*")}
    SCRIPT["main"]()
    assert capsys.readouterr().out == ""
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "tests" / "golden").rglob("*")} == before
