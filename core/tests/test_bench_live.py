"""Live runs: each slot at most once, evidence before anything derived, and an end for good."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import stat
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from casebound import live_runs
from casebound.bench import live, wording
from casebound.bench.live_folder import LiveFolder
from casebound.bench.live_status import derive_status
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.bench_captures import CaptureRecord, Captures
from casebound.contracts.bench_live import LiveStatus, StopCause
from casebound.errors import PluginError, SettingsError, UnavailableError
from casebound.store.lock import exclusive
from casebound.testing.faults import run_in_child, start_child, wait_for
from casebound.testing.live_trial import FIRST, SECOND, LiveTrial
from casebound.testing.scribe import Watched, logged


def run(trial: LiveTrial, name: str = "run") -> LiveStatus:
    """Execute past the comparison of what is installed, which has tests of its own below."""
    asyncio.run(live.execute(trial.execution(name)))
    return status(trial, name)


def status(trial: LiveTrial, name: str = "run") -> LiveStatus:
    return derive_status(LiveFolder(trial.folder / name))


def states(found: LiveStatus) -> list[str]:
    return [slot.state for slot in found.slots]


# --- each slot once -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-120", "B-132")
def test_a_run_leaves_evidence_records_and_captures_for_its_owner_alone(trial: LiveTrial) -> None:
    trial.prepare()
    former = os.umask(0)
    try:
        run(trial)
    finally:
        os.umask(former)
    names = set(trial.files())
    slot = ("reservation.json", "native.json", "native.bin", "record.json", "outcome.json")
    assert names == {
        "plan.json",
        "captures.json",
        "captures.jsonl",
        *(f"requests/000{number}.json" for number in (1, 2)),
        *(f"slots/000{number}/{name}" for number in (1, 2) for name in slot),
    }
    for path in (trial.folder / "run", *(trial.folder / "run").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.spec("B-055", "B-056", "B-057", "B-129", "B-131")
def test_captures_hold_the_exact_output_the_reported_usage_and_no_cost_that_nobody_reported(trial: LiveTrial) -> None:
    plan = trial.prepare()
    run(trial)
    head = Captures.from_bytes((trial.folder / "run/captures.json").read_bytes())
    lines = (trial.folder / "run/captures.jsonl").read_bytes().splitlines()
    assert head is not None
    assert (head.plan_id, head.measurement_id, head.split) == (plan.plan_id, plan.measurement_id, "tuning")
    assert (head.executor, head.model, head.receipts) == ("scribe", "tiny-1", plan.receipts)
    records = [CaptureRecord.from_bytes(line) for line in lines]
    for slot, record in zip(plan.slots, records, strict=True):
        body = (trial.folder / f"run/slots/000{slot.number}/native.bin").read_bytes()
        assert record is not None
        assert record.output is not None
        assert record.output.text == json.loads(body)["text"]
        assert (record.native, record.usage) == (digest_of(body), {"input_tokens": 7, "output_tokens": 3})
        assert record.cost_usd is None
        assert b"cost" not in record.to_bytes()


@pytest.mark.spec("B-121", "B-124")
def test_a_call_that_was_cut_by_a_kill_stays_unknown_and_is_never_made_again(trial: LiveTrial) -> None:
    trial.prepare()

    def die(name: str) -> None:
        if name == "behind a call":
            os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        execution = trial.execution()
        asyncio.run(live.execute(replace(execution, provider=Watched(execution.provider, die))))

    assert run_in_child(work) == -signal.SIGKILL
    assert logged(trial.log) == [FIRST]
    found = run(trial)
    assert (states(found), found.causes) == (["unknown", "planned"], ("unknown_slot",))
    assert (found.complete, found.stopped, found.called) == (False, True, 1)
    assert run(trial) == found
    assert logged(trial.log) == [FIRST]
    (line,) = (trial.folder / "run/captures.jsonl").read_bytes().splitlines()
    assert json.loads(line)["failure"] == {"code": "LLM_CALL_UNKNOWN", "message": None}


@pytest.mark.spec("B-120", "B-122", "B-123")
def test_what_was_derived_can_be_derived_again_from_the_evidence_to_the_same_bytes(trial: LiveTrial) -> None:
    trial.prepare()
    run(trial)
    files = trial.files()
    derived = [name for name in files if name.endswith(("record.json", "outcome.json", "captures.json", ".jsonl"))]
    assert len(derived) == 6
    for gone in (*([name] for name in derived), derived):
        for name in gone:
            (trial.folder / "run" / name).unlink()
        run(trial)
        assert trial.files() == files, gone
    assert logged(trial.log) == [FIRST, SECOND]


@pytest.mark.spec("B-119")
def test_of_many_that_want_a_slot_exactly_one_gets_its_reservation(trial: LiveTrial) -> None:
    plan = trial.prepare()
    LiveFolder(trial.folder / "run", writing=True).prepare()
    ready, go = os.pipe()

    def want() -> int:
        os.close(go)
        os.read(ready, 1)
        folder = LiveFolder(trial.folder / "run", writing=True)
        return 10 if asyncio.run(folder.reserve(plan, plan.slots[0], trial.clock.now())) else 20

    children = [start_child(want) for _ in range(8)]
    os.close(ready)
    os.close(go)
    assert sorted(map(wait_for, children)) == [10] + [20] * 7


@pytest.mark.spec("B-119", "B-125")
def test_of_two_executors_at_once_each_slot_gets_one_call(trial: LiveTrial) -> None:
    trial.prepare()
    ready, go = os.pipe()

    def work() -> int:
        os.close(go)
        execution = trial.execution()
        os.read(ready, 1)
        try:
            asyncio.run(live.execute(execution))
        except UnavailableError as exc:
            return 20 if exc.code == "CASE_BUSY" else 30
        return 10

    children = [start_child(work) for _ in range(4)]
    os.close(ready)
    os.close(go)
    assert {wait_for(child) for child in children} <= {10, 20}
    assert logged(trial.log) == [FIRST, SECOND]
    assert states(run(trial)) == ["admitted", "admitted"]


@pytest.mark.spec("B-119")
def test_who_finds_a_slot_reserved_by_somebody_else_calls_nobody_even_where_no_lock_held(trial: LiveTrial) -> None:
    plan = trial.prepare()
    execution = trial.execution()
    execution.folder.prepare()
    assert asyncio.run(execution.folder.reserve(plan, plan.slots[0], trial.clock.now()))
    with pytest.raises(UnavailableError, match="CASE_BUSY"):
        asyncio.run(live._call(execution, plan.slots[0]))
    assert logged(trial.log) == []


def test_nothing_is_called_where_the_reservation_cannot_be_written(trial: LiveTrial) -> None:
    trial.prepare()

    def work() -> int:
        execution = trial.execution()
        watched = Watched(execution.provider, lambda name: os._exit(30))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # what a full disk is to whoever writes
        try:
            asyncio.run(live.execute(replace(execution, provider=watched)))
        except UnavailableError as exc:
            return 10 if exc.code == "WORKSPACE_WRITE" else 20
        return 40

    assert run_in_child(work) == 10
    assert states(status(trial)) == ["planned", "planned"]
    assert states(run(trial)) == ["admitted", "admitted"]


# --- what stops a run -----------------------------------------------------------------------------------------------

STOPS = {
    "timeout": ("call_failure", "call_failure", "LLM_TIMEOUT"),
    "busy": ("call_failure", "call_failure", "LLM_RATE_LIMITED"),
    "unknown": ("call_failure", "unknown_slot", "LLM_CALL_UNKNOWN"),
    "prose": ("parse_failure", "parse_failure", "LLM_OUTPUT_JSON"),
    "cut": ("parse_failure", "parse_failure", "LLM_INCOMPLETE_OUTPUT"),
    "refusal": ("parse_failure", "parse_failure", "LLM_REFUSED"),
    "schema": ("schema_rejection", "schema_rejection", "LLM_OUTPUT_SCHEMA"),
    "binding": ("binding_rejection", "binding_rejection", "ENTITY_RESOLUTION_UNREAD_SOURCE"),
    "tool": ("parse_failure", "tools_observed", "LLM_OUTPUT_JSON"),
    "no_usage": ("admitted", "usage_unreported", None),
}


@pytest.mark.spec("B-124", "B-125")
@pytest.mark.parametrize("behaviour", STOPS)
def test_each_cause_stops_the_run_for_good_after_one_call_without_a_retry(trial: LiveTrial, behaviour: str) -> None:
    trial.prepare(behaviour={"printer": behaviour})
    state, cause, code = STOPS[behaviour]
    for _ in range(2):
        found = run(trial)
        assert states(found) == [state, "planned"]
        assert (found.causes, found.slots[0].code) == ((cause,), code)
        assert (found.complete, found.stopped, found.called) == (False, True, 1)
        assert logged(trial.log) == [FIRST]
    assert len((trial.folder / "run/captures.jsonl").read_bytes().splitlines()) == 1


def test_every_cause_of_a_plan_has_its_test() -> None:
    tested = {cause for _, cause, _ in STOPS.values()}
    assert tested | {"cancelled"} == set(get_args(StopCause))


def test_a_disagreement_with_the_author_stops_nothing(trial: LiveTrial) -> None:
    trial.prepare(behaviour={"printer": "other"})
    found = run(trial)
    assert (found.complete, found.stopped) == (True, False)


def test_a_failure_of_the_last_slot_leaves_a_run_that_is_complete_and_stopped(trial: LiveTrial) -> None:
    trial.prepare(behaviour={"door": "prose"})
    found = run(trial)
    assert (found.complete, found.stopped, found.causes) == (True, True, ("parse_failure",))


@pytest.mark.spec("B-130")
def test_a_cancelled_call_is_kept_as_attempted_and_never_made_again(trial: LiveTrial) -> None:
    trial.prepare(behaviour={"printer": "hang"})

    async def cancel_once_called() -> None:
        task = asyncio.create_task(live.execute(trial.execution()))
        while not logged(trial.log):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_once_called())
    found = run(trial)
    assert (states(found), found.causes, found.called) == (["cancelled", "planned"], ("cancelled",), 1)
    assert logged(trial.log) == [FIRST]
    (line,) = (trial.folder / "run/captures.jsonl").read_bytes().splitlines()
    assert json.loads(line)["status"] == "cancelled"


def test_a_provider_that_breaks_leaves_an_unknown_slot_and_an_error_that_names_it(trial: LiveTrial) -> None:
    trial.prepare(behaviour={"printer": "broken"})
    with pytest.raises(PluginError, match="provider scribe, send"):
        run(trial)
    assert states(run(trial)) == ["unknown", "planned"]
    assert logged(trial.log) == [FIRST]


@pytest.mark.spec("B-042")
def test_a_checker_that_breaks_is_no_failure_of_the_model_and_the_reply_is_kept(trial: LiveTrial) -> None:
    trial.prepare()
    execution = trial.execution()

    def broken(reply: object) -> str:
        raise PluginError("PLUGIN_BROKEN", where="checker")

    with pytest.raises(PluginError):
        asyncio.run(live.execute(replace(execution, subject=replace(execution.subject, assessment_of=broken))))
    assert states(status(trial)) == ["answered", "planned"]
    assert states(run(trial)) == ["admitted", "admitted"]
    assert logged(trial.log) == [FIRST, SECOND]


# --- check ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-126", "B-127")
def test_check_writes_nothing_calls_nobody_and_says_how_far_a_run_is(trial: LiveTrial) -> None:
    trial.prepare()
    execution = trial.execution()

    def stop_before_the_second(name: str) -> None:
        if name == "before a call" and logged(trial.log):
            raise KeyboardInterrupt

    fresh = status(trial)
    assert (states(fresh), fresh.complete, fresh.stopped, fresh.captures) == (["planned"] * 2, False, False, None)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(live.execute(replace(execution, provider=Watched(execution.provider, stop_before_the_second))))
    before, modes = trial.files(), _modes(trial.folder / "run")
    found = check(trial)
    assert (states(found), found.complete, found.stopped) == (["admitted", "unknown"], False, True)
    assert found.limitations == wording.OF_A_PLAN
    assert (trial.files(), _modes(trial.folder / "run"), logged(trial.log)) == (before, modes, [FIRST])


def _modes(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mode, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_check_of_a_run_under_way_says_so_and_calls_no_slot_unknown(trial: LiveTrial) -> None:
    plan = trial.prepare()
    folder = LiveFolder(trial.folder / "run", writing=True)
    folder.prepare()
    assert asyncio.run(folder.reserve(plan, plan.slots[0], trial.clock.now()))
    with exclusive(folder.package):
        found = status(trial)
    assert (found.running, found.stopped, states(found)) == (True, False, ["under_way", "planned"])
    assert (status(trial).running, states(status(trial))) == (False, ["unknown", "planned"])


def check(trial: LiveTrial) -> LiveStatus:
    return live_runs.check(trial.folder / "run", host=trial.host, clock=trial.clock)


def compare(trial: LiveTrial) -> object:
    run = trial.folder / "run"
    return live_runs.compare_runs((run, run), host=trial.host, clock=trial.clock)


def execute(trial: LiveTrial) -> LiveStatus:
    confirmed = json.loads((trial.folder / "run/plan.json").read_bytes())["planId"]
    return live_runs.execute(trial.folder / "run", confirmed, host=trial.host, clock=trial.clock)


@pytest.mark.parametrize("name", ["reservation.json", "native.json", "native.bin", "record.json", "outcome.json"])
def test_a_file_of_a_slot_that_was_altered_is_named(trial: LiveTrial, name: str) -> None:
    trial.prepare()
    run(trial)
    path = trial.folder / "run/slots/0001" / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with pytest.raises(SettingsError) as caught:
        status(trial)
    assert caught.value.exit_status == 2
    assert "slots/0001/" in str(caught.value)


def rewrite(path: Path, **changes: object) -> None:
    """Write a canonical object anew, as a forger would."""
    path.write_bytes(canonical_bytes({**json.loads(path.read_bytes()), **changes}))


def put_garbage(run: Path) -> None:
    (run / "slots/0002/native.bin").write_bytes(b"garbage")


def add_a_byte(run: Path) -> None:
    with (run / "slots/0002/native.bin").open("ab") as file:
        file.write(b" ")


def remove_native(run: Path) -> None:
    for name in ("native.json", "native.bin"):
        (run / "slots/0002" / name).unlink()


def replace_native(run: Path) -> None:
    """Bytes and what binds them, of another reply."""
    for name in ("native.json", "native.bin"):
        shutil.copy(run / "slots/0001" / name, run / "slots/0002" / name)


def forge_record(run: Path) -> None:
    """Another usage, with the digest fixed wherever it stands."""
    record, outcome = run / "slots/0002/record.json", run / "slots/0002/outcome.json"
    rewrite(record, usage={"input_tokens": 1, "output_tokens": 1})
    rewrite(outcome, record=digest_of(record.read_bytes()))
    bind_captures(run, b"".join((run / f"slots/000{n}/record.json").read_bytes() + b"\n" for n in (1, 2)))


def forge_outcome(run: Path) -> None:
    rewrite(run / "slots/0002/outcome.json", state="schema_rejection", code="LLM_OUTPUT_SCHEMA")


def forge_cause(run: Path) -> None:
    rewrite(run / "slots/0002/outcome.json", stops="call_failure")


def edit_captures(run: Path) -> None:
    bind_captures(run, (run / "captures.jsonl").read_bytes().replace(b'"input_tokens":7', b'"input_tokens":8'))


def bind_captures(run: Path, lines: bytes) -> None:
    (run / "captures.jsonl").write_bytes(lines)
    rewrite(
        run / "captures.json",
        records={"file": "captures.jsonl", "count": 2, "bytes": len(lines), "digest": digest_of(lines)},
    )


def edit_head(run: Path) -> None:
    rewrite(run / "captures.json", executor="somebody")


def remove_lines(run: Path) -> None:
    (run / "captures.jsonl").unlink()


ALTERATIONS = {
    put_garbage: "slots/0002/native.bin",
    add_a_byte: "slots/0002/native.bin",
    remove_native: "slots/0002/record.json",
    replace_native: "slots/0002/record.json",
    forge_record: "slots/0002/record.json",
    forge_outcome: "slots/0002/outcome.json",
    forge_cause: "slots/0002/outcome.json",
    edit_captures: "captures.jsonl",
    edit_head: "captures.json",
}


@pytest.mark.spec("B-120", "B-122", "B-123", "B-132")
@pytest.mark.parametrize("command", [check, execute, compare])
@pytest.mark.parametrize("alter", ALTERATIONS)
def test_evidence_of_a_finished_run_that_was_altered_or_removed_is_refused(trial: LiveTrial, alter, command) -> None:
    trial.prepare()
    run(trial)
    command(trial)
    alter(trial.folder / "run")
    before = trial.files()
    with pytest.raises(SettingsError, match="BENCH_LIVE") as caught:
        command(trial)
    assert caught.value.exit_status == 2
    assert ALTERATIONS[alter] in str(caught.value)
    assert (trial.files(), logged(trial.log)) == (before, [FIRST, SECOND])


def test_a_head_without_its_lines_is_refused_until_execute_derives_them_again(trial: LiveTrial) -> None:
    trial.prepare()
    run(trial)
    files = trial.files()
    remove_lines(trial.folder / "run")
    with pytest.raises(SettingsError, match=r"(?s)captures\.jsonl.*execute"):
        check(trial)
    execute(trial)
    assert trial.files() == files


def test_where_nothing_can_be_derived_again_check_says_so_and_still_compares_digests(trial: LiveTrial) -> None:
    trial.prepare()
    run(trial)
    shutil.rmtree(trial.bundle_path)
    assert check(trial).limitations == (*wording.OF_A_PLAN, wording.NOT_DERIVED_AGAIN)
    replace_native(trial.folder / "run")
    with pytest.raises(SettingsError, match=r"slots/0002/record\.json"):
        check(trial)


# --- a slot without its reservation ---------------------------------------------------------------------------------


@pytest.mark.spec("B-119", "B-123")
@pytest.mark.parametrize("kept", ["everything else", "native.bin", "ending.json", "record.json", "outcome.json"])
def test_a_slot_that_lost_its_reservation_is_refused_and_nobody_is_called(trial: LiveTrial, kept: str) -> None:
    trial.prepare(behaviour={"door": "timeout"} if kept == "ending.json" else {})
    run(trial)
    folder = trial.folder / "run"
    for name in ("captures.json", "captures.jsonl"):
        (folder / name).unlink()
    for path in (folder / "slots/0002").iterdir():
        if path.name == "reservation.json" or kept not in (path.name, "everything else"):
            path.unlink()
    for command in (check, execute):
        with pytest.raises(SettingsError, match=r"(?s)BENCH_LIVE.*slots/0002/") as caught:
            command(trial)
        assert caught.value.exit_status == 2
    assert logged(trial.log) == [FIRST, SECOND]


@pytest.mark.spec("B-123")
def test_a_slot_that_is_gone_before_another_that_was_called_is_not_called_again(trial: LiveTrial) -> None:
    trial.prepare()
    run(trial)
    folder = trial.folder / "run"
    for path in (folder / "captures.json", folder / "captures.jsonl"):
        path.unlink()
    shutil.rmtree(folder / "slots/0001")
    for command in (check, execute):
        with pytest.raises(SettingsError, match=r"(?s)BENCH_LIVE.*slots/0002/"):
            command(trial)
    assert logged(trial.log) == [FIRST, SECOND]


@pytest.mark.spec("B-123")
@pytest.mark.parametrize("gone", ["slots/0001", "slots/0002", "slots"])
@pytest.mark.parametrize("captures", ["both", "head", "lines", "forged"])
def test_captures_end_dispatch_for_good_whatever_became_of_the_slots(trial: LiveTrial, gone: str, captures) -> None:
    trial.prepare()
    run(trial)
    folder = trial.folder / "run"
    shutil.rmtree(folder / gone)
    if captures == "head":
        (folder / "captures.jsonl").unlink()
    if captures == "lines":
        (folder / "captures.json").unlink()
    if captures == "forged":
        left = sorted(folder.glob("slots/*/record.json"))
        bind_captures(folder, b"".join(path.read_bytes() + b"\n" for path in left))
    for command in (check, execute):
        with pytest.raises(SettingsError, match=r"(?s)BENCH_LIVE.*(captures\.json|where slot 1 was not)"):
            command(trial)
    assert logged(trial.log) == [FIRST, SECOND]


def test_a_folder_without_a_plan_is_no_live_run(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="BENCH_FILE"):
        live_runs.check(tmp_path)
