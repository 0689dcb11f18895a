"""What a run makes of a disk without room, a workspace that cannot be written, and a clock that is set back."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from casebound.clock import parse_time
from casebound.strict_json import parse_json
from casebound.testing.killable import Commands
from casebound.testing.loopback import Response
from casebound.testing.many_cases import ManyCases, accepted_of, bill
from casebound.testing.model_server import Asked, ModelServer
from casebound.workspace.schema import CASES

pytestmark = pytest.mark.faults

HOUR = 3600
AT = ("--workspace", "workspace")
RUN = ("run", "--jobs", "1", *AT, "--format", "json")
PROVIDER = ["casebound_llm_openai.provider"]


def mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


@pytest.fixture
def on_small_disk(project, tmp_path: Path) -> Iterator[tuple[ManyCases, ModelServer]]:
    """A project whose workspace is a file system of four megabytes."""
    many, server = project("small", ["calm", "stumbling", "calm"])
    many.workspace.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(many.workspace)):
        pytest.skip("mounting a small file system needs root")
    yield many, server
    subprocess.run(["umount", many.workspace], check=True)


@pytest.fixture
def commands() -> Iterator[Commands]:
    with Commands(PROVIDER) as opened:
        yield opened


def test_a_run_on_a_disk_that_fills_up_again_and_again_says_so_and_ends_as_it_would_have(
    project, on_small_disk, commands: Commands
) -> None:
    many, server = on_small_disk
    wanted, _ = project("wanted", ["calm", "stumbling", "calm"])
    for each in (many, wanted):
        assert commands.run(each.order("import", "reports", *AT)).status == 0
    assert commands.run(wanted.order(*RUN)).status == 0
    random, ballast, lost, codes = Random(29), many.workspace / "ballast", 0, set()
    rooms = [0, 4096, *(random.randrange(0, 160_000) for _ in range(60))]
    for room in rooms:
        before, sent = many.files(), len(server.log)
        fill(ballast, leave=room)
        ended = commands.run(many.order(*RUN))
        ballast.unlink()
        after = many.files()
        assert {path: after.get(path) for path in before} == before
        if ended.status == 0:
            break
        assert ended.status in (1, 3), ended
        told = ended.out + ended.err
        assert "No space left" in told or "disk is full" in told, ended
        codes |= {code for code in ("WORKSPACE_WRITE", "INDEX_UNAVAILABLE") if code in told}
        open_calls = sum(attempt.kind is None and not attempt.arrived for attempt in many.attempts())
        assert open_calls <= 1  # the one whose reply found no room; after it nothing was sent
        assert room or len(server.log) == sent
        lost += open_calls
        assert many.verdicts() <= {"unfinished", "holds"}
        assert os.listdir(many.workspace / "tmp") == []
    assert codes >= {"WORKSPACE_WRITE"}
    assert commands.run(many.order(*RUN)).status == 0
    assert accepted_of(many.files()) == accepted_of(wanted.files())
    assert many.verdicts() == {"holds"}
    paid = bill(many, server.counts())
    assert (paid.off_record, paid.repeated) == ((), ())
    assert paid.unknown <= lost


def fill(ballast: Path, leave: int) -> None:
    """Fill the disk up to `leave` bytes."""
    state = os.statvfs(ballast.parent)
    with suppress(OSError), ballast.open("wb") as stream:
        stream.write(bytes(max(0, state.f_bavail * state.f_frsize - leave)))


def test_a_run_on_a_workspace_that_cannot_be_written_sends_nothing_and_says_why(
    on_small_disk, commands: Commands
) -> None:
    many, server = on_small_disk
    assert commands.run(many.order("import", "reports", *AT)).status == 0
    before = many.files()
    assert mount("-o", "remount,ro", str(many.workspace))
    try:
        for arguments in (RUN, ("resolve", many.reports[0], *AT), ("resume", "INC-1", *AT)):
            ended = commands.run(many.order(*arguments))
            assert ended.status in (1, 3), ended
            told = ended.out + ended.err
            assert "WORKSPACE_WRITE" in told or "INDEX_UNAVAILABLE" in told, ended
            assert "read-only" in told.lower(), ended
            assert "Traceback" not in ended.err
        assert commands.run(many.order(*RUN)).status == 3
        assert (many.files(), server.log) == (before, [])
    finally:
        assert mount("-o", "remount,rw", str(many.workspace))
    assert commands.run(many.order(*RUN)).status == 0
    assert many.states() == {"interpreted": 3}


# --- clocks -----------------------------------------------------------------------------------------------------------


def test_a_clock_set_back_between_two_runs_delays_a_retry_and_neither_loses_nor_repeats_it(
    project, commands: Commands
) -> None:
    many, server = project("back", ["calm", "absent"])
    server.trouble("absent", "assessment", Response(status=503))
    assert commands.run(many.order("import", "reports", *AT, ahead_s=HOUR)).status == 0
    assert commands.run(many.order(*RUN, ahead_s=HOUR)).status == 1
    assert many.states() == {"interpreted": 1, "retry_pending": 1}
    sent, before = len(server.log), many.files()
    ended = commands.run(many.order(*RUN, ahead_s=-HOUR))
    assert ended.status == 1
    assert parse_time(parse_json(ended.out.encode())["retry_at"]) == many.progress()["INC-2"].retry_at
    assert (len(server.log), many.files()) == (sent, before)
    assert commands.run(many.order(*RUN, ahead_s=HOUR + 120)).status == 0
    assert many.verdicts() == {"holds"}
    assert len(server.log) == sent + 2


def test_a_lease_from_a_clock_that_was_ahead_holds_up_nobody(project, commands: Commands) -> None:
    many, _ = project("leased", ["calm", "calm"])
    assert commands.run(many.order("import", "reports", *AT)).status == 0
    lease(many, "INC-1", "2099-01-01T00:00:00.000Z")
    assert commands.run(many.order(*RUN)).status == 0
    assert many.states() == {"interpreted": 2}


def lease(many: ManyCases, package_id: str, until: str) -> None:
    """Write a lease as a process on another machine would have."""
    with closing(sqlite3.connect(many.workspace / "index.sqlite")) as connection:
        values = ("elsewhere:boot:1/1:1:00", until, package_id)
        connection.execute(f"UPDATE {CASES.name} SET lease_owner = ?, lease_until = ? WHERE package_id = ?", values)
        connection.commit()


def test_a_clock_set_back_during_a_run_lets_no_second_process_into_a_case(project, commands: Commands) -> None:
    many, server = project("during", ["calm"] * 6, timeout_s=600)
    assert commands.run(many.order("import", "reports", *AT)).status == 0
    go_on, arrived = threading.Event(), threading.Event()

    def hold(asked: Asked) -> None:
        if asked.case == "INC-1" and not arrived.is_set():
            arrived.set()
            assert go_on.wait(300)

    server.arrived = hold
    commands.start(many.order(*RUN))
    assert arrived.wait(120)
    many.set_clock(-2 * HOUR)
    with Commands(PROVIDER) as others:
        second = others.run(many.order(*RUN, ahead_s=-2 * HOUR))
    assert second.status == 1  # one case was another's
    assert parse_json(second.out.encode())["refused_total"] == 0
    assert many.states() == {"interpreted": 5, "researched": 1}
    go_on.set()
    assert commands.wait().status == 0
    assert many.states() == {"interpreted": 6}
    assert many.verdicts() == {"holds"}
    paid = bill(many, server.counts())
    assert (paid.sent, paid.unknown, paid.off_record, paid.repeated) == (18, 0, (), ())
    assert commands.run(many.order("status", *AT)).status == 0
