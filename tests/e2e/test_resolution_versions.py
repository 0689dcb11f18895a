"""Every resolution protocol takes a case to its end, is frozen in it, and stays the one that the case goes on with."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from casebound.api import Project, verify
from casebound.contracts.interpretation import Feedback
from casebound.contracts.model_call import ModelRequest, Outcome
from casebound.contracts.plan import ResolutionInput
from casebound.llm.attempts import AttemptLog
from casebound.progress import latest_revision
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_cases import SITUATIONS
from casebound.testing.inventory_model import InventoryModel, assessment_reply
from casebound_catalog_vcore.demo import fill

VERSIONS = (1, 2, 3, 4)
LOOK_UP_STAGES = ("plan", "assessment")
each_version = pytest.mark.parametrize("version", VERSIONS)


def protocols(version: int) -> str:
    return f"[protocols]\nresolution = {version}\n"


def written(folder: Path, version: int, llm: str = "", more: str = "") -> Inventory:
    return write_inventory(folder, settings=settings_text(llm=llm, more=more + protocols(version)))


def log(inventory: Inventory, stage: str) -> AttemptLog:
    package = inventory.package()
    return AttemptLog(package, latest_revision(package), stage)


def request(inventory: Inventory, stage: str, number: int = 1) -> ModelRequest:
    return inventory.package().load(log(inventory, stage).path(number, "request.json"), ModelRequest)


def holds(inventory: Inventory) -> bool:
    return verify(inventory.package().root, host=inventory.host()).answer == "holds"


@pytest.mark.spec("A-125", "A-149")
@each_version
def test_the_two_counters_are_frozen_independently(tmp_path, version):
    inventory = write_inventory(tmp_path, settings=settings_text(more=protocols(version) + "interpretation = 6\n"))
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    frozen = inventory.package().load(latest_revision(inventory.package()).resolution_input, ResolutionInput)
    assert (frozen.protocol_version, frozen.interpretation_protocol_version) == (version, 6)
    prompts = {stage: request(inventory, stage).prompt_id for stage in (*LOOK_UP_STAGES, "interpretation")}
    assert prompts == {
        "plan": f"entity_resolution_plan_v{version}",
        "assessment": f"entity_resolution_assessment_v{version}",
        "interpretation": "case_interpretation_resolved_v6",
    }
    assert holds(inventory)


@pytest.mark.spec("A-126", "A-128")
@pytest.mark.parametrize("form", ["json_schema", "json_object", "text"])
@each_version
def test_the_schema_is_in_the_message_from_2_on_and_in_the_request_always(tmp_path, version, form):
    inventory = written(tmp_path, version, llm=f'response_format = "{form}"\n')
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    for stage in LOOK_UP_STAGES:
        asked = request(inventory, stage)
        message = json.loads(asked.user)
        assert ("output_schema" in message) == (version > 1)
        assert message.get("output_schema", asked.response_schema) == asked.response_schema
        assert asked.response_schema["required"] == [{"plan": "searches", "assessment": "resolutions"}[stage]]


@pytest.mark.spec("A-092", "A-094", "A-157b")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_case_goes_on_with_the_version_that_it_froze(tmp_path, version):
    inventory = written(tmp_path, version, more="[budget]\nrun_calls = 1\n")
    assert inventory.resolve(InventoryModel()).code == "BUDGET_REACHED"
    inventory.configure(settings_text())
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    assert request(inventory, "assessment").protocol_version == version
    assert holds(inventory)


@pytest.mark.parametrize("situation", sorted(set(SITUATIONS) - {"plain"}))
def test_every_version_ends_in_the_same_entities(tmp_path, situation):
    chosen = SITUATIONS[situation]
    found = []
    for version in VERSIONS:
        folder = tmp_path / str(version)
        settings = settings_text(resolution=chosen.limits, more=protocols(version))
        inventory = write_inventory(folder, settings=settings, report=chosen.report)
        line = inventory.resolve(InventoryModel(chosen.searches)).to_json()
        assert holds(inventory)
        found.append({key: line[key] for key in ("state", "entities", "unresolved", "calls")})
    assert all(line == found[-1] for line in found)


# --- a capture that is not cited ------------------------------------------------------------------------------------


@pytest.mark.spec("A-148a", "A-148b", "A-148c", "A-148d", "A-148e", "A-148f", "A-148g", "A-148h", "A-148i", "A-158j")
@each_version
def test_a_forgotten_capture_is_told_and_corrected_by_a_complete_reply(tmp_path, version):
    model = InventoryModel()
    written(tmp_path / "first", version).resolve(model)
    complete = assessment_reply(model.asked("assessment")[0])
    forgotten = copy.deepcopy(complete)
    forgotten["resolutions"][0].update(source_ids=["S0002"], reason="V0001 holds it")
    partial = {"resolutions": complete["resolutions"][:1]}

    inventory = written(tmp_path / "second", version)
    model = InventoryModel(scripted={"assessment": [forgotten, partial]})
    assert inventory.resolve(model).state == "interpreted"
    package, revision = inventory.package(), latest_revision(inventory.package())
    decided = [package.load(log(inventory, "assessment").path(n, "outcome.json"), Outcome) for n in (1, 2, 3)]
    found = [[(finding.code, finding.path) for finding in outcome.findings] for outcome in decided]
    capture, order = "ENTITY_RESOLUTION_CAPTURE_SOURCE", "ENTITY_RESOLUTION_RESOLUTION_ORDER"
    codes = (capture, order) if version < 4 else ("LLM_OUTPUT_SCHEMA", "LLM_OUTPUT_SCHEMA")
    assert found == [[(codes[0], "/resolutions/0/source_ids")], [(codes[1], "/resolutions")], []]
    frozen = package.load(revision.feedback("assessment", 2), Feedback)
    assert model.asked("assessment")[1]["feedback"] == frozen.feedback
    (error,) = frozen.feedback["errors"]
    assert error["permitted"] == ["V0001"]
    if version < 4:
        assert (error["missing_capture"], error["search_index"]) == ("V0001", 0)
        assert error["mentions"] == ["P0001", "S0001", "S0002", "S0006"]
    assert "complete corrected reply" in frozen.feedback["instruction"]
    kept = json.loads(package.require(revision.assessment))["reply"]
    assert kept == complete  # what the model said at last, nothing put in
    assert holds(inventory)


# --- the rules that need no model -----------------------------------------------------------------------------------


def test_the_offline_rules_resolve_the_demo_alike_under_every_version(tmp_path):
    found = []
    for version in VERSIONS:
        folder = tmp_path / str(version)
        folder.mkdir()
        reports = fill(folder)
        settings = folder / "casebound.toml"
        settings.write_text(settings.read_text("utf-8") + protocols(version), "utf-8")
        project = Project.open(settings, workspace=folder / "workspace")
        try:
            (result,) = project.resolve(reports)
        finally:
            project.close()
        line = result.to_json()
        assert (line["state"], line["calls"]) == ("interpreted", {"plan": 1, "assessment": 1, "interpretation": 1})
        assert verify(line["package"]).answer == "holds"
        found.append(
            {(each["type"], each["id"]): [link["role"] for link in each["roles"]] for each in line["entities"]}
        )
        broad = [each["status"] for each in line["unresolved"] if each["term"] == "Wolpertinger"]
        assert set(broad) == {"ambiguous"}
    assert all(entities == found[-1] for entities in found)
    assert found[-1]["creature", "23487"] == ["affected_subject"]
