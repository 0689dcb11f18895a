"""What stands on disk of a case, what a restart makes of it, and what blocks it without losing anything."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from casebound.canonical import digest_of, file_name_of
from casebound.clock import format_time
from casebound.errors import SettingsError
from casebound.progress import derive_progress
from casebound.result import Result
from casebound.store.layout import Revision
from casebound.testing.inventory import ENRICHMENT, Inventory, settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider
from casebound.testing.troubled import ACCEPTED, REPORT, SEARCHES, TroubledCase
from casebound.verification import verify_package

FIRST = Revision()
PARTS = "analysis/interpretations/0001/entity-resolution"


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path / "project", report=REPORT)


def run(inventory: Inventory, model: object, stop_after: str | None = None) -> Result:
    return next(iter(inventory.project(model).resolve([inventory.report], stop_after=stop_after)))  # type: ignore[arg-type]


def files(inventory: Inventory) -> dict[str, bytes]:
    return {path: data for path, data in inventory.package("INC-9").files() if data is not None}


@pytest.mark.spec("A-068", "A-069", "A-070", "A-072", "A-073")
def test_each_artifact_has_its_place_and_binds_what_it_follows_from(inventory: Inventory) -> None:
    run(inventory, InventoryModel(SEARCHES))
    found = files(inventory)
    parsed = {name: json.loads(found[f"{PARTS}/{name}.json"]) for name in ("input", "plan", "candidates", "assessment")}
    assert parsed["input"]["case_digest"] == digest_of(found["case.json"])
    assert parsed["plan"]["input_digest"] == digest_of(found[f"{PARTS}/input.json"])
    assert parsed["candidates"]["plan_digest"] == digest_of(found[f"{PARTS}/plan.json"])
    assert parsed["assessment"]["candidates_digest"] == digest_of(found[f"{PARTS}/candidates.json"])
    assert [search["term"] for search in parsed["plan"]["reply"]["searches"]] == [term for _, term, _ in SEARCHES]
    assert json.loads(found[FIRST.input])["resolution_input"] == digest_of(found[f"{PARTS}/input.json"])


@pytest.mark.spec("A-071", "A-072")
def test_captures_are_named_by_their_digest_and_equal_queries_share_one(inventory: Inventory) -> None:
    run(inventory, InventoryModel(SEARCHES))
    found = files(inventory)
    captures = [path for path in found if path.startswith(f"{PARTS}/captures/")]
    assert sorted(path.rpartition("/")[2] for path in captures) == sorted(
        file_name_of(digest_of(found[path])) for path in captures
    )
    searches = json.loads(found[f"{PARTS}/candidates.json"])["searches"]
    assert [search["alias"] for search in searches] == ["V0001", "V0002", "V0003"]
    assert searches[0]["capture"] == searches[2]["capture"] != searches[1]["capture"]
    assert len(captures) == 2
    rows = json.loads(found[f"{PARTS}/captures/{file_name_of(searches[1]['capture'])}"])["rows"]
    assert [candidate["id"] for candidate in searches[1]["candidates"]] == [row[0] for row in rows] == ["21", "22"]


@pytest.mark.spec("A-074", "A-075", "A-113l")
def test_every_attempt_keeps_its_request_reply_and_outcome_and_none_replaces_another(tmp_path: Path) -> None:
    case = TroubledCase.write(tmp_path)
    case.advance()
    found = case.files()
    for stage, number, kind in (("plan", 1, "invalid"), ("plan", 2, "accepted"), ("assessment", 2, "accepted")):
        folder = f"{PARTS}/attempts/{stage}-{number:04d}"
        request, reply, native, outcome = (
            json.loads(found[f"{folder}/{name}.json"]) for name in ("request", "reply", "native", "outcome")
        )
        assert (request["provider"], request["model"], request["attempt"]) == ("scripted", "test-model", number)
        assert reply["usage"]["input_tokens"] == 100
        assert native["duration_ms"] >= 0
        assert outcome["kind"] == kind
        assert outcome["request"] == digest_of(found[f"{folder}/request.json"])
        assert outcome["native"] == digest_of(found[f"{folder}/native.bin"])
        assert outcome["reply"] == digest_of(found[f"{folder}/reply.json"])


@pytest.mark.spec("A-003", "A-076", "A-108", "A-109")
def test_a_finished_case_is_answered_again_without_a_call_and_without_a_change(inventory: Inventory) -> None:
    first = run(inventory, InventoryModel(SEARCHES))
    before = files(inventory)
    inventory.configure(
        settings_text(model="another", snapshot_id="inventory-2", enrichment="", resolution={"max_searches": 1})
    )
    inventory.database.unlink()
    again = run(inventory, RaisingProvider())
    assert again.to_json() == first.to_json()
    assert files(inventory) == before
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "holds"


# --- the database is away -------------------------------------------------------------------------------------------


def blocked_after_plan(inventory: Inventory) -> dict[str, bytes]:
    """Take the database away once the plan is accepted, run into the block, and return what stands then."""
    away = inventory.database.with_suffix(".away")

    class Planner(InventoryModel):
        def answer(self, request):
            if request.stage == "plan" and inventory.database.exists():
                inventory.database.rename(away)
            return super().answer(request)

    result = run(inventory, Planner(SEARCHES))
    assert (result.state, result.code) == ("blocked", "RESEARCH_UNAVAILABLE")
    away.rename(inventory.database)
    return files(inventory)


@pytest.mark.spec("A-095", "A-096", "A-101", "A-102", "A-103", "A-113i")
def test_an_outage_blocks_the_case_keeps_the_plan_and_a_resume_goes_straight_to_the_look_up(
    inventory: Inventory,
) -> None:
    before = blocked_after_plan(inventory)
    began = inventory.clock.now()
    assert FIRST.plan in before
    event = json.loads(before[FIRST.event(1)])
    assert (event["kind"], event["code"], event["at"]) == ("blocked", "RESEARCH_UNAVAILABLE", format_time(began))
    inventory.clock.advance(59.999)
    with pytest.raises(SettingsError, match="RETRY_LATER") as raised:
        inventory.project(RaisingProvider()).resume("INC-9")
    assert event["retry_at"] in str(raised.value)
    inventory.clock.advance(0.001)
    assert event["retry_at"] == format_time(inventory.clock.now())
    assert run(inventory, RaisingProvider()).state == "blocked"  # not by itself, only when asked
    assert files(inventory) == before
    model = InventoryModel(SEARCHES)
    assert inventory.project(model).resume("INC-9").state == "interpreted"
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 1}
    after = files(inventory)
    assert {path: after[path] for path in before} == before
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "holds"


@pytest.mark.spec("A-095")
@pytest.mark.parametrize("enrichment", [ENRICHMENT, ""], ids=["research", "freezing"])
def test_an_outage_before_anything_is_frozen_blocks_too(inventory: Inventory, enrichment: str) -> None:
    inventory.configure(settings_text(enrichment=enrichment))
    kept = inventory.damage()
    result = run(inventory, RaisingProvider())
    assert (result.state, result.code) == ("blocked", "RESEARCH_UNAVAILABLE")
    assert result.error == "the file is damaged; sqlite database inventory.db"
    inventory.database.write_bytes(kept)
    inventory.clock.advance(60)
    assert inventory.project(InventoryModel(SEARCHES)).resume("INC-9").state == "interpreted"
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "holds"


@pytest.mark.parametrize("enrichment", [ENRICHMENT, ""], ids=["research", "freezing"])
@pytest.mark.parametrize("missing", ["file", "database", "table"])
def test_a_database_that_is_not_there_when_a_case_begins_is_a_setting(
    inventory: Inventory, enrichment: str, missing: str
) -> None:
    kept = inventory.database.read_bytes()
    inventory.configure(settings_text(enrichment=enrichment))
    if missing == "table":
        with closing(sqlite3.connect(inventory.database)) as connection:
            connection.execute("drop table services")
            connection.commit()
    elif missing == "file":
        inventory.database.unlink()
    else:
        inventory.database.write_bytes(b"no database" * 100)
    result = run(inventory, RaisingProvider())
    assert (result.code, result.exit_status) == ("SETTINGS_TABLE" if missing == "table" else "SETTINGS_DATABASE", 2)
    assert result.error is not None
    assert "casebound.toml" in result.error
    assert ("services" if missing == "table" else "inventory.db") in result.error
    assert not [path for path in files(inventory) if "event" in path]
    inventory.database.write_bytes(kept)
    assert run(inventory, InventoryModel(SEARCHES)).state == "interpreted"


def test_a_table_that_went_away_after_the_plan_is_an_outage_with_the_plan_kept(inventory: Inventory) -> None:
    kept = inventory.database.read_bytes()

    class Planner(InventoryModel):
        def answer(self, request):
            if request.stage == "plan":
                with closing(sqlite3.connect(inventory.database)) as connection:
                    connection.executescript("drop table hosts; drop table host_names; drop table services")
            return super().answer(request)

    result = run(inventory, Planner(SEARCHES))
    assert (result.state, result.code, FIRST.plan in files(inventory)) == ("blocked", "RESEARCH_UNAVAILABLE", True)
    inventory.database.write_bytes(kept)
    inventory.clock.advance(60)
    # The same bytes again, which is what the case has frozen.
    assert inventory.project(InventoryModel(SEARCHES)).resume("INC-9").state == "interpreted"


# --- a restart ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-092", "A-093", "A-094", "A-076")
def test_a_restart_asks_neither_model_nor_database_for_what_is_there(inventory: Inventory) -> None:
    run(inventory, InventoryModel(SEARCHES))
    whole = files(inventory)
    package = inventory.package("INC-9")
    for path in whole:
        if path in (FIRST.seal, FIRST.summary, FIRST.hypothesis_context, FIRST.interpretation, FIRST.context):
            (package.root / path).unlink()
        if path.startswith(f"{FIRST.folder}/attempts/"):
            (package.root / path).unlink()
    (package.root / FIRST.assessment).unlink()  # its attempt is decided: the reply is there
    (package.root / FIRST.candidates).unlink()  # its captures are there
    inventory.database.write_bytes(b"")
    assert derive_progress(package).state == "planned"
    model = InventoryModel(SEARCHES)
    assert run(inventory, model).state == "interpreted"
    assert model.counts() == {"plan": 0, "assessment": 0, "interpretation": 1}
    assert files(inventory) == whole


def test_rows_that_change_between_a_kill_and_a_restart_do_not_mix(inventory: Inventory) -> None:
    run(inventory, InventoryModel(SEARCHES), stop_after="construction")
    first = write_inventory(inventory.folder.parent / "other", report=REPORT)
    run(first, InventoryModel(SEARCHES))
    capture = next(path for path in files(first) if path.startswith("research/captures/"))
    inventory.package("INC-9").create(capture, files(first)[capture])  # what a killed run left
    with closing(sqlite3.connect(inventory.database)) as connection:
        connection.execute("update services set title = 'Something else'")
        connection.commit()
    result = run(inventory, RaisingProvider())
    assert result.code == "BINDING_CHANGED"
    inventory.database.write_bytes(first.database.read_bytes())
    assert run(inventory, InventoryModel(SEARCHES)).state == "interpreted"
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "holds"


# --- settings that change in between --------------------------------------------------------------------------------

OTHER_CATALOG = """
[[entity_resolution.catalog]]
name = "inventory.host"
entity_type = "host"
table = "hosts"
id_column = "id"
name_column = "os"
columns = ["id", "os"]
"""
CHANGES = {
    "snapshot": {"snapshot_id": "inventory-2"},
    "catalogs": {"catalogs": OTHER_CATALOG},
    "model": {"model": "another"},
}


@pytest.mark.spec("A-105", "A-106", "A-113k")
@pytest.mark.parametrize("change", CHANGES)
def test_settings_that_change_during_an_unfinished_stage_are_refused_and_nothing_changes(
    inventory: Inventory, change: str
) -> None:
    before = blocked_after_plan(inventory)
    inventory.clock.advance(60)
    inventory.configure(settings_text(**CHANGES[change]))
    result = inventory.project(RaisingProvider()).resume("INC-9")
    assert result.code == "BINDING_CHANGED"
    assert files(inventory) == before
    inventory.configure(settings_text())
    assert inventory.project(InventoryModel(SEARCHES)).resume("INC-9").state == "interpreted"


def test_rows_that_change_under_the_same_name_are_refused_too(inventory: Inventory) -> None:
    before = blocked_after_plan(inventory)
    inventory.clock.advance(60)
    with closing(sqlite3.connect(inventory.database)) as connection:
        connection.execute("update hosts set fqdn = 'edge-proxy-canary' where id = 13")
        connection.commit()
    result = inventory.project(RaisingProvider()).resume("INC-9")
    assert result.code == "BINDING_CHANGED"
    assert files(inventory) == before


@pytest.mark.spec("A-097")
def test_a_case_in_review_is_not_resumed(inventory: Inventory) -> None:
    scripted = {"plan": ["no", "no", "no"]}
    assert run(inventory, InventoryModel(SEARCHES, scripted)).state == "review"
    before = files(inventory)
    inventory.clock.advance(99999)
    with pytest.raises(SettingsError, match="RESUME_REFUSED"):
        inventory.project(RaisingProvider()).resume("INC-9")
    assert files(inventory) == before
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "unfinished"


def test_crlf_stays_crlf(inventory: Inventory) -> None:
    inventory.report.write_bytes(REPORT.replace("\n", "\r\n").encode())
    assert run(inventory, InventoryModel(SEARCHES)).state == "interpreted"
    found = files(inventory)
    assert found["source/report.md"] == REPORT.replace("\n", "\r\n").encode()
    assert verify_package(inventory.package("INC-9").root, inventory.host()).answer == "holds"
    assert all(
        any(part in path or path.startswith(part) for part in (*ACCEPTED, "attempts/", "seal")) for path in found
    )
