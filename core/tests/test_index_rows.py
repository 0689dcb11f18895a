"""A row of the index follows from the files of its package, and from nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.clock import format_time
from casebound.contracts.model_call import ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.progress import derive_progress
from casebound.store import Workspace
from casebound.testing.faults import run_in_child
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_phases import set_budget
from casebound.testing.scripted import native_reply
from casebound.workspace.row import DERIVED, CaseRow, derive_row

PHASES = ("hypothesis", "investigation")


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path)


def row(inventory: Inventory, phases: tuple[str, ...] = ()) -> CaseRow:
    return derive_row(inventory.package(), phases)


def test_a_row_follows_a_case_through_its_phases(inventory: Inventory) -> None:
    states = []
    for phase in ("admission", "construction", "research", None):
        inventory.resolve(InventoryModel(), stop_after=phase)
        states.append(row(inventory))
    assert [found.state for found in states] == ["admitted", "built", "researched", "interpreted"]
    assert [found.finished for found in states] == [False, False, False, True]
    assert {found.case_id for found in states} == {"INC-7"}
    assert states[0] == CaseRow("INC-7", "INC-7", "admitted")
    assert (states[-1].calls, states[-1].input_tokens, states[-1].output_tokens) == (3, 300, 30)


def test_a_folder_without_anything_is_a_new_case_without_an_id(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.prepare()
    workspace.admit(workspace.package("INC-1"))
    assert derive_row(workspace.package("INC-1")) == CaseRow("INC-1")


def test_calls_and_tokens_are_those_of_all_interpretations(inventory: Inventory) -> None:
    inventory.resolve(InventoryModel())
    inventory.project(InventoryModel()).revise("INC-7")
    found = row(inventory)
    assert (found.calls, found.input_tokens, found.output_tokens) == (6, 6 * 100, 6 * 10)


@pytest.mark.parametrize(
    "usage", [Usage(input_tokens=7), Usage(output_tokens=0), Usage(input_tokens=2**53 - 1, output_tokens=5), Usage()]
)
def test_a_call_that_reported_no_sensible_tokens_is_counted_as_such_and_adds_none(
    inventory: Inventory, usage: Usage
) -> None:
    inventory.resolve(InventoryModel(scripted={"plan": [native_reply({"searches": []}, usage=usage)]}))
    found = row(inventory)
    assert (found.calls, found.input_tokens, found.output_tokens, found.unreported_calls) == (2, 100, 10, 1)


def test_a_wait_stands_in_the_row_with_its_stage_and_its_time(inventory: Inventory) -> None:
    error = ProviderError("LLM_RATE_LIMITED", retryable=True, retry_after=90)
    inventory.resolve(InventoryModel(scripted={"assessment": [error]}))
    found = row(inventory)
    progress = derive_progress(inventory.package())
    assert progress.retry_at is not None
    assert (found.state, found.code, found.stage) == ("retry_pending", "LLM_RATE_LIMITED", "assessment")
    assert found.retry_at == format_time(progress.retry_at)
    assert (found.calls, found.unknown_calls, found.unreported_calls, found.input_tokens) == (2, 0, 0, 100)


def test_a_call_whose_reply_never_came_counts_as_one_and_as_unknown(inventory: Inventory) -> None:
    inventory.configure(settings_text(llm='unknown_calls = "hold"'))

    class Killed(InventoryModel):
        async def send(self, request: ModelRequest) -> NativeReply:
            os._exit(9)

    assert run_in_child(lambda: inventory.resolve(Killed())) == 9
    sent = row(inventory)
    assert (sent.calls, sent.unknown_calls, sent.unreported_calls, sent.last_call_at) == (1, 0, 1, None)
    inventory.resolve(InventoryModel())
    found = row(inventory)
    assert (found.state, found.code) == ("blocked", "LLM_CALL_UNKNOWN")
    assert (found.calls, found.unknown_calls, found.unreported_calls) == (1, 1, 1)
    assert found.last_call_at == format_time(inventory.clock.now())


def test_a_case_is_finished_when_the_phases_of_plugins_have_run_too(inventory: Inventory) -> None:
    set_budget(inventory.workspace, 10)
    inventory.resolve(InventoryModel(), phases=True, stop_after="hypothesis")
    assert [row(inventory, phases).finished for phases in ((), PHASES[:1], PHASES)] == [True, True, False]
    inventory.resolve(InventoryModel(), phases=True)
    assert row(inventory, PHASES).finished
    inventory.project(InventoryModel()).revise("INC-7")
    assert not row(inventory, PHASES).finished
    assert row(inventory).finished


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("admission.json", "STORE_JSON"),
        ("analysis/interpretations/0001/entity-resolution/attempts/plan-0001/reply.json", "STORE_JSON"),
        ("analysis/interpretations/0001/entity-resolution/attempts/plan-0001/outcome.json", "STORE_JSON"),
    ],
)
def test_a_package_that_does_not_hold_has_a_row_that_says_so(inventory: Inventory, path: str, code: str) -> None:
    inventory.resolve(InventoryModel())
    (inventory.package().root / path).write_bytes(b"{}x")
    found = row(inventory)
    assert found == CaseRow("INC-7", state="broken", code=code)


def test_a_link_in_the_place_of_a_package_has_a_row_that_says_so(inventory: Inventory) -> None:
    inventory.resolve(InventoryModel())
    workspace = Workspace(inventory.workspace)
    (workspace.cases / "INC-8").symlink_to(workspace.cases / "INC-7")
    found = derive_row(workspace.package("INC-8"))
    assert (found.state, found.code) == ("broken", "WORKSPACE_LINK")


def test_every_column_but_the_lease_and_the_last_run_is_derived(inventory: Inventory) -> None:
    inventory.resolve(InventoryModel())
    once = row(inventory)
    other = replace(once, lease_owner="x", lease_until="y", last_run="z", stopped="w", changes=3)
    assert {name for name in CaseRow.__slots__ if getattr(once, name) == getattr(other, name)} == set(DERIVED)
