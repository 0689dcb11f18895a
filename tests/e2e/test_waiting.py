"""Three ways to wait, over many cases: what `run` takes up by itself, what it never touches, and who holds up whom."""

from __future__ import annotations

from contextlib import closing

import pytest
from casebound.clock import format_time, parse_time
from casebound.due import DueRun
from casebound.errors import ProviderError, SettingsError
from casebound.llm.attempts import AttemptLog
from casebound.progress import begun_revisions, derive_progress, latest_revision
from casebound.runs import Run, RunOptions
from casebound.store.events import EventLog
from casebound.testing.inventory import CATALOGS, settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner

A, B, C = "INC-0", "INC-1", "INC-2"
BUSY = ProviderError("LLM_RATE_LIMITED", retryable=True)
REFUSED = ProviderError("LLM_REQUEST", retryable=False)
WISH = ProviderError("LLM_REQUEST", retryable=False, retry_after=90)


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def run(inventory, provider, **options):
    """Run, one case at a time: whoever waits would keep the next one waiting."""
    project = inventory.project(provider)
    try:
        return Run(project, RunOptions(jobs=1, **options)).execute()
    finally:
        project.close()


def resume_due(inventory, provider):
    """Return the results, in the order of packages, and the summary with the exit status."""
    results = []
    project = inventory.project(provider)
    try:
        due = DueRun(project, results.append)
        summary = due.execute()
    finally:
        project.close()
    return sorted(results, key=lambda result: result.package), summary, due.exit_status(summary)


def states(inventory, *names):
    return [derive_progress(inventory.package(name)).state for name in names]


def files(inventory, name):
    package = inventory.package(name)
    return {path: package.digest(path) for path in package.paths()}


def outcomes(inventory, name, stage="plan"):
    package = inventory.package(name)
    log = AttemptLog(package, latest_revision(package), stage)
    return [(attempt.outcome.kind, attempt.outcome.code) for attempt in log.all()]


def block(inventory, name, error=REFUSED):
    """Let a case be blocked at its plan, and no other."""
    assert run(inventory, InventoryModel(scripted={"plan": [error]}), package_id=name).cases == {"blocked": 1}


# --- nobody holds a worker ------------------------------------------------------------------------------------------


@pytest.mark.spec("A-100")
def test_a_case_that_waits_keeps_no_other_one_waiting(inventory):
    names = inventory.admit(4)
    model = InventoryModel(scripted={"plan": [REFUSED, BUSY, "x", "x", "x"]})
    summary = run(inventory, model)  # it ends, and the clock has not moved
    assert states(inventory, *names) == ["blocked", "retry_pending", "review", "interpreted"]
    assert model.counts() == {"plan": 6, "assessment": 1, "interpretation": 1}
    assert (summary.cases, summary.left, summary.exit_status) == (
        {"blocked": 1, "retry_pending": 1, "review": 1, "interpreted": 1},
        3,
        1,
    )


@pytest.mark.spec("A-100")
@pytest.mark.parametrize("waiting", [REFUSED, BUSY])
def test_more_waiting_cases_than_workers_hold_up_nothing(inventory, waiting):
    *others, last = inventory.admit(7)
    project = inventory.project(InventoryModel(scripted={"plan": [waiting] * len(others)}))
    Run(project, RunOptions(jobs=2)).execute()
    assert states(inventory, last) == ["interpreted"]
    assert set(states(inventory, *others)) == {"blocked" if waiting is REFUSED else "retry_pending"}


# --- retry_pending: the next run, not before its time ---------------------------------------------------------------


@pytest.mark.spec("A-113j", "A-122")
@pytest.mark.parametrize(("wish", "delay"), [(None, 60), (5, 60), (90.5, 90.5)])
def test_the_same_command_goes_on_after_the_retry_time_and_does_nothing_before(inventory, wish, delay):
    inventory.admit(1)  # alone, for a server's wish holds the calls of every case
    busy = ProviderError("LLM_RATE_LIMITED", retryable=True, retry_after=wish)
    run(inventory, InventoryModel(scripted={"plan": [busy]}))
    assert states(inventory, A) == ["retry_pending"]
    at = parse_time(run(inventory, RaisingProvider()).retry_at)
    assert (at - inventory.clock.now()).total_seconds() == delay
    before = files(inventory, A)
    inventory.clock.advance(delay - 0.001)
    assert run(inventory, RaisingProvider()).left == 1
    assert files(inventory, A) == before
    inventory.clock.advance(0.001)
    model = InventoryModel()
    summary = run(inventory, model)
    assert (summary.left, summary.exit_status, summary.had) == (0, 0, 1)
    assert model.counts() == {"plan": 1, "assessment": 1, "interpretation": 1}
    assert outcomes(inventory, A) == [("provider_error", "LLM_RATE_LIMITED"), ("accepted", None)]
    assert run(inventory, RaisingProvider()).had == 0  # and then there is nothing left


@pytest.mark.spec("A-104", "A-113j")
def test_a_case_that_waited_is_bounded_by_the_policy_that_it_froze(inventory):
    inventory.admit(1)
    model = InventoryModel(scripted={"plan": [BUSY, "x", BUSY, "x", BUSY]})
    run(inventory, model)
    inventory.configure(settings_text(resolution={"max_invalid_responses": 1}, llm="[llm.retry]\nmax_retries = 9\n"))
    for expected in ("retry_pending", "blocked"):
        inventory.clock.advance(60)
        run(inventory, model)
        assert states(inventory, A) == [expected]
    assert outcomes(inventory, A) == [
        ("provider_error", "LLM_RATE_LIMITED"),
        ("invalid", "LLM_OUTPUT_JSON"),
        ("provider_error", "LLM_RATE_LIMITED"),
        ("invalid", "LLM_OUTPUT_JSON"),
        ("provider_error", "LLM_RATE_LIMITED"),
    ]


# --- blocked: only where somebody asks for it -----------------------------------------------------------------------


@pytest.mark.spec("A-101")
@pytest.mark.parametrize("lease", ["never leased", "a lease that was lost"])
def test_no_run_ever_takes_up_a_blocked_case(inventory, lease):
    inventory.admit(2)
    block(inventory, A)
    if lease == "a lease that was lost":  # then the row may be behind, and a run looks at the files
        project = inventory.project(RaisingProvider())
        with closing(Index.open(project.workspace, project.settings, project.clock)) as index:
            assert index.hold(new_owner(), index.get(A))
    inventory.clock.advance(86_400)
    before = files(inventory, A)
    model = InventoryModel()
    summary = run(inventory, model)
    assert (summary.cases, summary.left) == ({"blocked": 1, "interpreted": 1}, 1)
    named = run(inventory, RaisingProvider(), package_id=A)  # nor where it is named
    assert (named.dispatches, named.left, named.exit_status) == (0, 1, 1)
    assert files(inventory, A) == before


@pytest.mark.spec("A-101", "A-102", "A-103")
@pytest.mark.parametrize(("error", "delay"), [(REFUSED, 60), (WISH, 90)])
def test_what_is_due_is_resumed_and_nothing_a_moment_too_early(inventory, error, delay):
    inventory.admit(2)
    block(inventory, A, error)
    inventory.clock.advance(30)
    block(inventory, B, error)
    inventory.clock.advance(delay - 30.001)
    before = files(inventory, A)
    results, summary, status = resume_due(inventory, RaisingProvider())
    assert (results, summary.left, status) == ([], 2, 0)
    assert summary.retry_at == derive_progress(inventory.package(A)).event.retry_at
    with pytest.raises(SettingsError, match="RETRY_LATER") as caught:
        inventory.project(RaisingProvider()).resume(A)
    assert caught.value.expected == f"{summary.retry_at} or later"
    assert files(inventory, A) == before
    inventory.clock.advance(0.001)
    model = InventoryModel()
    results, summary, status = resume_due(inventory, model)
    assert [(result.case_id, result.state) for result in results] == [(A, "interpreted")]
    assert (summary.left, status) == (1, 0)
    assert summary.retry_at == derive_progress(inventory.package(B)).event.retry_at
    assert states(inventory, B) == ["blocked"]
    assert model.counts() == {"plan": 1, "assessment": 1, "interpretation": 1}
    kinds = [event.kind for event in EventLog(inventory.package(A), latest_revision(inventory.package(A))).all()]
    assert kinds == ["blocked", "resumed"]


def test_what_becomes_of_one_ends_none_of_the_others(inventory):
    names = inventory.admit(6)
    inventory.configure(settings_text(model="other"))
    block(inventory, names[0])
    inventory.configure(settings_text())
    for name in names[1:5]:
        block(inventory, name)
    run(inventory, InventoryModel(scripted={"plan": ["x"] * 3}))  # the last one
    assert states(inventory, names[5]) == ["review"]
    inventory.clock.advance(60)
    inventory.package(names[4]).root.joinpath("case.json").write_bytes(b"no longer what it was")
    before = {name: files(inventory, name) for name in (names[0], names[5])}
    project = inventory.project(InventoryModel(scripted={"plan": [REFUSED, BUSY]}))
    results = []
    due = DueRun(project, results.append)
    due.run.jobs = 1
    summary = due.execute()
    found = {result.package.rpartition("/")[2]: (result.state, result.code) for result in results}
    assert found == {
        names[0]: ("blocked", "BINDING_CHANGED"),
        names[1]: ("blocked", "LLM_REQUEST"),
        names[2]: ("retry_pending", "LLM_RATE_LIMITED"),
        names[3]: ("interpreted", None),
        names[4]: ("blocked", "STORE_JSON"),
    }
    assert (summary.left, due.exit_status(summary)) == (0, 1)
    assert {name: files(inventory, name) for name in before} == before
    refused = next(result for result in results if result.code == "BINDING_CHANGED")
    assert "scripted test-model, it asked scripted other" in refused.error
    assert f"`casebound revise {names[0]}`" in refused.error
    again, summary, status = resume_due(inventory, RaisingProvider())  # a minute has not passed since
    assert [result.code for result in again] == ["BINDING_CHANGED", "STORE_JSON"]
    assert (summary.left, status) == (1, 1)


def test_a_run_that_is_interrupted_resumes_nothing_more(inventory):
    inventory.admit(1)
    block(inventory, A)
    inventory.clock.advance(60)
    project = inventory.project(RaisingProvider())
    due = DueRun(project, lambda result: None)
    due.run.gate.close("interrupted")
    summary = due.execute()
    assert (summary.left, due.exit_status(summary), states(inventory, A)) == (1, 130, ["blocked"])


def test_a_case_that_was_resumed_and_is_busy_again_waits_for_the_next_run(inventory):
    inventory.admit(1)
    block(inventory, A)
    inventory.clock.advance(60)
    (result,), _, status = resume_due(inventory, InventoryModel(scripted={"plan": [BUSY, BUSY]}))
    assert (result.state, status) == ("retry_pending", 1)
    inventory.clock.advance(60)
    assert resume_due(inventory, RaisingProvider())[0] == []  # it is no blocked case
    run(inventory, InventoryModel())
    assert states(inventory, A) == ["interpreted"]


# --- review: only by a person who asks anew -------------------------------------------------------------------------


@pytest.mark.spec("A-104")
def test_a_case_in_review_is_taken_up_by_nobody_until_it_is_revised(inventory):
    inventory.admit(2)
    run(inventory, InventoryModel(scripted={"interpretation": ["x"] * 3}))
    inventory.clock.advance(86_400)
    before = files(inventory, A)
    assert run(inventory, RaisingProvider()).had == 0
    assert resume_due(inventory, RaisingProvider())[0] == []
    with pytest.raises(SettingsError, match="RESUME_REFUSED") as caught:
        inventory.project(RaisingProvider()).resume(A)
    assert f"`casebound revise {A}`" in caught.value.hint
    assert files(inventory, A) == before
    # The revision has a count of its own: two refusals are no reason to look, and a retry is the next run's.
    revised = inventory.project(InventoryModel(scripted={"plan": ["x", "x"], "interpretation": ["x", "x", BUSY]}))
    assert revised.revise(A).state == "retry_pending"
    revised.close()
    inventory.clock.advance(60)
    assert run(inventory, InventoryModel()).left == 0
    assert states(inventory, A, B) == ["interpreted", "interpreted"]
    assert [revision.number for revision in begun_revisions(inventory.package(A))] == [1, 2]
    assert {path: digest for path, digest in files(inventory, A).items() if path in before} == before


# --- settings that changed meanwhile --------------------------------------------------------------------------------


OTHER_CATALOG = CATALOGS.replace('name_column = "title"', 'name_column = "purpose"').replace(
    '"id", "title"]', '"id", "purpose"]'
)
FEWER = settings_text(catalogs="[[".join(part for part in CATALOGS.split("[[") if "host_names" not in part))
CHANGES = {
    "catalogs": (settings_text(catalogs=OTHER_CATALOG), "catalogs are"),
    "allowlist": (FEWER.replace('"host_names", ', ""), "table host_names is no longer allowed"),
    "snapshot": (settings_text(snapshot_id="inventory-2"), "snapshot_id is inventory-2, it was inventory-1"),
    "provider": (settings_text(model="other"), "stage plan asks scripted other, it asked scripted test-model"),
}


class Killed(BaseException):
    """Ends a process where it stands, as a signal does."""


def kill_before_look_up(inventory):
    def die(package, step):
        if step == "look-up":
            raise Killed

    project = inventory.project(InventoryModel())
    project.on_step = die
    with pytest.raises(Killed):
        list(project.resolve([inventory.folder / "reports" / f"{A}.md"]))


@pytest.mark.spec("A-105", "A-106", "A-113k")
@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("stage", ["planning", "looking up"])
def test_a_case_that_froze_other_settings_is_refused_and_the_others_go_on(inventory, change, stage):
    inventory.admit(2)
    if stage == "planning":
        run(inventory, InventoryModel(scripted={"plan": [BUSY]}), package_id=A)
        inventory.clock.advance(60)
    else:
        kill_before_look_up(inventory)
    before, state = files(inventory, A), states(inventory, A)
    text, told = CHANGES[change]
    inventory.configure(text)
    summary = run(inventory, InventoryModel())
    assert [(one["package"], one["code"]) for one in summary.refused] == [(A, "BINDING_CHANGED")]
    assert told in summary.refused[0]["error"]
    assert (summary.refused_total, summary.exit_status) == (1, 1)
    assert (files(inventory, A), states(inventory, A)) == (before, state)
    assert states(inventory, B) == ["interpreted"]
    inventory.configure(settings_text())
    assert run(inventory, InventoryModel()).left == 0
    assert states(inventory, A) == ["interpreted"]


@pytest.mark.spec("A-110")
def test_resolution_that_is_switched_on_is_for_cases_that_have_not_begun(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(catalogs=""))
    inventory.admit(3)
    run(inventory, InventoryModel(), package_id=A)
    run(inventory, InventoryModel(scripted={"interpretation": [BUSY]}), package_id=B)
    before = files(inventory, A)
    inventory.configure(settings_text())
    inventory.clock.advance(60)
    model = InventoryModel()
    assert run(inventory, model).left == 0
    assert model.counts() == {"plan": 1, "assessment": 1, "interpretation": 2}
    resolved = [inventory.package(name).exists(latest_revision(inventory.package(name)).plan) for name in (A, B, C)]
    assert resolved == [False, False, True]  # finished, begun, fresh
    assert files(inventory, A) == before
    assert inventory.project(InventoryModel()).revise(A).state == "interpreted"
    assert inventory.package(A).exists(latest_revision(inventory.package(A)).plan)


def test_the_time_of_the_next_retry_is_that_of_the_earliest(inventory):
    inventory.admit(2)
    soon, late = (ProviderError("LLM_TIMEOUT", retryable=True, retry_after=seconds) for seconds in (70, 500))
    summary = run(inventory, InventoryModel(scripted={"plan": [late, soon]}))
    inventory.clock.advance(70)
    assert summary.retry_at == format_time(inventory.clock.now())
