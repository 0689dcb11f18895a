"""Recorded replies judged by the rules of another version: what changes, what does not; nothing is written."""

from __future__ import annotations

import json
import sys

import pytest
from casebound.api import rehearse
from casebound.canonical import canonical_bytes, digest_of
from casebound.errors import CaseboundError
from casebound.render.rehearsal import rehearsal_nodes
from casebound.render.tree import plain
from casebound.testing.distributions import plugins_in, write_distribution
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel, interpretation_reply, message_of, plan_reply
from casebound.testing.scripted import native_error

LENIENT = """
from dataclasses import replace
from casebound.hookspecs import hookimpl
from casebound.protocols.interpretation.v6 import PROTOCOL
from casebound.protocols.plan.v4 import PROTOCOL as PLAN
from casebound.protocols.assessment.v4 import PROTOCOL as ASSESSMENT

def without(protocol, code):
    kept = tuple(rule for rule in protocol.rules if rule.code != code)
    return replace(protocol, version=1000, prompt_id="lenient", rules=kept)

@hookimpl
def casebound_protocols():
    return [
        without(PROTOCOL, "INTERPRETATION_ENTITY_PROVENANCE"),
        without(PLAN, "ENTITY_RESOLUTION_DUPLICATE_SEARCH"),
        without(ASSESSMENT, "ENTITY_RESOLUTION_CAPTURE_SOURCE"),
    ]
"""
HOUSE = """
from casebound.contracts.findings import Finding
from casebound.hookspecs import hookimpl
from casebound.specs import Validator

def check(reply, context):
    if "please" in reply["summary"]["text"]:
        return []
    return [Finding(code="HOUSE_POLITE", path="/summary/text", message="it is not polite")]

@hookimpl
def casebound_validators():
    return [Validator("interpretation", "HOUSE_POLITE", 1, check, always=True)]
"""


class Citing(InventoryModel):
    """Leaves the evidence of every selected entity out of its interpretations, as often as it is asked."""

    def answer(self, request):
        reply = super().answer(request)
        for entity in reply.get("relevant_entities", ()):
            entity["source_ids"] = [name for name in entity["source_ids"] if not name.startswith("N")]
        return reply


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Give a function that installs a distribution and returns its entry points."""

    def install(name, source):
        folder = tmp_path / name
        module = write_distribution(folder, f"casebound-{name}", source)
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(folder))
        return plugins_in(folder)

    return install


def resolve(inventory, model, plugins=()):
    [result] = inventory.project(model, plugins=plugins).resolve([inventory.report])
    return result


def attempts(rehearsal, stage="interpretation"):
    [found] = [item for item in rehearsal.stages if item.stage == stage]
    return [
        (attempt.number, attempt.recorded and attempt.recorded.code, attempt.rehearsed and attempt.rehearsed.code)
        for attempt in found.attempts
    ]


def digests(root):
    return {path: digest_of(path.read_bytes()) for path in root.rglob("*") if path.is_file()}


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_case_in_review_would_have_been_accepted_by_another_version(inventory, install):
    lenient = install("lenient", LENIENT)
    result = resolve(inventory, Citing())
    assert (result.state, result.code) == ("review", "INTERPRETATION_INVALID_RESPONSES")
    root, host = inventory.package().root, inventory.host(plugins=lenient)
    before = digests(root)
    rehearsal = rehearse(root, interpretation=1000, host=host)
    code = "INTERPRETATION_ENTITY_PROVENANCE"
    assert attempts(rehearsal) == [(1, code, None), (2, code, None), (3, code, None)]
    assert (rehearsal.agrees, rehearsal.exit_status) == (False, 0)
    frozen = rehearse(root, host=host)
    assert (frozen.agrees, frozen.exit_status) == (True, 0)
    assert attempts(frozen) == [(1, code, code), (2, code, code), (3, code, code)]
    assert digests(root) == before


@pytest.mark.spec("A-158l")
def test_the_answer_tells_stage_attempt_and_findings(inventory, install):
    lenient = install("lenient", LENIENT)
    resolve(inventory, Citing())
    root = inventory.package().root
    rehearsal = rehearse(root, interpretation=1000, host=inventory.host(plugins=lenient))
    answer = json.loads(canonical_bytes(rehearsal.to_json()))
    assert set(answer) == {"package", "case_id", "agrees", "live_quality", "stages"}
    assert answer["live_quality"] == "not_evaluated"
    plan, _, interpretation = answer["stages"]
    assert (plan["frozen"], plan["version"], interpretation["frozen"], interpretation["version"]) == (4, 4, 6, 1000)
    assert "INTERPRETATION_ENTITY_PROVENANCE/1" not in interpretation["rules"]
    accepted = {"outcome": "accepted", "code": None, "findings": []}
    assert plan["attempts"] == [{"attempt": 1, "recorded": accepted, "rehearsed": accepted}]
    first = interpretation["attempts"][0]
    assert first["rehearsed"] == accepted
    assert first["recorded"]["outcome"] == "invalid"
    assert set(first["recorded"]["findings"][0]) == {"code", "path", "message"}
    picture = plain(rehearsal_nodes(rehearsal)).splitlines()
    assert picture[0] == f"INC-7  judged otherwise  {root}"
    assert "│  └─ attempt 1  recorded accepted  rehearsed the same" in picture
    assert "   ├─ attempt 1  recorded invalid  INTERPRETATION_ENTITY_PROVENANCE  rehearsed accepted" in picture
    assert any(line.endswith("no evidence of N0001 is cited") for line in picture)


def test_a_stricter_version_refuses_what_was_accepted(inventory, install):
    lenient = install("lenient", LENIENT)
    inventory.configure(settings_text(more="[protocols]\ninterpretation = 1000\n"))
    assert resolve(inventory, Citing(), plugins=lenient).state == "interpreted"
    rehearsal = rehearse(inventory.package().root, interpretation=6, host=inventory.host(plugins=lenient))
    assert attempts(rehearsal) == [(1, None, "INTERPRETATION_ENTITY_PROVENANCE")]
    assert rehearsal.exit_status == 0


def test_plan_and_assessment_are_judged_by_the_version_of_resolution(inventory, install):
    lenient = install("lenient", LENIENT)

    class Repeating(InventoryModel):
        def answer(self, request):
            if request.stage == "plan" and request.attempt == 1:
                reply = plan_reply(message_of(request))
                reply["searches"].append({**reply["searches"][0], "reason": "once more"})
                return reply
            return super().answer(request)

    assert resolve(inventory, Repeating()).state == "interpreted"
    rehearsal = rehearse(inventory.package().root, resolution=1000, host=inventory.host(plugins=lenient))
    assert attempts(rehearsal, "plan") == [(1, "ENTITY_RESOLUTION_DUPLICATE_SEARCH", None), (2, None, None)]
    assert [stage.version for stage in rehearsal.stages] == [1000, 1000, 6]
    assert attempts(rehearsal) == [(1, None, None)]


def test_later_stages_that_were_never_reached_are_listed_without_attempts(inventory, install):
    lenient = install("lenient", LENIENT)
    resolve(inventory, InventoryModel(scripted={"plan": ["no JSON"] * 3}))
    rehearsal = rehearse(inventory.package().root, resolution=1000, host=inventory.host(plugins=lenient))
    assert attempts(rehearsal, "plan") == [(number, "LLM_OUTPUT_JSON", "LLM_OUTPUT_JSON") for number in (1, 2, 3)]
    assert attempts(rehearsal, "assessment") == attempts(rehearsal) == []
    assert "no reply was recorded" in plain(rehearsal_nodes(rehearsal))


def test_an_error_of_the_server_is_listed_and_not_judged(inventory):
    resolve(inventory, InventoryModel(scripted={"plan": [native_error("LLM_QUOTA")]}))
    rehearsal = rehearse(inventory.package().root, host=inventory.host())
    assert attempts(rehearsal, "plan") == [(1, "LLM_QUOTA", None)]
    assert rehearsal.stages[0].attempts[0].rehearsed is None
    assert (rehearsal.agrees, rehearsal.unjudged) == (True, 1)
    assert "judged as recorded, 1 without a reply" in plain(rehearsal_nodes(rehearsal)).splitlines()[0]
    assert (rehearsal.agrees, rehearsal.exit_status) == (True, 0)


# --- the example of the citation policy -------------------------------------------------------------------------------


class CitingFacts(InventoryModel):
    """Shows the identity of a selected entity by a look-up fact and a mention, never by its alias.

    Args:
        shift: cite the fact of the entity that many places further on: an unrelated one.
    """

    def __init__(self, shift=0):
        super().__init__()
        self._shift = shift

    def answer(self, request):
        reply = super().answer(request)
        if request.stage == "interpretation":
            message = message_of(request)
            ids = [entity["canonical_id"] for entity in message["entities"] if entity["selected"]]
            named = {entity["id"]: entity for entity in message["entities"] if entity["selected"]}
            for given in reply["relevant_entities"]:
                if entity := named.get(given["entity_id"]):
                    wanted = ids[(ids.index(entity["canonical_id"]) + self._shift) % len(ids)]
                    lookups = [fact for fact in message["facts"] if fact["kind"] == "entity_name_lookup"]
                    fact = next(fact["id"] for fact in lookups if fact["entity_id"] == wanted)
                    given["source_ids"] = [entity["mentions"][0], fact]
        return reply


@pytest.mark.spec("A-143")
def test_a_reply_that_cites_a_fact_for_the_alias_is_refused_by_1_and_accepted_by_2(inventory, tmp_path):
    inventory.configure(settings_text(more="[protocols]\ninterpretation = 1\n"))
    result = resolve(inventory, CitingFacts())
    assert (result.state, result.code) == ("review", "INTERPRETATION_INVALID_RESPONSES")
    root, host = inventory.package().root, inventory.host()
    before = digests(root)
    code = "INTERPRETATION_ENTITY_NOT_RETAINED"
    assert attempts(rehearse(root, interpretation=2, host=host)) == [(number, code, None) for number in (1, 2, 3)]
    assert attempts(rehearse(root, interpretation=1, host=host)) == [(number, code, code) for number in (1, 2, 3)]
    assert digests(root) == before
    # The old rule goes on to refuse it, also where the recorded replies answer once more.
    again = write_inventory(tmp_path / "again", settings=settings_text(more="[protocols]\ninterpretation = 1\n"))
    [replayed] = again.project(replay_from=root).resolve([again.report])
    assert (replayed.state, replayed.code) == (result.state, result.code)
    assert attempts(rehearse(replayed.package, interpretation=2, host=host))[0] == (1, code, None)


def test_the_fact_of_another_entity_is_refused_by_both(inventory):
    inventory.configure(settings_text(more="[protocols]\ninterpretation = 1\n"))
    resolve(inventory, CitingFacts(shift=1))
    rehearsal = rehearse(inventory.package().root, interpretation=2, host=inventory.host())
    assert attempts(rehearsal)[0] == (1, "INTERPRETATION_ENTITY_NOT_RETAINED", "INTERPRETATION_ENTITY_PROVENANCE")


# By the version that answered, which versions accept its valid reply. 3 brings two fields, 4 a fixed reason for what
# has no name, 5 names by which a thing has one, so that it may be explained again, but must cite them.
ACCEPTED_BY = {1: (1, 2), 2: (1, 2), 3: (3,), 4: (3, 4), 5: (3, 5, 6), 6: (3, 5, 6)}


@pytest.mark.parametrize("version", ACCEPTED_BY)
def test_every_version_judges_what_every_other_one_was_told(inventory, version):
    inventory.configure(settings_text(more=f"[protocols]\ninterpretation = {version}\n"))
    assert resolve(inventory, InventoryModel()).state == "interpreted"
    root, host = inventory.package().root, inventory.host()
    codes = {other: attempts(rehearse(root, interpretation=other, host=host))[0][2] for other in ACCEPTED_BY}
    assert tuple(other for other, code in codes.items() if code is None) == ACCEPTED_BY[version]
    assert set(codes.values()) <= {None, "LLM_OUTPUT_SCHEMA"}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_of_resolution_can_judge_every_other(inventory, version):
    inventory.configure(settings_text(more=f"[protocols]\nresolution = {version}\n"))
    assert resolve(inventory, InventoryModel()).state == "interpreted"
    for other in range(1, 5):
        rehearsal = rehearse(inventory.package().root, resolution=other, host=inventory.host())
        assert rehearsal.agrees
        assert [stage.version for stage in rehearsal.stages][:2] == [other, other]


# --- rules of plugins -------------------------------------------------------------------------------------------------


class Polite(InventoryModel):
    """Is impolite once."""

    def answer(self, request):
        reply = super().answer(request)
        if request.stage == "interpretation" and request.attempt > 1:
            reply["summary"] = {**interpretation_reply(message_of(request))["summary"], "text": "please look"}
        return reply


def test_a_rule_that_a_plugin_had_added_is_kept_beside_those_of_the_version(inventory, install):
    house, lenient = install("house", HOUSE), install("lenient", LENIENT)
    assert resolve(inventory, Polite(), plugins=house).state == "interpreted"
    root = inventory.package().root
    rehearsal = rehearse(root, interpretation=1000, host=inventory.host(plugins=[*house, *lenient]))
    assert attempts(rehearsal) == [(1, "HOUSE_POLITE", "HOUSE_POLITE"), (2, None, None)]
    assert rehearsal.stages[-1].rules[-1] == "HOUSE_POLITE/1"
    with pytest.raises(CaseboundError, match="PLUGIN_MISSING") as caught:
        rehearse(root, interpretation=1000, host=inventory.host(plugins=lenient))
    assert "casebound-house 1.0" in str(caught.value)


def test_a_rule_that_came_later_takes_no_part(inventory, install):
    resolve(inventory, InventoryModel())
    rehearsal = rehearse(
        inventory.package().root, interpretation=6, host=inventory.host(plugins=install("house", HOUSE))
    )
    assert rehearsal.agrees
    assert "HOUSE_POLITE/1" not in rehearsal.stages[-1].rules


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_an_outcome_that_the_frozen_rules_do_not_give_is_told(inventory):
    resolve(inventory, Citing())
    root = inventory.package().root
    path = root / "analysis/interpretations/0001/attempts/interpretation-0002/outcome.json"
    value = json.loads(path.read_bytes())
    path.write_bytes(canonical_bytes({**value, "kind": "accepted", "code": None, "findings": []}))
    rehearsal = rehearse(root, host=inventory.host())
    assert (rehearsal.agrees, rehearsal.exit_status) == (False, 1)
    assert attempts(rehearsal)[1] == (2, None, "INTERPRETATION_ENTITY_PROVENANCE")


@pytest.mark.parametrize(
    ("options", "stage", "option", "accepted"),
    [
        ({"interpretation": 99}, "interpretation", "--interpretation-protocol", "6"),
        ({"interpretation": 0}, "interpretation", "--interpretation-protocol", "6"),
        ({"resolution": 99}, "plan", "--resolution-protocol", "4"),
    ],
)
def test_an_unknown_version_is_told_with_those_that_exist(inventory, options, stage, option, accepted):
    resolve(inventory, InventoryModel())
    with pytest.raises(CaseboundError) as caught:
        rehearse(inventory.package().root, host=inventory.host(), **options)
    error = caught.value
    assert (error.code, error.exit_status, error.pointer) == ("SETTINGS_NAME", 2, option)
    assert error.found == f"version {next(iter(options.values()))} of stage {stage}"
    assert accepted in error.allowed
    assert "0" not in error.allowed


def test_a_case_without_resolution_has_no_version_to_choose(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(catalogs=""))
    resolve(inventory, InventoryModel())
    root = inventory.package().root
    assert rehearse(root, host=inventory.host()).agrees
    with pytest.raises(CaseboundError, match="without resolution"):
        rehearse(root, interpretation=6, host=inventory.host())


def test_what_cannot_be_rehearsed_is_told(inventory, tmp_path):
    with pytest.raises(CaseboundError, match="PACKAGE_UNREADABLE"):
        rehearse(tmp_path, host=inventory.host())
    with pytest.raises(CaseboundError, match="USAGE"):
        rehearse(7, host=inventory.host())
    [result] = inventory.project(InventoryModel()).resolve([inventory.report], stop_after="research")
    with pytest.raises(CaseboundError, match="without any reply"):
        rehearse(result.package, host=inventory.host())
    resolve(inventory, InventoryModel())
    (inventory.package().root / "analysis/interpretations/0001/entity-resolution/assessment.json").unlink()
    with pytest.raises(CaseboundError, match="STORE_MISSING") as caught:
        rehearse(result.package, host=inventory.host())
    assert caught.value.path.endswith("assessment.json")
