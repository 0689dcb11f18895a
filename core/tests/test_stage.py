"""The semantic stage: ask, keep, judge, correct, as often as the frozen policy allows; each step a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from casebound.contracts.interpretation import Feedback
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply, Outcome
from casebound.errors import TRANSIENT, ProviderError, SettingsError
from casebound.llm.attempts import AttemptLog
from casebound.llm.judge import judge
from casebound.progress import derive_progress, latest_revision
from casebound.store.events import EventLog
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider, native_error, native_reply

BAD = {
    "searches": [
        {"catalog": "inventory.host", "term": "nowhere", "role": "context", "source_ids": ["S0001"], "reason": "x"}
    ]
}
CUT = native_reply('{"searches":[{"catal', finish_reason="length")
AT_ONCE = ("LLM_AUTH", "LLM_QUOTA", "LLM_REQUEST")


class Dead(BaseException):
    """Ends a run where it stands, as a signal does; nothing in casebound catches it."""


def failure(code, retry_after=None):
    return ProviderError(code, retryable=code in TRANSIENT, retry_after=retry_after, found="a test")


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path)


def resolve(inventory, provider, **options):
    return inventory.resolve(provider, **options)


def log(inventory, stage="plan"):
    package = inventory.package()
    return AttemptLog(package, latest_revision(package), stage)


def outcomes(inventory, stage="plan"):
    return [(attempt.outcome.kind, attempt.outcome.code) for attempt in log(inventory, stage).all()]


def events(inventory):
    package = inventory.package()
    return [(event.kind, event.code) for event in EventLog(package, latest_revision(package)).all()]


def request(inventory, number, stage="plan"):
    return inventory.package().load(log(inventory, stage).path(number, "request.json"), ModelRequest)


def feedback(inventory, number, stage="plan"):
    package = inventory.package()
    return package.load_if(latest_revision(package).feedback(stage, number), Feedback)


# --- correction -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-042", "A-044", "A-074", "A-113f", "A-130", "A-148h", "A-148j")
@pytest.mark.parametrize("stage", ["plan", "assessment", "interpretation"])
def test_a_bad_reply_is_corrected_and_both_are_kept(inventory, stage):
    model = InventoryModel(scripted={stage: [{"nonsense": True}]})
    assert resolve(inventory, model).state == "interpreted"
    assert outcomes(inventory, stage) == [("invalid", "LLM_OUTPUT_SCHEMA"), ("accepted", None)]
    first, second = model.asked(stage)
    assert "feedback" not in first
    frozen = feedback(inventory, 2, stage)
    assert second == {**first, "feedback": frozen.feedback}  # everything else is the same
    assert frozen.outcome == inventory.package().digest(log(inventory, stage).path(1, "outcome.json"))
    assert [error["code"] for error in frozen.feedback["errors"]] == ["LLM_OUTPUT_SCHEMA"] * len(
        frozen.feedback["errors"]
    )
    assert log(inventory, stage).reply(1).text == '{"nonsense":true}'  # the refused body can be read later
    assert feedback(inventory, 1, stage) is None


@pytest.mark.spec("A-148h")
def test_an_accepted_artifact_holds_the_reply_as_it_was_said(inventory):
    model = InventoryModel()
    resolve(inventory, model)
    revision = latest_revision(inventory.package())
    for stage, path in {
        "plan": revision.plan,
        "assessment": revision.assessment,
        "interpretation": revision.interpretation,
    }.items():
        kept = json.loads(inventory.package().require(path))["reply"]
        assert kept == json.loads(log(inventory, stage).reply(1).text)


def test_a_reply_is_judged_by_the_schema_of_its_request(inventory, monkeypatch):
    judged = []

    def noted(reply, schema, *rest):
        judged.append(schema)
        return judge(reply, schema, *rest)

    monkeypatch.setattr("casebound.llm.stage.judge", noted)
    resolve(inventory, InventoryModel())
    assert judged == [request(inventory, 1, name).response_schema for name in ("plan", "assessment", "interpretation")]


@pytest.mark.spec("A-148i")
def test_feedback_is_on_disk_before_the_next_call(inventory):
    """Whoever dies between the two finds it again, and sends exactly it."""

    class Dying(InventoryModel):
        async def send(self, request):
            if request.attempt == 2:
                assert feedback(inventory, 2) is not None
                assert log(inventory).numbers() == [1, 2]  # the request too
                raise Dead
            return await super().send(request)

    with pytest.raises(Dead):
        resolve(inventory, Dying(scripted={"plan": [BAD]}))
    frozen = inventory.package().require(latest_revision(inventory.package()).feedback("plan", 2))
    model = InventoryModel()
    assert resolve(inventory, model).state == "interpreted"
    assert model.asked("plan")[0]["feedback"] == json.loads(frozen)["feedback"]
    assert outcomes(inventory) == [
        ("invalid", "ENTITY_RESOLUTION_UNGROUNDED_TERM"),
        ("unknown", "LLM_CALL_UNKNOWN"),
        ("accepted", None),
    ]


@pytest.mark.spec("A-054", "A-097", "A-113g", "A-131", "A-148g", "A-148l")
@pytest.mark.parametrize(
    ("stage", "code"),
    [
        ("plan", "ENTITY_RESOLUTION_INVALID_RESPONSES"),
        ("assessment", "ENTITY_RESOLUTION_INVALID_RESPONSES"),
        ("interpretation", "INTERPRETATION_INVALID_RESPONSES"),
    ],
)
def test_the_third_invalid_reply_ends_in_review(inventory, stage, code):
    model = InventoryModel(scripted={stage: ["no JSON", {}, CUT]})
    result = resolve(inventory, model)
    assert (result.state, result.code, result.retry_at) == ("review", code, None)
    assert [code for _, code in outcomes(inventory, stage)] == [
        "LLM_OUTPUT_JSON",
        "LLM_OUTPUT_SCHEMA",
        "LLM_INCOMPLETE_OUTPUT",
    ]
    assert events(inventory) == [("review", code)]
    assert resolve(inventory, RaisingProvider()).state == "review"  # nothing is sent again
    with pytest.raises(SettingsError, match="RESUME_REFUSED"):
        inventory.project(RaisingProvider()).resume("INC-7")


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ("no JSON", "found: 3 replies that were refused, the last one for LLM_OUTPUT_JSON"),
        (BAD, "found: 3 replies that were refused, the last one for ENTITY_RESOLUTION_UNGROUNDED_TERM at /searches/0/"),
        ({}, "found: 3 replies that were refused, the last one for LLM_OUTPUT_SCHEMA"),
    ],
)
def test_a_case_in_review_says_why_in_a_message(inventory, last, found):
    result = resolve(inventory, InventoryModel(scripted={"plan": ["x", "x", last]}))
    lines = [line.strip() for line in result.error.split("\n")]
    assert lines[:2] == [
        "ENTITY_RESOLUTION_INVALID_RESPONSES: too many invalid replies while resolving entities",
        "where: stage plan, attempt 3",
    ]
    assert lines[2].startswith(found)
    assert lines[3] == "what to do: read them below attempts/, then `casebound revise INC-7` asks anew"


@pytest.mark.spec("A-054", "A-113e")
def test_invalid_replies_are_counted_by_stage(inventory):
    model = InventoryModel(scripted={stage: ["x", "x"] for stage in ("plan", "assessment", "interpretation")})
    assert resolve(inventory, model).state == "interpreted"
    assert model.counts() == {"plan": 3, "assessment": 3, "interpretation": 3}


@pytest.mark.spec("A-044")
def test_the_frozen_policy_counts_and_not_the_settings_of_today(inventory):
    inventory.configure(settings_text(resolution={"max_invalid_responses": 2}, llm="[llm.retry]\nmax_retries = 0\n"))
    assert resolve(inventory, InventoryModel(scripted={"plan": [failure("LLM_TIMEOUT")]})).state == "blocked"
    inventory.configure(settings_text(resolution={"max_invalid_responses": 9}))
    inventory.clock.advance(60)
    result = inventory.project(InventoryModel(scripted={"plan": ["x", "x", "x"]})).resume("INC-7")
    assert (result.state, len(outcomes(inventory))) == ("review", 3)


@pytest.mark.spec("A-129")
def test_a_cut_reply_gets_more_room_and_is_told_that_it_was_cut(inventory):
    """Fault 10: no failed schema, no burnt retry at the same length."""
    inventory.configure(settings_text(llm="max_output_tokens = 1001\nincomplete_cap_factor = 1.5\n"))
    model = InventoryModel(scripted={"plan": [CUT, CUT]})
    assert resolve(inventory, model).state == "interpreted"
    assert [request(inventory, number).max_output_tokens for number in (1, 2, 3)] == [1001, 1501, 2252]
    assert request(inventory, 1, "assessment").max_output_tokens == 1001
    (error,) = model.asked("plan")[1]["feedback"]["errors"]
    assert (error["code"], error["path"]) == ("LLM_INCOMPLETE_OUTPUT", "")
    assert "cut off" in error["message"]
    assert log(inventory).reply(1).finish_reason == "length"


def test_a_refusal_and_a_tool_are_invalid_replies_and_no_answers(inventory):
    """Fault 13: they are distinct outcomes, and never served as an answer."""
    said = [
        ModelReply(text="", finish_reason="refusal"),
        native_reply(BAD, finish_reason="tool_calls", tools=["shell"]),
    ]
    assert resolve(inventory, InventoryModel(scripted={"plan": said})).state == "interpreted"
    assert outcomes(inventory) == [("invalid", "LLM_REFUSED"), ("invalid", "LLM_OUTPUT_JSON"), ("accepted", None)]


# --- providers that fail --------------------------------------------------------------------------------------------


@pytest.mark.spec("A-113j", "A-103", "A-122")
@pytest.mark.parametrize(("wish", "delay"), [(None, 60), (5, 60), (90.5, 90.5), (0, 60)])
@pytest.mark.parametrize("code", TRANSIENT)
def test_a_transient_error_waits_and_then_the_same_call_goes_on(inventory, code, wish, delay):
    result = resolve(inventory, InventoryModel(scripted={"plan": [failure(code, wish)]}))
    assert (result.state, result.code) == ("retry_pending", code)
    at = derive_progress(inventory.package()).retry_at
    assert at == inventory.clock.now() + timedelta(seconds=delay)
    inventory.clock.advance(delay - 0.5)
    assert resolve(inventory, RaisingProvider()).state == "retry_pending"  # half a second early
    inventory.clock.advance(0.5)
    model = InventoryModel()
    assert resolve(inventory, model).state == "interpreted"
    assert model.counts() == {"plan": 1, "assessment": 1, "interpretation": 1}
    assert outcomes(inventory) == [("provider_error", code), ("accepted", None)]
    first, second = request(inventory, 1), request(inventory, 2)
    assert first.model_copy(update={"attempt": 2}) == second


@pytest.mark.spec("A-044")
def test_after_max_retries_it_blocks_and_each_resume_counts_anew(inventory):
    dead = [failure("LLM_UNAVAILABLE") for _ in range(9)]
    model = InventoryModel(scripted={"plan": dead})
    states = []
    for _ in range(3):
        states.append(resolve(inventory, model).state)
        inventory.clock.advance(60)
    assert states == ["retry_pending", "retry_pending", "blocked"]
    assert resolve(inventory, model).state == "blocked"  # only an explicit resume goes on
    assert len(model.calls) == 3
    assert inventory.project(model).resume("INC-7").state == "retry_pending"
    for expected in ("retry_pending", "blocked"):
        inventory.clock.advance(60)
        assert resolve(inventory, model).state == expected
    assert len(model.calls) == 6
    inventory.clock.advance(60)
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"
    assert outcomes(inventory) == [("provider_error", "LLM_UNAVAILABLE")] * 6 + [("accepted", None)]
    assert events(inventory)[:4] == [
        *[("retry_pending", "LLM_UNAVAILABLE")] * 2,
        ("blocked", "LLM_UNAVAILABLE"),
        ("resumed", "LLM_UNAVAILABLE"),
    ]


@pytest.mark.spec("A-101", "A-102", "A-103")
@pytest.mark.parametrize("code", AT_ONCE)
@pytest.mark.parametrize("form", ["raised by send", "raised by read"])
def test_what_waiting_does_not_mend_blocks_at_once(inventory, code, form):
    answer = failure(code) if form == "raised by send" else native_error(code)
    result = resolve(inventory, InventoryModel(scripted={"plan": [answer]}))
    assert (result.state, result.code) == ("blocked", code)
    assert result.retry_at == "2026-11-01T08:01:00.000Z"
    with pytest.raises(SettingsError, match="RETRY_LATER"):
        inventory.project(InventoryModel()).resume("INC-7")
    inventory.clock.advance(59.999)
    with pytest.raises(SettingsError, match="2026-11-01T08:01:00"):
        inventory.project(InventoryModel()).resume("INC-7")
    inventory.clock.advance(0.001)
    assert resolve(inventory, RaisingProvider()).state == "blocked"
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"


def test_the_bytes_of_an_error_are_kept_and_no_answer_is_made_of_them(inventory):
    """Fault 13."""
    resolve(
        inventory,
        InventoryModel(scripted={"plan": [native_error("LLM_RATE_LIMITED", retryable=True, retry_after_s=70)]}),
    )
    native = log(inventory).native(1)
    assert json.loads(native.body)["error"]["code"] == "LLM_RATE_LIMITED"
    assert not inventory.package().exists(log(inventory).path(1, "reply.json"))
    outcome = inventory.package().load(log(inventory).path(1, "outcome.json"), Outcome)
    assert (outcome.kind, outcome.retry_after_ms) == ("provider_error", 70_000)


def test_a_body_that_is_no_reply_is_a_transient_failure(inventory):
    result = resolve(inventory, InventoryModel(scripted={"plan": [NativeReply(200, b"<html>")]}))
    assert (result.state, result.code) == ("retry_pending", "LLM_UNAVAILABLE")


def test_a_retry_is_answered_by_the_provider_and_by_nothing_else(inventory):
    """Fault 12: equal requests, and yet each attempt gets an answer of its own."""
    model = InventoryModel(scripted={"plan": ["no JSON", failure("LLM_TIMEOUT")]})
    assert resolve(inventory, model).state == "retry_pending"
    inventory.clock.advance(60)
    assert resolve(inventory, model).state == "interpreted"
    assert outcomes(inventory) == [
        ("invalid", "LLM_OUTPUT_JSON"),
        ("provider_error", "LLM_TIMEOUT"),
        ("accepted", None),
    ]
    # The attempt that repeats the one that failed carries the same feedback.
    assert request(inventory, 2).user == request(inventory, 3).user
    assert feedback(inventory, 3) is None


# --- calls that nobody knows about ----------------------------------------------------------------------------------


def sent_and_lost(inventory, times=1):
    """Leave `times` requests on disk that no reply belongs to, as a process does that is killed while it waits."""

    class Killed(InventoryModel):
        async def send(self, request):
            raise Dead

    for _ in range(times):
        with pytest.raises(Dead):
            resolve(inventory, Killed())


def test_an_unknown_call_counts_as_spent_and_is_sent_again_under_retry(inventory):
    """Fault 17."""
    sent_and_lost(inventory)
    model = InventoryModel()
    result = resolve(inventory, model)
    assert result.state == "interpreted"
    assert outcomes(inventory) == [("unknown", "LLM_CALL_UNKNOWN"), ("accepted", None)]
    assert result.to_json()["calls"] == {"plan": 2, "assessment": 1, "interpretation": 1}
    assert result.to_json()["tokens"] == {"input": None, "output": None}  # nobody knows what it cost


def test_unknown_calls_are_not_sent_again_without_end(inventory):
    sent_and_lost(inventory, times=3)
    result = resolve(inventory, RaisingProvider())
    assert (result.state, result.code) == ("blocked", "LLM_CALL_UNKNOWN")
    inventory.clock.advance(60)
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"


def test_an_unknown_call_blocks_under_hold_until_somebody_resumes(inventory):
    inventory.configure(settings_text(llm='unknown_calls = "hold"\n'))
    sent_and_lost(inventory)
    result = resolve(inventory, RaisingProvider())
    assert (result.state, result.code) == ("blocked", "LLM_CALL_UNKNOWN")
    inventory.clock.advance(60)
    assert resolve(inventory, RaisingProvider()).state == "blocked"
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"
    assert outcomes(inventory) == [("unknown", "LLM_CALL_UNKNOWN"), ("accepted", None)]


def test_a_reply_that_reached_the_disk_is_never_paid_for_again(inventory):
    """Killed after the native bytes, before anything was read from them."""

    class Reading(InventoryModel):
        def read(self, native):
            raise Dead

    with pytest.raises(Dead):
        resolve(inventory, Reading())
    model = InventoryModel()
    assert resolve(inventory, model).state == "interpreted"
    assert model.counts()["plan"] == 0


# --- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "found"), [("run_calls", "1 call in this run"), ("case_calls", "1 call for this case, in 1 interpretation")]
)
def test_a_budget_stops_before_the_call_and_changes_nothing(inventory, key, found):
    inventory.configure(settings_text(more=f"[budget]\n{key} = 1\n"))
    model = InventoryModel()
    result = resolve(inventory, model)
    assert (result.state, result.code, len(model.calls)) == ("looked_up", "BUDGET_REACHED", 1)
    assert f"found: {found}\n" in result.error
    assert events(inventory) == []
    assert log(inventory, "assessment").numbers() == []
    inventory.configure(settings_text(more=f"[budget]\n{key} = 3\n"))
    assert resolve(inventory, model).state == "interpreted"
    assert len(model.calls) == 3


def test_corrections_and_retries_count_in_the_budget(inventory):
    inventory.configure(settings_text(more="[budget]\ncase_calls = 2\n"))
    model = InventoryModel(scripted={"plan": ["x", "x", "x"]})
    assert resolve(inventory, model).code == "BUDGET_REACHED"
    assert len(model.calls) == 2


def test_the_time_of_an_outcome_is_that_of_the_clock(inventory):
    inventory.clock.set_now(datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC))
    resolve(inventory, InventoryModel())
    assert log(inventory).all()[0].outcome.at == "2031-02-03T04:05:06.000Z"


@pytest.mark.parametrize(
    ("code", "advised"),
    [
        ("LLM_AUTH", ["`casebound resume INC-7`"]),
        ("LLM_QUOTA", ["`casebound resume INC-7`"]),
        (
            "LLM_REQUEST",
            ["correct base_url", "`casebound resume INC-7`", "response_format", "`casebound revise INC-7`"],
        ),
    ],
)
def test_what_to_do_about_a_blocked_case_names_the_case(inventory, code, advised):
    inventory.resolve(InventoryModel(scripted={"plan": [failure(code)]}))
    error = inventory.project(RaisingProvider()).show("INC-7")["error"]
    assert [part for part in advised if part not in error] == []
    assert "CASE" not in error


def test_a_refusal_names_the_case_too(inventory):
    resolve(inventory, InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]}))
    inventory.configure(settings_text(model="other"))
    inventory.clock.advance(60)
    assert "`casebound revise INC-7`" in inventory.project(RaisingProvider()).resume("INC-7").error


def test_a_package_whose_name_begins_with_a_digit_is_named_whole(inventory):
    inventory.resolve(InventoryModel(scripted={"plan": [failure("LLM_QUOTA")]}), package_id="17")
    assert "`casebound resume 17`" in inventory.project(RaisingProvider()).show("17")["error"]
