"""Whole cases under each interpretation protocol: chosen by settings, frozen, verified, and later left alone."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from casebound.api import Project, verify
from casebound.contracts.interpretation import HypothesisContext, Interpretation, InterpretationContext
from casebound.contracts.model_call import ModelRequest
from casebound.contracts.plan import ResolutionInput
from casebound.demo import run_demo
from casebound.llm.attempts import AttemptLog
from casebound.progress import latest_revision
from casebound.protocols.registry import built_in_protocols
from casebound.render.chain import derive_chain
from casebound.settings import FILE_NAME
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_cases import SITUATIONS
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider

OFFERED = [(one.stage, one.version) for one in built_in_protocols() if one.version]
RESOLUTIONS = [version for stage, version in OFFERED if stage == "plan"]
VERSIONS = [version for stage, version in OFFERED if stage == "interpretation"]
PROMPTS = {(one.stage, one.version): one.prompt_id for one in built_in_protocols()}
PROTOCOLS = {one.version: one for one in built_in_protocols() if one.stage == "interpretation"}


def chosen(interpretation: int, resolution: int = RESOLUTIONS[-1]) -> str:
    return f"[protocols]\nresolution = {resolution}\ninterpretation = {interpretation}\n"


def configured(folder: Path, interpretation: int, situation: str = "selected", **numbers: int) -> Inventory:
    return write_inventory(
        folder,
        settings=settings_text(more=chosen(interpretation, **numbers)),
        report=SITUATIONS[situation].report,
    )


@pytest.mark.spec("A-132", "A-144b", "A-149", "A-150a")
@pytest.mark.parametrize("resolution", RESOLUTIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_both_counters_are_chosen_frozen_and_verified_independently(tmp_path, version, resolution):
    inventory = configured(tmp_path, version, resolution=resolution)
    model = InventoryModel()
    assert inventory.resolve(model).state == "interpreted"
    assert model.counts() == {"plan": 1, "assessment": 1, "interpretation": 1}  # no version costs a call more
    package = inventory.package()
    revision = latest_revision(package)
    frozen = package.load(revision.resolution_input, ResolutionInput)
    assert (frozen.protocol_version, frozen.interpretation_protocol_version) == (resolution, version)
    context = package.load(revision.context, InterpretationContext)
    interpretation = package.load(revision.interpretation, Interpretation)
    protocol = PROTOCOLS[version]
    assert context.prompt_id == interpretation.prompt_id == protocol.prompt_id
    assert (context.policy, interpretation.contract) == (protocol.context_policy, protocol.response_contract)
    asked = (("plan", resolution), ("assessment", resolution), ("interpretation", version))
    assert [request.prompt_id for request in model.calls] == [PROMPTS[one] for one in asked]
    assert verify(package.root, host=inventory.host()).answer == "holds"


@pytest.mark.spec("A-108", "A-109", "A-133", "A-144c", "A-150c", "A-155")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_case_of_an_older_version_keeps_its_bytes_and_its_requests(tmp_path, version):
    inventory = configured(tmp_path, version)
    inventory.resolve(InventoryModel())
    package = inventory.package()
    before = {path: package.digest(path) for path in package.paths()}
    inventory.configure(settings_text())  # which asks a fresh case with the newest
    assert inventory.resolve(RaisingProvider()).state == "interpreted"
    assert {path: package.digest(path) for path in package.paths()} == before
    assert verify(package.root, host=inventory.host()).answer == "holds"
    fresh = InventoryModel()
    inventory.resolve(fresh, package_id="fresh")
    assert fresh.calls[-1].prompt_id == PROTOCOLS[VERSIONS[-1]].prompt_id
    assert {path: package.digest(path) for path in package.paths()} == before


def faulty(inventory: Inventory) -> list[dict[str, object]]:
    """Return a reply wrong about a kind of source and about an entity, and one wrong about the entity only."""
    model = InventoryModel()
    inventory.resolve(model, package_id="good")
    entity = json.loads(json.dumps(model.answer(model.calls[-1])))
    entity["relevant_entities"].pop()
    both = copy.deepcopy(entity)
    both["observed_behavior"].append({"text": "a fact", "source_ids": ["F0001"]})
    return [both, entity]


@pytest.mark.spec("A-133", "A-138", "A-140")
@pytest.mark.parametrize("version", VERSIONS)
def test_what_version_1_tells_in_two_rounds_the_others_tell_in_one(tmp_path, version):
    inventory = configured(tmp_path, version)
    model = InventoryModel(scripted={"interpretation": faulty(inventory)})
    assert inventory.resolve(model, package_id="bad").state == "interpreted"
    told = [[error["code"] for error in asked["feedback"]["errors"]] for asked in model.asked("interpretation")[1:]]
    kind = "INTERPRETATION_OBSERVATION_SOURCE"
    if version == 1:
        assert told == [[kind], ["INTERPRETATION_ENTITY_NOT_RETAINED"]]
    else:
        assert told == [[kind, "INTERPRETATION_ENTITY_MISSING"], ["INTERPRETATION_ENTITY_MISSING"]]
    assert verify(inventory.package("bad").root, host=inventory.host()).answer == "holds"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_shown_of_a_case_has_the_aliases_of_its_version(tmp_path, version):
    inventory = configured(tmp_path, version, "grouped")
    result = inventory.resolve(InventoryModel(SITUATIONS["grouped"].searches))
    package = inventory.package()
    aliases = ["N0001", "N0002"] if version < 3 else ["N0001", "N0001"]
    assert [search.assessment.alias for search in derive_chain(package).searches] == aliases
    # The answer of `resolve` names things, not aliases: one a type and id, whatever the version calls it.
    (entity,) = result.to_json()["entities"]
    assert (entity["id"], entity["names"]) == ("11", ["edge-proxy", "Randvermittler (alt)"])
    summary = package.require(latest_revision(package).summary).decode()
    assert summary.count("- **") == len(set(aliases))
    for name in ("edge\\-proxy", r"Randvermittler \(alt\)"):
        assert f"**{name}**" in summary


@pytest.mark.spec("A-147b", "A-147c")
@pytest.mark.parametrize("version", VERSIONS)
def test_descriptions_stay_descriptions_in_summary_and_hypothesis_context(tmp_path, version):
    inventory = configured(tmp_path, version)
    inventory.resolve(InventoryModel())
    package = inventory.package()
    revision = latest_revision(package)
    sources = package.load(revision.hypothesis_context, HypothesisContext).sources
    labels = {source.kind: source.labels for source in sources if source.labels and source.kind != "relevant_entities"}
    local = {"basis": "local_description"}
    assert labels == (
        {
            "described_behavior": {**local, "verification": "not_independently_verified"},
            "provisional_behavior_gap": {**local, "status": "provisional"},
        }
        if version >= 3
        else {}
    )
    summary = package.require(revision.summary).decode()
    for heading in ("(local description, not independently verified)", "(against a local description, provisional)"):
        assert (heading in summary) == (version >= 3)


# --- the rules of the offline provider ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demo, with settings, report and database."""
    return run_demo(workspace=tmp_path_factory.mktemp("demo") / "new").folder


@pytest.mark.parametrize("version", VERSIONS)
def test_the_offline_rules_resolve_the_demo_under_every_version(demo, version):
    settings = demo / f"v{version}.toml"
    settings.write_text((demo / FILE_NAME).read_text("utf-8") + chosen(version), "utf-8")
    project = Project.open(settings, workspace=demo)
    try:
        (result,) = project.resolve([demo / "report.md"], package_id=f"v{version}")
    finally:
        project.close()
    assert (result.state, result.code) == ("interpreted", None)
    package = project.workspace.find(f"v{version}")
    revision = latest_revision(package)
    log = AttemptLog(package, revision, "interpretation")
    assert log.numbers() == [1]  # accepted at once
    assert package.load(log.path(1, "request.json"), ModelRequest).prompt_id == PROTOCOLS[version].prompt_id
    assert {("23487", "resolved"), ("23486", "resolved"), ("11431", "cited")} <= {
        (one["id"], one["origin"]) for one in result.to_json()["entities"]
    }
    assert verify(package.root).answer == "holds"
