"""Packages from before feedback was kept: an attempt was sent again without it. They replay, go on, and verify."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from casebound.api import verify
from casebound.clock import format_time
from casebound.contracts.interpretation import Feedback, InterpretationContext, InterpretationInput
from casebound.contracts.model_call import ModelRequest, Outcome
from casebound.llm.attempts import AttemptLog
from casebound.llm.course import load_course
from casebound.llm.stage import derive_request
from casebound.pointer import resolve_pointer
from casebound.progress import latest_revision
from casebound.store import Package
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_cases import load_facts
from casebound.testing.inventory_model import InventoryModel, assessment_reply, message_of
from casebound.testing.scripted import RaisingProvider, native_reply

STAGES = ("plan", "assessment", "interpretation")
VERSIONS = (1, 2, 3, 4)
UNCITED = {
    "resolutions": [
        {
            "search_index": index,
            "status": "selected",
            "entity": {"type": "host", "id": number},
            "role": "participant",
            "reason": f"V000{index + 1} and S0002 name it",
            "source_ids": ["S0002"],
        }
        for index, number in enumerate(("12", "13"))
    ]
}
WRONG = {"plan": {"searches": [{}]}, "assessment": UNCITED, "interpretation": {}}


@dataclass
class Old:
    """A case whose second attempt of `stage` was sent without feedback, as its request says; nobody answered yet."""

    inventory: Inventory
    stage: str
    version: int

    @property
    def package(self) -> Package:
        return self.inventory.package()

    @property
    def log(self) -> AttemptLog:
        return AttemptLog(self.package, latest_revision(self.package), self.stage)

    def write(self) -> None:
        self.configure(f"[budget]\ncase_calls = {STAGES.index(self.stage) + 1}\n")
        model = InventoryModel(scripted={self.stage: [WRONG[self.stage]]})
        assert self.inventory.resolve(model).code == "BUDGET_REACHED"
        self.configure()
        revision = latest_revision(self.package)
        policy = self.package.load(revision.input, InterpretationInput).policy(self.stage)
        protocol = self.inventory.host().protocols[self.stage, policy.protocol.version]
        if self.stage == "interpretation":
            context = self.package.load(revision.context, InterpretationContext).context
        else:
            context = protocol.context(load_facts(self.inventory))
        course = load_course(self.package, revision, policy)
        asyncio.run(self.log.write_request(derive_request(course, protocol, context, None, 2)))

    def configure(self, more: str = "") -> None:
        self.inventory.configure(settings_text(more=f"{more}[protocols]\nresolution = {self.version}\n"))

    def fail(self) -> None:
        """Decide the second attempt as a provider's failure."""
        self.log.decided(
            2,
            Outcome(
                kind="provider_error",
                code="LLM_TIMEOUT",
                request=self.log.request_digest(2),
                native=None,
                message="LLM_TIMEOUT",
                retryable=True,
                at=format_time(self.inventory.clock.now()),
            ),
        )

    def files(self) -> dict[str, str]:
        return {path: self.package.digest(path) for path in self.package.paths()}

    def feedbacks(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.package.paths() if "/feedback-" in path]

    def message(self, number: int) -> dict[str, object]:
        return message_of(self.package.load(self.log.path(number, "request.json"), ModelRequest))

    def feedback(self, number: int) -> Feedback:
        return self.package.load(latest_revision(self.package).feedback(self.stage, number), Feedback)

    def outcomes(self) -> list[str]:
        return [attempt.outcome.kind for attempt in self.log.all()]

    def verified(self) -> str:
        return verify(self.package.root, host=self.inventory.host()).answer


def old_case(folder, stage="assessment", version=4):
    old = Old(write_inventory(folder), stage, version)
    old.write()
    assert "feedback" not in old.message(2)
    assert old.feedbacks() == []
    assert old.verified() == "unfinished"
    return old


@pytest.mark.spec("A-148a", "A-148b", "A-148c", "A-148d", "A-148e", "A-148i", "A-148j", "A-148k", "A-148l", "A-158j")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_failed_assessment_goes_on_and_its_next_attempt_has_feedback(tmp_path, version):
    """Neither plan nor look-up is repeated, and what was there stays as it was."""
    old = old_case(tmp_path, version=version)
    asyncio.run(old.log.write_native(2, native_reply(UNCITED)))
    before = old.files()
    old.inventory.database.unlink()  # a query would fail
    model = InventoryModel()
    assert old.inventory.resolve(model).state == "interpreted"
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 1}
    assert before.items() <= old.files().items()
    assert old.outcomes() == ["invalid", "invalid", "accepted"]
    assert old.feedbacks() == ["feedback-assessment-0003.json"]
    frozen = old.feedback(3)
    assert (frozen.attempt, frozen.outcome) == (3, old.package.digest(old.log.path(2, "outcome.json")))
    assert old.message(3)["feedback"] == frozen.feedback
    errors = frozen.feedback["errors"]
    assert [error["path"] for error in errors] == ["/resolutions/0/source_ids", "/resolutions/1/source_ids"]
    assert all(resolve_pointer(UNCITED, error["path"]) == ["S0002"] for error in errors)
    if version < 4:
        assert {error["code"] for error in errors} == {"ENTITY_RESOLUTION_CAPTURE_SOURCE"}
        assert [(error["missing_capture"], error["search_index"]) for error in errors] == [("V0001", 0), ("V0002", 1)]
        assert [error["mentions"] for error in errors] == [["P0001", "S0001", "S0002", "S0006"], ["S0002"]]
    else:
        assert {error["code"] for error in errors} == {"LLM_OUTPUT_SCHEMA"}
        assert [error["permitted"] for error in errors] == [["V0001"], ["V0002"]]
    assert old.verified() == "holds"


@pytest.mark.spec("A-148l")
def test_replies_of_attempts_without_feedback_count(tmp_path):
    old = old_case(tmp_path)
    asyncio.run(old.log.write_native(2, native_reply(UNCITED)))
    model = InventoryModel(scripted={"assessment": [UNCITED]})
    assert old.inventory.resolve(model).code == "ENTITY_RESOLUTION_INVALID_RESPONSES"
    assert old.outcomes() == ["invalid"] * 3
    assert old.verified() == "unfinished"


@pytest.mark.spec("A-148i", "A-148j", "A-148k")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("end", ["failed", "never answered"])
def test_an_attempt_without_feedback_that_got_no_reply_leaves_the_feedback_to_the_next_one(tmp_path, stage, end):
    """A file that the second attempt did not carry must not be written for it afterwards."""
    old = old_case(tmp_path, stage)
    if end == "failed":
        old.fail()
        assert old.inventory.resolve(RaisingProvider()).state == "retry_pending"
        old.inventory.clock.advance(60)
    before = old.files()
    assert old.inventory.resolve(InventoryModel()).state == "interpreted"
    assert before.items() <= old.files().items()
    assert old.outcomes() == ["invalid", "provider_error" if end == "failed" else "unknown", "accepted"]
    assert old.feedbacks() == [f"feedback-{stage}-0003.json"]
    frozen = old.feedback(3)
    assert (frozen.attempt, frozen.outcome) == (3, old.package.digest(old.log.path(1, "outcome.json")))
    assert old.message(3) == {**old.message(2), "feedback": frozen.feedback}
    assert old.verified() == "holds"


def test_a_repetition_carries_the_feedback_that_stands_and_writes_none_of_its_own(tmp_path):
    old = old_case(tmp_path)
    old.fail()
    old.inventory.clock.advance(60)
    assert old.inventory.resolve(RaisingProvider()).state == "retry_pending"  # the wait is written down
    model = InventoryModel(scripted={"assessment": [native_reply("{}", finish_reason="refusal")]})
    assert old.inventory.resolve(model).state == "interpreted"
    assert old.outcomes() == ["invalid", "provider_error", "invalid", "accepted"]
    assert old.feedbacks() == ["feedback-assessment-0003.json", "feedback-assessment-0004.json"]
    assert old.verified() == "holds"


@pytest.mark.spec("A-107", "A-157b", "A-158j")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_finished_package_without_any_feedback_is_replayed_and_holds(tmp_path, version):
    old = old_case(tmp_path, version=version)
    asyncio.run(old.log.write_native(2, native_reply(assessment_reply(old.message(2)))))
    assert old.inventory.resolve(InventoryModel()).state == "interpreted"
    assert (old.outcomes(), old.feedbacks()) == (["invalid", "accepted"], [])
    assert old.verified() == "holds"
    before = old.files()
    assert old.inventory.resolve(RaisingProvider()).state == "interpreted"
    assert old.files() == before


def test_feedback_that_a_request_carries_must_be_there(tmp_path):
    """Only a request without feedback needs no file; a lost file is missed, with and without a seal over the rest."""
    inventory = write_inventory(tmp_path)
    assert inventory.resolve(InventoryModel(scripted={"plan": [{}]})).state == "interpreted"
    package = inventory.package()
    revision = latest_revision(package)
    (package.root / revision.feedback("plan", 2)).unlink()
    (package.root / revision.seal).unlink()
    found = verify(package.root, host=inventory.host())
    assert found.answer == "does_not_hold"
    assert ("STORE_MISSING", revision.feedback("plan", 2)) in [(each.code, each.file) for each in found.findings]


@pytest.mark.parametrize("number", [2, 4])
def test_feedback_that_no_attempt_carried_is_found(tmp_path, number):
    """One that was added later: for the attempt that was sent without, or for one that never was."""
    old = old_case(tmp_path)
    old.fail()
    old.inventory.clock.advance(60)
    old.inventory.resolve(RaisingProvider())
    assert old.inventory.resolve(InventoryModel()).state == "interpreted"
    revision = latest_revision(old.package)
    added = old.feedback(3).model_copy(update={"attempt": number})
    (old.package.root / revision.feedback(old.stage, number)).write_bytes(added.to_bytes())
    (old.package.root / revision.seal).unlink()
    assert old.verified() == "does_not_hold"
