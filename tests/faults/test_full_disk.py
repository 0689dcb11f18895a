"""No room on the disk: named, nothing half written, nothing paid for without a record; later it goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from casebound.store import disk, write
from casebound.testing.faults import calls_in
from casebound.testing.troubled import CASE, TroubledCase, accepted
from casebound.verification import verify_package

pytestmark = pytest.mark.faults


def test_a_disk_that_fills_up_anywhere_ends_the_command_with_its_name_and_later_the_case_goes_on(
    tmp_path: Path, small_disk: Path
) -> None:
    wanted = TroubledCase.write(tmp_path / "wanted")
    wanted.advance()
    case = TroubledCase.write(small_disk / "project")
    ballast = small_disk / "ballast"
    codes = []
    for room in range(0, 400_000, 12_000):
        fill(ballast, leave=room)
        calls = len(calls_in(case.log))
        with closing(case.project(case.model())) as project:
            result = next(iter(project.resolve([case.inventory.report])))
        if result.code == "LLM_AUTH":
            break
        codes.append(result.code)
        assert result.error is not None
        assert "No space left" in result.error
        requests = [path for path in case.files() if path.endswith("request.json")]
        assert len(calls_in(case.log)) - calls <= len(requests)
        assert len(calls_in(case.log)) <= len(requests)  # no call without its record
        ballast.unlink()
        if (case.root / "package.json").exists():
            assert verify_package(case.root, case.inventory.host()).findings == ()
    assert set(codes) == {"WORKSPACE_WRITE"}
    assert len(codes) >= 2
    ballast.unlink(missing_ok=True)
    case.advance()
    assert accepted(case.files()) == accepted(wanted.files())
    assert verify_package(case.root, case.inventory.host()).answer == "holds"


def fill(ballast: Path, leave: int) -> None:
    """Fill the disk up to `leave` bytes."""
    state = os.statvfs(ballast.parent)
    size = state.f_bavail * state.f_frsize - leave
    with suppress(OSError), ballast.open("wb") as stream:
        stream.write(bytes(max(0, size)))


def full_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    fill = write._fill

    def full(path: str, data: bytes, *where: Any) -> None:
        if path.endswith("request.json"):
            raise OSError(errno.ENOSPC, "full")
        fill(path, data, *where)

    monkeypatch.setattr(write, "_fill", full)


def full_for_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(waiting: Sequence[object]) -> list[OSError]:
        return [OSError(errno.ENOSPC, "full") for _ in waiting]

    monkeypatch.setattr(disk, "_flush_for_all", full)


@pytest.mark.parametrize("fill_disk", [full_for_requests, full_for_flushes])
def test_no_call_is_made_where_its_request_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill_disk: Callable[[pytest.MonkeyPatch], None]
) -> None:
    case = TroubledCase.write(tmp_path)
    fill_disk(monkeypatch)
    results = list(case.project(case.model()).resolve([case.inventory.report]))
    assert [result.code for result in results] == ["WORKSPACE_WRITE"]
    assert calls_in(case.log) == []
    assert not (case.root / "analysis/interpretations/0001/entity-resolution/attempts/plan-0001/request.json").exists()
    monkeypatch.undo()
    case.advance()
    assert case.root.name == CASE
    assert verify_package(case.root, case.inventory.host()).answer == "holds"
