"""Duties that cut across the rows: places and repairs, freezing first, unknown as a value, nothing promoted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.canonical import MAX_SAFE_INTEGER, canonical_bytes
from casebound.contracts.case import Case
from casebound.contracts.interpretation import HypothesisContext, InterpretationContext
from casebound.contracts.model_call import Usage
from casebound.errors import CODES
from casebound.pointer import resolve_pointer
from casebound.progress import latest_revision
from casebound.store import layout
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import native_reply

ROOT = Path(__file__).resolve().parents[2]
BROKEN = sorted((ROOT / "tests" / "golden" / "protocols").glob("*/v*/replies/*.json"))
UNKNOWN_NAME = (("inventory.host", "edge", "affected_subject"),)


@pytest.mark.spec("X-1")
@pytest.mark.parametrize("path", BROKEN, ids=lambda path: f"{path.parts[-4]}-{path.parts[-3]}-{path.stem}")
def test_every_finding_has_a_stable_code_an_exact_place_and_a_repair(path: Path) -> None:
    """The broken replies are frozen, one for each rule: as the rule says, and as the whole judgment says."""
    golden = json.loads(path.read_bytes())
    findings, errors = golden["findings"], golden["feedback"]["errors"]
    if path.parts[-4:-2] == ("interpretation", "v1"):  # which tells errors about kinds of sources first
        findings = [finding for finding in findings if finding["code"] in {error["code"] for error in errors}]
    for finding, error in zip(findings, errors, strict=True):
        assert CODES[finding["code"]].hint
        assert (error["code"], error["path"], error["message"]) == (
            finding["code"],
            finding["path"],
            finding["message"],
        )
        if finding["path"]:
            resolve_pointer(json.loads(golden["reply"]["text"]), finding["path"])


@pytest.mark.spec("X-1")
def test_every_rule_lists_what_it_permits_where_anything_is_permitted() -> None:
    repairs: dict[str, bool] = {}
    for path in BROKEN:
        for finding in json.loads(path.read_bytes())["findings"]:
            known = repairs.get(finding["code"], False)
            repairs[finding["code"]] = known or bool(finding["allowed"] or finding["details"])
    semantic = {code for code in repairs if code.startswith(("ENTITY_RESOLUTION", "INTERPRETATION"))}
    assert len(semantic) > 20
    # A search that stands twice has to go, and where nobody stated an expectation no source of one is permitted.
    nothing_permitted = {"ENTITY_RESOLUTION_DUPLICATE_SEARCH", "INTERPRETATION_EXPECTATION_SOURCE"}
    assert {code for code in semantic if not repairs[code]} <= nothing_permitted


class Watching(InventoryModel):
    """Notes what stands on disk whenever a request is sent."""

    def __init__(self, inventory: Inventory, **scripted: object) -> None:
        super().__init__(scripted=scripted)  # type: ignore[arg-type]  # by stage, as the tests give it
        self.inventory = inventory
        self.stood: list[set[str]] = []

    async def send(self, request):  # type: ignore[no-untyped-def]  # as the base class
        self.stood.append(set(self.inventory.package().paths()))
        return await super().send(request)


@pytest.mark.spec("X-4", "A-069")
def test_what_a_call_rests_on_is_on_disk_before_it_is_paid_for(tmp_path: Path) -> None:
    inventory = write_inventory(tmp_path)
    model = Watching(inventory, plan=[native_reply("no JSON")])
    assert inventory.resolve(model).state == "interpreted"
    revision = latest_revision(inventory.package())
    frozen = [revision.input, revision.resolution_input, layout.CASE, layout.FACTS]
    needed = [
        [*frozen, f"{revision.attempt('plan', 1)}/request.json"],
        [revision.feedback("plan", 2), f"{revision.attempt('plan', 2)}/request.json"],
        [revision.plan, revision.candidates, f"{revision.attempt('assessment', 1)}/request.json"],
        [revision.assessment, revision.context, f"{revision.attempt('interpretation', 1)}/request.json"],
    ]
    assert len(model.stood) == len(needed)
    for stood, wanted in zip(model.stood, needed, strict=True):
        assert set(wanted) <= stood
        assert not any(path.endswith("seal.json") for path in stood)


@pytest.mark.parametrize("count", [MAX_SAFE_INTEGER, -5])
def test_tokens_that_nobody_can_have_used_are_unknown_in_the_line_of_the_result(tmp_path: Path, count: int) -> None:
    class Boastful(InventoryModel):
        def read(self, native):  # type: ignore[no-untyped-def]  # as the base class
            usage = Usage(input_tokens=count, output_tokens=10)
            return super().read(native).model_copy(update={"usage": usage})

    result = write_inventory(tmp_path).resolve(Boastful())
    assert result.state == "interpreted"
    assert result.tokens == {"input": None, "output": 30}
    assert canonical_bytes(result.to_json())


@pytest.mark.spec("X-3", "A-083", "A-066")
def test_unknown_is_a_value_of_its_own(tmp_path: Path) -> None:
    """An identity that stays open, an expectation that nobody stated, tokens that nobody counted."""

    class Silent(InventoryModel):
        async def send(self, request):  # type: ignore[no-untyped-def]  # as the base class
            self.calls.append(request)
            return native_reply(self.answer(request))  # no usage

    inventory = write_inventory(tmp_path)
    result = inventory.resolve(Silent(searches=UNKNOWN_NAME))
    assert result.tokens == {"input": None, "output": None}
    [open_identity] = result.unresolved
    assert open_identity["status"] in ("ambiguous", "no_match")
    package, revision = inventory.package(), latest_revision(inventory.package())
    context = package.load(revision.context, InterpretationContext).context
    unresolved = [unknown for unknown in context["unknowns"] if unknown["id"].startswith("D")]
    assert [unknown["snapshot"] for unknown in unresolved] == ["inventory-1"]
    assert package.load(layout.CASE, Case).expected_behavior.completeness == "not_established"


@pytest.mark.spec("X-6", "A-146c", "A-147c", "A-087")
def test_nothing_weaker_is_promoted_to_something_stronger(tmp_path: Path) -> None:
    """Descriptions stay descriptions, roles stay contextual, and nobody has stated what to expect."""
    inventory = write_inventory(tmp_path)
    result = inventory.resolve(InventoryModel())
    package, revision = inventory.package(), latest_revision(inventory.package())
    sources = package.load(revision.hypothesis_context, HypothesisContext).sources
    described = [source for source in sources if source.kind == "described_behavior"]
    assert described
    for source in described:
        assert source.labels == {"basis": "local_description", "verification": "not_independently_verified"}
        assert all(name.startswith("P") for name in source.source_ids)
    assert not [source for source in sources if source.kind == "expected_behavior"]
    assert package.load(layout.CASE, Case).expected_behavior.completeness == "not_established"
    bases = {role["basis"] for entity in result.entities for role in entity["roles"]}
    assert bases == {"model_contextual_selection_not_causation"}
