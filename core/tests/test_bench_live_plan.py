"""Plans of live runs: what they bind, who may be asked about what, and what may not have changed since."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from casebound import live_runs
from casebound.bench import wording
from casebound.bench.bundle import write_bundle
from casebound.bench.live_folder import LiveFolder
from casebound.bench.live_plan import Selection
from casebound.bench.measurement import with_receipts
from casebound.bench.prompt import context_of
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.bench_live import LiveStatus
from casebound.errors import CaseboundError, SettingsError
from casebound.llm.course import Course
from casebound.llm.stage import derive_request
from casebound.testing.distributions import plugins_in, write_distribution
from casebound.testing.live_trial import FIRST, SECOND, LiveTrial
from casebound.testing.scribe import logged
from casebound.testing.small_benchmark import small_host


def refused(call: Callable[[], object], code: str, *says: str) -> None:
    with pytest.raises(CaseboundError) as caught:
        call()
    assert (caught.value.code, caught.value.exit_status) == (code, 2), caught.value
    for part in says:
        assert part in str(caught.value)


# --- the plan -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-110", "B-112", "B-112b")
def test_preparing_writes_a_plan_whose_id_is_its_digest_and_asks_nobody(trial: LiveTrial) -> None:
    plan = trial.prepare()
    data = (trial.folder / "run" / "plan.json").read_bytes()
    content = json.loads(data)
    assert content.pop("planId") == plan.plan_id == digest_of(canonical_bytes(content))
    assert sorted(path.name for path in (trial.folder / "run").iterdir()) == ["plan.json", "requests"]
    assert logged(trial.log) == []
    bundle = trial.bundle
    assert (plan.measurement_id, plan.bundle) == (bundle.manifest.measurement_id, str(bundle.root))
    assert plan.manifest == digest_of((bundle.root / "manifest.json").read_bytes())
    assert plan.receipts == (digest_of((trial.folder / "author-review.json").read_bytes()),)
    assert [slot.request for slot in plan.slots] == [
        digest_of((trial.folder / "run/requests" / f"{slot.number:04d}.json").read_bytes()) for slot in plan.slots
    ]


@pytest.mark.spec("B-020", "B-021", "B-108", "B-117")
def test_requests_are_those_of_the_production_adapter_and_are_sent_as_they_stand(trial: LiveTrial) -> None:
    plan = trial.prepare()
    instrument = trial.bundle.measurement.instrument
    cases = {case.case_id: case for case in trial.bundle.measurement.corpus.corpus.cases}
    folder = LiveFolder(trial.folder / "run")
    for slot in plan.slots:
        case = cases[slot.case_id]
        context = context_of(case.input, instrument.protocol)
        request = derive_request(Course(plan.policy, (), ()), instrument.protocol, context, None, 1)
        assert folder.request(slot) == request
        assert request.system == instrument.protocol.request(context, None).system
        for secret in (case.reference_rationale, case.semantic_checks[0].text, case.split, case.project_id):
            assert secret not in request.user + request.system
    execute(trial, plan.plan_id)
    sent = [json.loads(line) for line in trial.log.read_text().splitlines()]
    assert [(each["system"], each["user"]) for each in sent] == [
        (folder.request(slot).system, folder.request(slot).user) for slot in plan.slots
    ]


@pytest.mark.spec("B-113")
@pytest.mark.parametrize(("decision", "says"), [(None, "pending"), ("changes_requested", "changes_requested")])
def test_a_bundle_that_its_author_did_not_approve_is_refused(tmp_path: Path, decision: str | None, says: str) -> None:
    trial = LiveTrial(tmp_path)
    trial.write_bundle(decision)
    refused(trial.prepare, "BENCH_LIVE", f"author's review {says}")
    assert not (tmp_path / "run").exists()


@pytest.mark.spec("B-114", "B-115")
@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection("tuning", ("tuning-printer",), 2), "2 calls for 1 cases"),
        (Selection("tuning", ("tuning-printer", "tuning-door"), 1), "1 calls for 2 cases"),
        (Selection("tuning", ("tuning-printer", "tuning-printer"), 2), "more than once"),
        (Selection("tuning", ("holdout-lamp",), 1), "holdout"),
        (Selection("tuning", ("nobody",), 1), "which the corpus does not have"),
        (Selection("nowhere", ("tuning-printer",), 1), "accepted: tuning, holdout"),
        (Selection("tuning", (), 0), "0 calls for 0 cases"),
    ],
)
def test_a_selection_that_is_none_is_refused_and_nothing_is_written(trial: LiveTrial, selection, says: str) -> None:
    held_out = [case.case_id for case in trial.bundle.measurement.corpus.corpus.in_split("holdout")]
    if selection.cases == ("holdout-lamp",):
        selection = replace(selection, cases=(held_out[0],))
    order = replace(trial.order(), selection=selection)
    refused(lambda: live_runs.prepare(order, host=trial.host, clock=trial.clock), "BENCH_LIVE", says)
    assert not order.out.exists()


@pytest.mark.parametrize("where", ["relative", "inside", "link", "there", "orphan"])
def test_a_run_may_only_stand_in_a_new_folder_outside_the_repository(trial: LiveTrial, where: str) -> None:
    repository = trial.folder / "repository"
    (repository / ".git").mkdir(parents=True)
    (trial.folder / "link").symlink_to(repository)
    out = {
        "relative": Path("run"),
        "inside": repository / "run",
        "link": trial.folder / "link" / "run",
        "there": trial.folder,
        "orphan": trial.folder / "nowhere" / "run",
    }[where]
    order = replace(trial.order(), out=out, repository=repository)
    refused(lambda: live_runs.prepare(order, host=trial.host, clock=trial.clock), "BENCH_OUTPUT")
    assert list(repository.iterdir()) == [repository / ".git"]


def test_an_executor_that_is_a_model_is_refused_without_its_name(trial: LiveTrial) -> None:
    order = replace(trial.order(), model=None)
    refused(lambda: live_runs.prepare(order, host=trial.host, clock=trial.clock), "USAGE", "--model")


@pytest.mark.spec("B-109", "B-117", "B-128", "B-130")
def test_the_plan_says_in_words_what_it_does_not_establish(trial: LiveTrial) -> None:
    said = trial.prepare().limitations
    assert said == wording.OF_A_PLAN
    text = " ".join(said)
    for words in (
        "does not establish that its executor meets the capacity contract",
        "It does not cap the requests that an executor makes of its provider, nor tokens, nor money",
        "not claimed to be the only system context",
        "Global skills, settings and an effort",
        "takes back neither requests nor fees",
        "asserts no result of any model in advance",
        "is acceptance",
    ):
        assert words in text


# --- what must be confirmed, and may not have changed ---------------------------------------------------------------


@pytest.mark.spec("B-103", "B-118")
@pytest.mark.parametrize("said", ["", "sha256:" + "0" * 64, "yes"])
def test_nothing_is_called_without_the_id_of_exactly_this_plan(trial: LiveTrial, said: str) -> None:
    trial.prepare()
    before = trial.files()
    refused(lambda: execute(trial, said), "BENCH_LIVE", "--confirm-plan")
    assert (trial.files(), logged(trial.log)) == (before, [])


def execute(trial: LiveTrial, confirmed: str) -> LiveStatus:
    return live_runs.execute(trial.folder / "run", confirmed, host=trial.host, clock=trial.clock)


@pytest.mark.spec("B-118", "B-123")
def test_the_confirmed_plan_is_executed_and_repeating_it_calls_nobody(trial: LiveTrial) -> None:
    plan = trial.prepare()
    found = execute(trial, plan.plan_id)
    assert (found.complete, found.stopped, {slot.state for slot in found.slots}) == (True, False, {"admitted"})
    files = trial.files()
    assert execute(trial, plan.plan_id) == found
    assert (logged(trial.log), trial.files()) == ([FIRST, SECOND], files)


def change_bundle(trial: LiveTrial) -> None:
    (trial.bundle_path / "system.txt").write_text("another")


def change_receipt(trial: LiveTrial) -> None:
    receipt = trial.bundle_path / "author-review.json"
    receipt.write_bytes(receipt.read_bytes().replace(b'"read"', b'"READ"', 1))


def change_whole_bundle(trial: LiveTrial) -> None:
    """Put another bundle of the same measurement there, whole in itself: only the receipt in it is another."""
    receipt = trial.folder / "author-review.json"
    receipt.write_bytes(receipt.read_bytes().replace(b'"read"', b'"read again"'))
    measurement = with_receipts(trial.bundle.measurement, receipt, None, trial.clock.now())
    shutil.rmtree(trial.bundle_path)
    write_bundle(trial.bundle_path, measurement, lambda *_: "<!doctype html>")


def change_program(trial: LiveTrial) -> None:
    (trial.folder / "program").write_bytes(b"another release")


def change_request(trial: LiveTrial) -> None:
    path = trial.folder / "run/requests/0002.json"
    path.write_bytes(path.read_bytes().replace(b"tiny-1", b"tiny-2"))


def change_model(trial: LiveTrial) -> None:
    path = trial.folder / "run/plan.json"
    path.write_bytes(path.read_bytes().replace(b'"model":"tiny-1"', b'"model":"tiny-2"'))


def change_model_and_id(trial: LiveTrial) -> None:
    """A plan that holds in itself, whose requests are not those of its policy."""
    change_model(trial)
    path = trial.folder / "run/plan.json"
    content = json.loads(path.read_bytes())
    del content["planId"]
    path.write_bytes(canonical_bytes({**content, "planId": digest_of(canonical_bytes(content))}))


@pytest.mark.spec("B-110")
@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (change_bundle, "BENCH_BUNDLE", "system.txt"),
        (change_receipt, "BENCH_BUNDLE", "author-review.json"),
        (change_whole_bundle, "BENCH_CHANGED", "manifest, receipts"),
        (change_program, "BENCH_CHANGED", "executor/program/digest"),
        (change_request, "BENCH_LIVE", "0002.json"),
        (change_model, "BENCH_LIVE", "/planId"),
        (change_model_and_id, "BENCH_CHANGED", "slots"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_plan_of_which_something_changed_is_refused_before_any_call(
    trial: LiveTrial, change: Callable[[LiveTrial], None], code: str, says: str
) -> None:
    (trial.folder / "program").write_bytes(b"a release")
    trial.prepare(program=str(trial.folder / "program"))
    change(trial)
    before = trial.files()
    confirmed = json.loads(before["plan.json"])["planId"]
    refused(lambda: execute(trial, confirmed), code, says)
    assert (trial.files(), logged(trial.log)) == (before, [])


@pytest.mark.spec("B-110")
@pytest.mark.parametrize("part", ["checker", "production", "validators", "declarations", "language", "prompt"])
def test_a_plan_of_another_installation_is_refused_and_the_part_is_named(trial: LiveTrial, part: str) -> None:
    plan = trial.prepare()
    manifest = trial.bundle_path / "manifest.json"
    content = json.loads(manifest.read_bytes())
    bound = content["identity"][part]
    _change_a_digest(bound if isinstance(bound, dict) else bound[0])
    content["measurementId"] = digest_of(canonical_bytes(content["identity"]))
    for name in ("author-review.json", "author-review.template.json", "independent-review.template.json"):
        path = trial.bundle_path / name
        path.write_text(path.read_text().replace(plan.measurement_id, content["measurementId"]))
        (entry,) = [file for file in content["files"] if file["path"] == name]
        entry["digest"] = digest_of(path.read_bytes())
    manifest.write_bytes(canonical_bytes(content))
    refused(lambda: execute(trial, plan.plan_id), "BENCH_IDENTITY" if part != "prompt" else "BENCH_BUNDLE", part)
    assert logged(trial.log) == []


def _change_a_digest(bound: dict) -> None:
    for key in ("digest", "tree", "executable", "system"):
        if isinstance(bound.get(key), str):
            bound[key] = digest_of(b"another")
            return
        if key in bound:
            bound[key]["digest"] = digest_of(b"another")
            return
    raise AssertionError(bound)


@pytest.mark.spec("B-110")
def test_a_plan_is_refused_once_a_byte_of_its_executors_distribution_is_another(
    trial: LiveTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from casebound.testing.scribe import casebound_providers\n"
    module = write_distribution(tmp_path / "site", "casebound-scribe-copy", source)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    trial.host = small_host(*plugins_in(tmp_path / "site"))
    plan = trial.prepare()
    assert plan.executor.offered_by.distribution == "casebound-scribe-copy"
    with (tmp_path / "site" / f"{module}.py").open("a") as file:
        file.write("#\n")
    refused(lambda: execute(trial, plan.plan_id), "BENCH_CHANGED", "executor/offeredBy/tree/digest")
    assert logged(trial.log) == []


@pytest.mark.spec("B-024")
def test_a_run_does_not_begin_at_the_moment_of_a_review(trial: LiveTrial) -> None:
    plan = trial.prepare()
    trial.clock.set_now(trial.clock.now().replace(month=10, day=31, hour=8))
    refused(lambda: execute(trial, plan.plan_id), "BENCH_LIVE", "later than the review")
    assert logged(trial.log) == []


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: data[:-1], "plan.json"),
        (lambda data: data.replace(b'{"benchmark"', b'{"benchmark":"x","benchmark"', 1), "twice"),
        (lambda data: data.replace(b'{"benchmark"', b'{ "benchmark"', 1), "canonical"),
        (lambda data: data.replace(b'"split":"tuning"', b'"split":7'), "/split"),
        (lambda data: b"\xff" + data, "UTF-8"),
        (lambda data: data.replace(b"bench-live-plan/v1", b"bench-live-plan/v2"), "/format"),
    ],
)
def test_a_plan_that_is_damaged_is_one_clear_error(trial: LiveTrial, spoil, says: str) -> None:
    plan = trial.prepare()
    path = trial.folder / "run/plan.json"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(SettingsError, match=r"plan\.json") as caught:
        execute(trial, plan.plan_id)
    assert caught.value.exit_status == 2
    assert says in str(caught.value)
    assert logged(trial.log) == []


def test_an_order_of_nobody_is_refused(trial: LiveTrial) -> None:
    order = replace(trial.order(), executor="nobody")
    refused(lambda: live_runs.prepare(order, host=trial.host, clock=trial.clock), "SETTINGS_NAME", "scribe")


def test_a_plan_is_the_same_whoever_makes_it_again(trial: LiveTrial) -> None:
    one, other = trial.prepare("one"), trial.prepare("two")
    assert one == other  # no time and no place of the run stand in it
