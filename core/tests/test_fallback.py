"""A stage whose provider fails is answered by the next one: what is sent, what is on disk, what is told, what holds."""

from __future__ import annotations

import json
import shutil

import pytest
from casebound.canonical import canonical_bytes
from casebound.contracts.interpretation import InterpretationInput
from casebound.contracts.model_call import ModelRequest
from casebound.errors import TRANSIENT, ProviderError, SettingsError
from casebound.llm.attempts import AttemptLog
from casebound.progress import latest_revision
from casebound.render.chain import derive_chain
from casebound.render.terminal import case_nodes, chain_nodes
from casebound.render.tree import plain
from casebound.store.events import EventLog
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider, native_error, native_reply
from casebound.verification import verify_package

CUT = native_reply('{"searches":[{"catal', finish_reason="length")
PROFILES = """
[llm.profile.second]
model = "second"
response_format = "json_object"
timeout_s = 7
max_output_tokens = 500
incomplete_cap_factor = 3
[llm.profile.third]
model = "third"
"""


def settings(*, retries=1, fallback='["second", "third"]', codes=None, profiles=PROFILES, **options):
    listed = "" if codes is None else f"fallback_codes = {json.dumps(codes)}\n"
    llm = f"fallback = {fallback}\n{listed}[llm.retry]\nmax_retries = {retries}\n{profiles}"
    return settings_text(llm=llm, model="first", **options)


def failure(code, retry_after=None):
    return ProviderError(code, retryable=code in TRANSIENT, retry_after=retry_after, found="a test")


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path, settings=settings())


def requests(inventory, stage="plan"):
    package = inventory.package()
    log = AttemptLog(package, latest_revision(package), stage)
    return [package.load(log.path(number, "request.json"), ModelRequest) for number in log.numbers()]


def asked(model, stage="plan"):
    return [request.model for request in model.calls if request.stage == stage]


def events(inventory):
    package = inventory.package()
    return [(event.kind, event.code) for event in EventLog(package, latest_revision(package)).all()]


def verified(inventory):
    return verify_package(inventory.package().root, inventory.host())


@pytest.mark.parametrize("form", ["raised by send", "raised by read"])
def test_what_no_retry_mends_is_answered_by_the_next_within_the_same_run(inventory, form):
    model = InventoryModel(
        scripted={"plan": [failure("LLM_QUOTA") if form == "raised by send" else native_error("LLM_QUOTA")]}
    )
    result = inventory.resolve(model)
    assert (result.state, asked(model)) == ("interpreted", ["first", "second"])
    assert events(inventory) == []
    assert result.to_json()["calls"] == {"plan": 2, "assessment": 1, "interpretation": 1}
    first, second = requests(inventory)
    assert second == first.model_copy(
        update={
            "attempt": 2,
            "model": "second",
            "response_format": "json_object",
            "timeout_s": 7,
            "max_output_tokens": 500,
        }
    )
    # Each stage begins with the first one again.
    assert (asked(model, "assessment"), asked(model, "interpretation")) == (["first"], ["first"])
    assert verified(inventory).answer == "holds"


@pytest.mark.parametrize("code", TRANSIENT)
def test_retries_come_first_and_the_next_is_asked_without_a_wait(inventory, code):
    model = InventoryModel(scripted={"plan": [failure(code, 300), failure(code, 300)]})
    assert inventory.resolve(model).state == "retry_pending"
    assert asked(model) == ["first"]
    inventory.clock.advance(300)
    assert inventory.resolve(model).state == "interpreted"
    assert asked(model) == ["first", "first", "second"]
    assert events(inventory) == [("retry_pending", code)]
    assert verified(inventory).answer == "holds"


def test_retries_are_shared_and_the_last_failure_decides(inventory):
    """Fault 18: one retry for all three, so four requests and no more."""
    inventory.configure(settings())
    model = InventoryModel(scripted={"plan": [failure("LLM_QUOTA")] + [failure("LLM_UNAVAILABLE")] * 9})
    result = inventory.resolve(model)
    assert (result.state, asked(model)) == ("retry_pending", ["first", "second"])
    inventory.clock.advance(60)
    result = inventory.resolve(model)
    assert (result.state, result.code) == ("blocked", "LLM_UNAVAILABLE")
    assert asked(model) == ["first", "second", "second", "third"]
    assert inventory.resolve(RaisingProvider()).state == "blocked"
    told = "asked in turn: scripted first (LLM_QUOTA), scripted second (LLM_UNAVAILABLE), scripted third"
    assert told in result.error
    assert verified(inventory).answer == "unfinished"


def test_a_blocked_case_waits_for_everybody_and_begins_again_with_the_first(inventory):
    inventory.configure(settings(retries=0, fallback='["second"]'))
    model = InventoryModel(scripted={"plan": [failure("LLM_RATE_LIMITED", 3600), failure("LLM_TIMEOUT")]})
    result = inventory.resolve(model)
    assert (result.state, result.code, result.retry_at) == ("blocked", "LLM_TIMEOUT", "2026-11-01T09:00:00.000Z")
    inventory.clock.advance(3599)
    with pytest.raises(SettingsError, match="RETRY_LATER"):
        inventory.project(RaisingProvider()).resume("INC-7")
    inventory.clock.advance(1)
    again = InventoryModel(scripted={"plan": [failure("LLM_RATE_LIMITED")]})
    assert inventory.project(again).resume("INC-7").state == "interpreted"
    assert asked(again) == ["first", "second"]
    assert verified(inventory).answer == "holds"


def test_a_code_that_is_not_listed_moves_nothing(inventory):
    model = InventoryModel(scripted={"plan": [failure("LLM_AUTH")]})
    assert inventory.resolve(model).code == "LLM_AUTH"
    assert asked(model) == ["first"]


@pytest.mark.parametrize("code", ["LLM_AUTH", "LLM_REQUEST"])
def test_a_refused_key_or_request_moves_on_where_it_is_listed(inventory, code):
    inventory.configure(settings(codes=[code]))
    model = InventoryModel(scripted={"plan": [failure(code)]})
    assert inventory.resolve(model).state == "interpreted"
    assert asked(model) == ["first", "second"]


def test_invalid_replies_never_move_a_stage_on(inventory):
    model = InventoryModel(scripted={"plan": ["no JSON", {}, CUT]})
    result = inventory.resolve(model)
    assert (result.state, result.code) == ("review", "ENTITY_RESOLUTION_INVALID_RESPONSES")
    assert asked(model) == ["first"] * 3


def test_a_correction_is_asked_of_whoever_was_wrong_and_invalid_replies_add_up(inventory):
    model = InventoryModel(scripted={"plan": ["no JSON", failure("LLM_QUOTA"), CUT, "no JSON"]})
    assert inventory.resolve(model).state == "review"
    assert asked(model) == ["first", "first", "second", "second"]
    sent = requests(inventory)
    assert "feedback" in json.loads(sent[2].user)  # the next one is told what was wrong with the reply before it
    assert [request.max_output_tokens for request in sent] == [4096, 4096, 500, 1500]
    assert verified(inventory).answer == "unfinished"


@pytest.mark.parametrize("key", ["run_calls", "case_calls"])
def test_every_request_counts_in_the_budget_whoever_answers(inventory, key):
    inventory.configure(settings(more=f"[budget]\n{key} = 1\n"))
    model = InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]})
    result = inventory.resolve(model)
    assert (result.state, result.code, asked(model)) == ("researched", "BUDGET_REACHED", ["first"])
    inventory.configure(settings(more=f"[budget]\n{key} = 4\n"))
    assert inventory.resolve(model).state == "interpreted"
    assert asked(model) == ["first", "second"]  # a later run goes on with whose turn it is


class Dead(BaseException):
    """Ends a run where it stands, as a signal does; nothing in casebound catches it."""


def test_a_run_that_dies_while_the_next_is_asked_goes_on_with_him(inventory):
    class Dying(InventoryModel):
        async def send(self, request):
            if request.model == "second":
                raise Dead
            return await super().send(request)

    with pytest.raises(Dead):
        inventory.resolve(Dying(scripted={"plan": [failure("LLM_QUOTA")]}))
    model = InventoryModel()
    assert inventory.resolve(model).state == "interpreted"
    assert asked(model) == ["second"]
    assert verified(inventory).answer == "holds"


@pytest.mark.spec("A-044")
def test_the_frozen_fallbacks_count_and_not_the_codes_of_today(inventory):
    model = InventoryModel(scripted={"plan": [failure("LLM_TIMEOUT")]})
    assert inventory.resolve(model).state == "retry_pending"
    inventory.configure(settings(retries=9, codes=[]))
    inventory.clock.advance(60)
    model = InventoryModel(scripted={"plan": [failure("LLM_TIMEOUT")]})
    assert inventory.resolve(model).state == "interpreted"
    assert asked(model) == ["first", "second"]
    frozen = inventory.package().load(latest_revision(inventory.package()).input, InterpretationInput)
    assert frozen.policy("plan").fallback_codes == (*TRANSIENT, "LLM_QUOTA")
    assert [one.name for one in frozen.policy("plan").answerers] == [
        "scripted first",
        "scripted second",
        "scripted third",
    ]


@pytest.mark.spec("A-105", "A-106")
@pytest.mark.parametrize("now", ["[]", '["second"]', '["third", "second"]'])
def test_other_fallbacks_are_another_binding(inventory, now):
    inventory.resolve(InventoryModel(scripted={"plan": [failure("LLM_TIMEOUT")]}))
    inventory.clock.advance(60)
    inventory.configure(settings(fallback=now))
    result = inventory.resolve(RaisingProvider())
    assert result.code == "BINDING_CHANGED"
    assert "it asked scripted first, then scripted second, then scripted third" in result.error
    inventory.configure(settings())
    assert inventory.resolve(InventoryModel()).state == "interpreted"


def test_a_finished_case_tells_that_a_fresh_one_would_freeze_others(inventory):
    inventory.resolve(InventoryModel())
    inventory.configure(settings(profiles=PROFILES.replace("timeout_s = 7", "timeout_s = 8")))
    project = inventory.project(RaisingProvider())
    list(project.resolve([inventory.report]))
    assert ["plan: fallbacks are others" in note for note in project.notes] == [True]


# --- what is told ---------------------------------------------------------------------------------------------------


def test_who_answered_is_told_where_a_fallback_did(inventory):
    result = inventory.resolve(InventoryModel(scripted={"assessment": [failure("LLM_QUOTA")]}))
    first = {"provider": "scripted", "model": "first", "resolver": "model", "fallback": False}
    second = {**first, "model": "second", "fallback": True}
    expected = {"plan": first, "assessment": second, "interpretation": first}
    project = inventory.project(RaisingProvider())
    assert result.to_json()["answered_by"] == project.show("INC-7")["answered_by"] == expected
    chain = derive_chain(inventory.package())
    assert chain.to_json()["answered_by"] == expected
    line = "answered  plan by scripted first; assessment by scripted second, a fallback; interpretation by"
    for nodes in (case_nodes(project.show("INC-7")), chain_nodes(chain)):
        assert line in plain(nodes)


def test_the_line_has_no_further_key_where_no_fallback_answered(inventory):
    line = inventory.resolve(InventoryModel()).to_json()
    assert "answered_by" not in line
    assert "answered  " not in plain(chain_nodes(derive_chain(inventory.package())))


# --- what verify finds ----------------------------------------------------------------------------------------------


def changed(inventory, path, **update):
    """Return the answer and findings of a copy in which one JSON file says something else."""
    copy = inventory.folder / "copy"
    shutil.copytree(inventory.package().root, copy)
    file = copy / path
    file.write_bytes(canonical_bytes({**json.loads(file.read_bytes()), **update}))
    found = verify_package(copy, inventory.host())
    return found.answer, {(finding.code, finding.file, finding.pointer) for finding in found.findings}


@pytest.mark.parametrize(
    ("key", "value"),
    [("provider", "other"), ("model", "first"), ("response_format", "text"), ("max_output_tokens", 4096)],
)
def test_a_request_that_names_somebody_else_is_found(inventory, key, value):
    inventory.resolve(InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]}))
    log = AttemptLog(inventory.package(), latest_revision(inventory.package()), "plan")
    path = log.path(2, "request.json")
    answer, findings = changed(inventory, path, **{key: value})
    assert answer == "does_not_hold"
    assert ("VERIFY_DERIVED", path, f"/{key}") in findings


def test_a_request_that_the_policy_does_not_allow_is_found(inventory):
    """Without the resumption that is on record, nothing may be sent after a block."""
    inventory.configure(settings(retries=0, fallback="[]"))
    inventory.resolve(InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]}))
    inventory.clock.advance(60)
    project = inventory.project(InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]}))
    assert project.resume("INC-7").state == "blocked"
    assert verified(inventory).answer == "unfinished"
    revision = latest_revision(inventory.package())
    answer, findings = changed(inventory, revision.event(2), stage="assessment")
    path = AttemptLog(inventory.package(), revision, "plan").path(2, "request.json")
    assert (answer, ("VERIFY_EXTRA", path, "") in findings) == ("does_not_hold", True)
