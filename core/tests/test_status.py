"""How a workspace stands, from the rows of its index: sums that are made there, and what a person sees of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import timedelta

import pytest
from casebound.clock import format_time
from casebound.errors import ProviderError, SettingsError
from casebound.render.status import status_parts
from casebound.settings import load_settings
from casebound.store import Workspace
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_command import install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import FixedClock, ModelReply, native_reply
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.row import MOST_TOKENS, CaseRow, derive_row
from casebound.workspace.status import MOST_LISTED, read_status, take_status

LEASE_S = 60


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


@pytest.fixture
def index(inventory, clock):
    workspace = Workspace(inventory.workspace)
    workspace.prepare()
    index = Index.open(workspace, load_settings(inventory.folder / "casebound.toml"), clock)
    yield index
    index.close()


def at(clock, seconds=0.0):
    return format_time(clock.now() + timedelta(seconds=seconds))


def status(index, clock):
    return read_status(index, clock, LEASE_S).to_json()


def test_an_empty_workspace_is_told_as_one(index, clock):
    found = status(index, clock)
    assert (found["states"], found["cases"], found["finished"], found["calls"]) == ({}, 0, 0, 0)
    assert found["tokens"] == {"input": 0, "output": 0, "unreported_calls": 0}
    assert [found[key] for key in ("waiting", "blocked", "review", "stopped", "leased")] == [[], [], [], [], []]


def test_states_calls_and_tokens_are_summed_and_what_nobody_reported_is_counted(index, clock):
    index.upsert(
        [
            CaseRow("a", state="interpreted", finished=True, calls=3, input_tokens=300, output_tokens=30),
            CaseRow("b", state="interpreted", finished=False, calls=4, input_tokens=5, unreported_calls=3),
            CaseRow("c", state="planned", calls=2, unreported_calls=1, unknown_calls=1),
        ]
    )
    found = status(index, clock)
    assert found["states"] == {"interpreted": 2, "planned": 1}
    assert (found["cases"], found["finished"], found["calls"], found["unknown_calls"]) == (3, 1, 9, 1)
    assert found["tokens"] == {"input": 305, "output": 30, "unreported_calls": 4}


def test_the_rate_is_of_the_cases_whose_last_call_was_within_the_hour(index, clock):
    clock.advance(86_400)
    rows = {"now": 0, "an hour ago": -3600, "longer ago": -3600.001, "later than now": 1}
    index.upsert(
        CaseRow(f"case-{number}", state="interpreted", finished=True, calls=3, last_call_at=at(clock, seconds))
        for number, seconds in enumerate(rows.values())
    )
    index.upsert([CaseRow("open", state="planned", calls=1, last_call_at=at(clock, -60)), CaseRow("fresh")])
    assert status(index, clock)["rate"] == {"seconds": 3600, "cases": 3, "finished": 2, "calls": 7}


def test_what_waits_is_told_by_code_with_how_many_may_go_on_and_from_when_the_next(index, clock):
    index.upsert(
        [
            CaseRow("b1", state="blocked", code="RESEARCH_UNAVAILABLE", retry_at=at(clock, 60)),
            CaseRow("b2", state="blocked", code="RESEARCH_UNAVAILABLE", retry_at=at(clock, 30)),
            CaseRow("b3", state="blocked", code="RESEARCH_UNAVAILABLE", retry_at=at(clock)),
            CaseRow("b4", state="blocked", code="LLM_AUTH", retry_at=at(clock, -1)),
            CaseRow("p1", state="retry_pending", code="LLM_TIMEOUT", retry_at=at(clock, 5)),
            CaseRow("r1", case_id="INC-1", state="review", code="INTERPRETATION_INVALID_RESPONSES"),
        ]
    )
    found = status(index, clock)
    keys = ("state", "code", "cases", "due", "earliest")
    assert [tuple(group[key] for key in keys) for group in found["waiting"]] == [
        ("blocked", "LLM_AUTH", 1, 1, None),
        ("blocked", "RESEARCH_UNAVAILABLE", 3, 1, at(clock, 30)),
        ("retry_pending", "LLM_TIMEOUT", 1, 0, at(clock, 5)),
        ("review", "INTERPRETATION_INVALID_RESPONSES", 1, 0, None),
    ]
    assert [case["package"] for case in found["blocked"]] == ["b4", "b3", "b2", "b1"]  # as their times come
    assert found["review"] == [
        {"package": "r1", "case_id": "INC-1", "code": "INTERPRETATION_INVALID_RESPONSES", "retry_at": None}
    ]


def test_of_many_blocked_cases_the_first_are_listed_and_all_are_counted(index, clock):
    many = MOST_LISTED + 7
    index.upsert(
        CaseRow(f"b{number:03d}", state="blocked", code="LLM_QUOTA", retry_at=at(clock, many - number))
        for number in range(many)
    )
    found = status(index, clock)
    assert (len(found["blocked"]), found["blocked_total"]) == (MOST_LISTED, many)
    assert found["blocked"][0]["package"] == f"b{many - 1:03d}"  # its time comes first
    assert "and 7 more" in list(status_parts(found))


def test_what_a_run_left_as_it_was_is_told_with_the_code_of_the_run(index, clock):
    index.release_all("owner", [(CaseRow("a", state="planned"), "BINDING_CHANGED")])
    found = status(index, clock)
    assert found["stopped"] == [{"package": "a", "case_id": None, "code": "BINDING_CHANGED", "retry_at": None}]
    assert found["stopped_total"] == 1


def test_who_is_at_work_is_told_and_who_has_ended(index, clock):
    asked = (
        f"import sys; sys.path[:] = {sys.path!r}\nfrom casebound.workspace.lease import new_owner\nprint(new_owner())"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    dead, alive, elsewhere = done.stdout.strip(), new_owner(), "other-host:boot:1/77:5:abc"
    for owner, names in {dead: ["a"], alive: ["b", "c"], elsewhere: ["d"]}.items():
        for name in names:
            assert index.hold(owner, CaseRow(name))
    told = {worker["process"]: worker for worker in status(index, clock)["leased"]}
    assert {process: (worker["cases"], worker["lives"]) for process, worker in told.items()} == {
        dead.split("/")[1].split(":")[0]: (1, False),
        alive.split("/")[1].split(":")[0]: (2, True),
        "77": (1, True),  # nobody here can know
    }
    assert told["77"]["host"] == "other-host"
    assert told["77"]["until"] == at(clock, LEASE_S)
    clock.advance(LEASE_S)
    assert [worker["lives"] for worker in status(index, clock)["leased"]] == [False] * 3
    clock.set_now(clock.now() - timedelta(days=1))  # a lease that lasts longer than any is none
    assert [worker["lives"] for worker in status(index, clock)["leased"]] == [False] * 3


# --- what a person sees -----------------------------------------------------------------------------------------------


def test_the_picture_holds_what_the_object_holds(index, clock):
    index.upsert(
        [
            CaseRow("a", state="interpreted", finished=True, calls=1, input_tokens=7, output_tokens=2),
            CaseRow("b", state="blocked", code="LLM_QUOTA", retry_at=at(clock, 60), calls=2, unreported_calls=2),
            CaseRow("r", state="review", code="INTERPRETATION_INVALID_RESPONSES"),
        ]
    )
    index.hold(new_owner(), CaseRow("w"))
    parts = list(status_parts(status(index, clock)))
    lines = [part for part in parts if isinstance(part, str)]
    assert lines[0] == "4 cases, 1 finished; 3 calls; tokens reported: 7 in, 2 out, nothing for 2 calls"
    rows = [row for part in parts if not isinstance(part, str) for row in part[1]]
    assert ["blocked", "LLM_QUOTA", "1", "0", at(clock, 60), "casebound resume --due"] in rows
    assert ["b", "LLM_QUOTA", at(clock, 60)] in rows
    assert ["r", "INTERPRETATION_INVALID_RESPONSES"] in rows
    assert all(len(row) == len(part[0]) for part in parts if not isinstance(part, str) for row in part[1])


# --- where the numbers come from --------------------------------------------------------------------------------------


def test_a_row_tells_what_was_reported_and_by_how_many_calls_it_was_not(inventory):
    absurd = ModelReply.from_json(
        {
            "format": "casebound-reply/v1",
            "text": "no JSON",
            "finish_reason": "stop",
            "usage": {"input_tokens": MOST_TOKENS + 1, "output_tokens": 1},
        }
    )
    busy = ProviderError("LLM_RATE_LIMITED", retryable=True)
    model = InventoryModel(scripted={"plan": [native_reply("no JSON"), absurd, busy]})
    assert inventory.resolve(model).state == "retry_pending"
    inventory.clock.advance(90)
    assert inventory.resolve(model).state == "interpreted"
    row = derive_row(inventory.package())
    assert (row.calls, row.input_tokens, row.output_tokens, row.unreported_calls) == (6, 300, 30, 2)
    assert row.last_call_at == format_time(inventory.clock.now())


# --- the whole workspace ----------------------------------------------------------------------------------------------


def test_status_brings_the_index_up_to_date_first_and_changes_no_case(inventory):
    inventory.resolve(InventoryModel(scripted={"plan": [ProviderError("LLM_QUOTA", retryable=False)]}))
    before = {path: inventory.package().read(path) for path in inventory.package().paths()}
    found = taken(inventory)
    assert (found["states"], found["index"]) == ({"blocked": 1}, {"unknown_cases": 0, "error": None})
    inventory.resolve(InventoryModel(), package_id="second")
    found = taken(inventory)
    assert (found["states"], found["finished"], found["calls"]) == ({"blocked": 1, "interpreted": 1}, 1, 4)
    assert {path: inventory.package("INC-7").read(path) for path in inventory.package("INC-7").paths()} == before
    shutil.rmtree(inventory.workspace / "cases" / "second")
    assert taken(inventory)["states"] == {"blocked": 1}


def test_where_there_is_no_workspace_none_is_made(inventory):
    with pytest.raises(SettingsError, match="USAGE") as caught:
        taken(inventory)
    assert "casebound import" in caught.value.expected
    assert not inventory.workspace.exists()


def test_the_command_prints_the_object_or_a_picture_of_it(inventory, tmp_path):
    inventory.resolve(InventoryModel(scripted={"plan": [ProviderError("LLM_QUOTA", retryable=False)]}))
    plugins = install_inventory(tmp_path / "plugins")
    arguments = ["status", "--workspace", "workspace"]
    done = run_casebound([*arguments, "--format", "json"], plugins=plugins, cwd=inventory.folder)
    found = json.loads(done.stdout)
    assert {**found, "at": None, "rate": None, "waiting": None} == {
        **taken(inventory),
        "at": None,
        "rate": None,
        "waiting": None,
    }
    done = run_casebound(arguments, plugins=plugins, cwd=inventory.folder)
    assert (done.returncode, done.stderr) == (0, "")
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["INC-7", "LLM_QUOTA", "2026-11-01T08:01:00.000Z"] in words
    assert words[0] == ["state", "cases"]
    assert [] not in (words[0], words[-1])
    assert done.stdout.count("\n\n\n") == 0


def taken(inventory):
    settings = load_settings(inventory.folder / "casebound.toml")
    return take_status(Workspace(inventory.workspace), settings, inventory.clock, ()).to_json()
