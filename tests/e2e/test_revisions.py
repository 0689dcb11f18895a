"""`revise`: a further interpretation of a case under the settings at hand, while the earlier ones stay as they are."""

from __future__ import annotations

import shutil

import pytest
from casebound.canonical import digest_of
from casebound.contracts.interpretation import InterpretationContext, InterpretationInput
from casebound.contracts.model_call import Outcome
from casebound.errors import (
    CaseboundError,
    IntegrityError,
    ProviderError,
    ResearchError,
    SettingsError,
    UnavailableError,
)
from casebound.frozen import find_protocol
from casebound.installed import Installed
from casebound.llm.attempts import OUTCOME, AttemptLog
from casebound.llm.course import Course
from casebound.llm.stage import derive_request
from casebound.progress import begun_revisions, derive_progress, latest_revision
from casebound.specs import CORE_STAGES
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.lock import exclusive
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_phases import budget_left, set_budget
from casebound.testing.scripted import RaisingProvider
from casebound.verification import verify_package

FIRST, SECOND = Revision(1), Revision(2)
QUOTA = ProviderError("LLM_QUOTA", retryable=False)
BUSY = ProviderError("LLM_RATE_LIMITED", retryable=True)


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def revise(inventory, provider, **options):
    return inventory.project(provider).revise("INC-7", **options)


def files(inventory, revision=None):
    """Return the digest of every file of the package, or of those up to `revision`."""
    package = inventory.package()
    later = [] if revision is None else [path for path in package.paths() if not layout.is_sealed(path, revision)]
    return {
        path: package.digest(path)
        for path in package.paths()
        if path not in later or (revision is not None and path == revision.seal)
    }


def numbers(inventory):
    return [revision.number for revision in begun_revisions(inventory.package())]


def answer(inventory, **host):
    return verify_package(inventory.package().root, inventory.host(**host)).answer


# --- an old case under new settings ---------------------------------------------------------------------------------


@pytest.mark.spec("A-108", "A-109", "A-110", "A-150c")
def test_resolution_that_was_turned_on_does_nothing_to_an_old_case_until_it_is_revised(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(catalogs=""))
    first = inventory.resolve(InventoryModel())
    before = files(inventory)
    inventory.configure(settings_text())
    project = inventory.project(RaisingProvider())
    (again,) = project.resolve([inventory.report])
    assert again.to_json() == first.to_json()
    assert files(inventory) == before
    assert [note.endswith("`casebound revise INC-7` asks anew") for note in project.notes] == [True]
    model = InventoryModel()
    result = revise(inventory, model)
    assert (result.state, len(result.entities)) == ("interpreted", 3)
    assert model.counts() == dict.fromkeys(CORE_STAGES, 1)
    assert files(inventory, FIRST) == before
    assert all(path.startswith(f"{SECOND.folder}/") for path in files(inventory) if path not in before)
    assert answer(inventory) == "holds"


@pytest.mark.spec("A-109", "A-150c")
def test_the_requests_of_the_first_interpretation_can_still_be_made_again(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(catalogs=""))
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(model="other", llm="max_output_tokens = 77"))
    revise(inventory, InventoryModel())
    package = inventory.package()
    policy = package.load(FIRST.input, InterpretationInput).policy("interpretation")
    context = package.load(FIRST.context, InterpretationContext).context
    protocol = find_protocol(inventory.host(), policy.protocol)
    request = derive_request(Course(policy, (), ()), protocol, context, None, 1)
    sent = AttemptLog(package, FIRST, "interpretation").path(1, OUTCOME)
    assert digest_of(request.to_bytes()) == package.load(sent, Outcome).request
    assert request.model == "test-model"


PLUGIN = """
from casebound.hookspecs import hookimpl
from casebound.specs import Validator

@hookimpl
def casebound_validators():
    return [Validator("plan", "STRICTER", 1, check=lambda reply, context: (), always=True)]
"""


@pytest.mark.spec("A-108", "A-110")
def test_a_rule_that_a_newer_plugin_adds_judges_new_interpretations_alone(inventory, tmp_path, monkeypatch):
    first = inventory.resolve(InventoryModel())
    before = files(inventory)
    (tmp_path / "stricter_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    newer = [Installed("stricter", "stricter_plugin", "casebound-stricter", "2.0")]
    (again,) = inventory.project(RaisingProvider(), plugins=newer).resolve([inventory.report])
    assert again.to_json() == first.to_json()
    assert files(inventory) == before
    inventory.project(InventoryModel(), plugins=newer).revise("INC-7")
    package = inventory.package()
    rules = {
        revision.number: [rule.code for rule in package.load(revision.input, InterpretationInput).policy("plan").rules]
        for revision in (FIRST, SECOND)
    }
    assert "STRICTER" not in rules[1]
    assert rules[2] == [*rules[1], "STRICTER"]
    assert files(inventory, FIRST) == before
    assert answer(inventory, plugins=newer) == "holds"


@pytest.mark.parametrize(
    "path", ["package.json", "admission.json", "build.json", "case.json", "source/report.md", "research/facts.json"]
)
def test_a_package_that_was_altered_is_not_built_on(inventory, path):
    inventory.resolve(InventoryModel())
    file = inventory.package().root / path
    kept = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(kept.replace(b"e", b"a", 1))
    before = files(inventory)
    with pytest.raises(IntegrityError) as caught:
        revise(inventory, RaisingProvider())
    assert (caught.value.code, caught.value.path) == ("STORE_DIGEST", str(file))
    file.unlink()
    if path != "package.json":  # without it there is no case
        with pytest.raises(IntegrityError, match="STORE_MISSING"):
            revise(inventory, RaisingProvider())
    file.write_bytes(kept)
    assert files(inventory) == {**before, path: digest_of(kept)}
    assert revise(inventory, InventoryModel()).state == "interpreted"


def test_captures_of_the_facts_are_compared_too_with_the_newest_seal(inventory):
    inventory.resolve(InventoryModel())
    revise(inventory, InventoryModel(scripted={"plan": ["x", "x", "x"]}))
    (path,) = [path for path in inventory.package().paths() if path.startswith("research/captures/")]
    file = inventory.package().root / path
    file.chmod(0o644)
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(IntegrityError, match="STORE_DIGEST"):
        revise(inventory, RaisingProvider())
    assert numbers(inventory) == [1, 2]


# --- a case that waits ----------------------------------------------------------------------------------------------


@pytest.mark.spec("A-104", "A-131", "A-150c")
@pytest.mark.parametrize("stage", CORE_STAGES)
def test_an_exhausted_case_is_never_retried_but_may_be_revised_and_counts_anew(inventory, stage):
    assert inventory.resolve(InventoryModel(scripted={stage: ["x", "x", "x"]})).state == "review"
    before = files(inventory)
    inventory.clock.advance(86_400)
    assert inventory.resolve(RaisingProvider()).state == "review"
    with pytest.raises(SettingsError, match="RESUME_REFUSED") as caught:
        inventory.project(RaisingProvider()).resume("INC-7")
    assert "`casebound revise INC-7`" in caught.value.hint
    assert files(inventory) == before
    model = InventoryModel(scripted={stage: ["x", "x"]})
    result = revise(inventory, model)
    assert (result.state, result.code, result.calls[stage]) == ("interpreted", None, 3)
    assert model.counts() == {name: 3 if name == stage else 1 for name in CORE_STAGES}
    assert files(inventory, FIRST) == before
    assert not inventory.package().exists(FIRST.seal)
    assert answer(inventory) == "holds"


@pytest.mark.parametrize(
    ("state", "scripted"),
    [
        ("blocked", {"assessment": [QUOTA]}),
        ("retry_pending", {"interpretation": [BUSY]}),
        ("review", {"plan": ["x", "x", "x"]}),
        ("interpreted", {}),
    ],
)
def test_a_case_in_any_state_that_lasts_may_be_revised(inventory, state, scripted):
    assert inventory.resolve(InventoryModel(scripted=scripted)).state == state
    before = files(inventory)
    inventory.configure(settings_text(model="other"))
    model = InventoryModel()
    assert revise(inventory, model).state == "interpreted"
    assert {request.model for request in model.calls} == {"other"}
    assert files(inventory, FIRST) == before
    assert numbers(inventory) == [1, 2]
    assert answer(inventory) == "holds"
    assert inventory.resolve(RaisingProvider()).state == "interpreted"


def test_a_revision_that_waits_is_resumed_or_revised_again(inventory):
    inventory.resolve(InventoryModel())
    assert revise(inventory, InventoryModel(scripted={"plan": [QUOTA]})).state == "blocked"
    assert derive_progress(inventory.package()).state == "blocked"
    assert answer(inventory) == "unfinished"
    waiting = files(inventory)
    assert revise(inventory, InventoryModel(scripted={"plan": [QUOTA]})).state == "blocked"
    assert numbers(inventory) == [1, 2, 3]
    assert files(inventory, SECOND) == waiting
    inventory.clock.advance(60)
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"
    assert files(inventory, SECOND) == waiting
    assert answer(inventory) == "holds"


@pytest.mark.parametrize(("model", "notes"), [("scripted-1", 1), ("other", 0)])
def test_a_revision_that_asks_the_same_again_tells_what_would_have_gone_on(inventory, model, notes):
    inventory.configure(settings_text(model="scripted-1"))
    assert inventory.resolve(InventoryModel(scripted={"interpretation": [BUSY]})).state == "retry_pending"
    inventory.configure(settings_text(model=model))
    project = inventory.project(InventoryModel())
    assert project.revise("INC-7").state == "interpreted"
    assert len(project.notes) == notes
    assert all("`casebound run --package-id INC-7` goes on" in note for note in project.notes)


# --- a case that cannot be revised ----------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["admission", "construction", "research", "outage"])
def test_what_has_not_begun_cannot_be_revised_and_the_way_on_is_told(inventory, phase):
    if phase == "outage":
        kept = inventory.damage()
        assert inventory.resolve(RaisingProvider()).state == "blocked"
        inventory.database.write_bytes(kept)
    else:
        inventory.resolve(RaisingProvider(), stop_after=phase)
    before = files(inventory)
    with pytest.raises(SettingsError, match="REVISE_REFUSED") as caught:
        revise(inventory, RaisingProvider())
    assert ("`casebound resume INC-7`" if phase == "outage" else "resolve its report") in caught.value.hint
    assert files(inventory) == before


def test_where_the_database_is_away_nothing_begins(inventory):
    inventory.resolve(InventoryModel())
    before, kept = files(inventory), inventory.damage()
    with pytest.raises(ResearchError, match="RESEARCH_UNAVAILABLE"):
        revise(inventory, RaisingProvider())
    inventory.database.write_bytes(kept)
    assert files(inventory) == before
    assert answer(inventory) == "holds"
    assert revise(inventory, InventoryModel()).state == "interpreted"


def test_facts_of_another_state_of_the_database_are_not_mixed_with_new_searches(inventory):
    inventory.resolve(InventoryModel())
    before = files(inventory)
    inventory.configure(settings_text(snapshot_id="inventory-2"))
    with pytest.raises(SettingsError, match="BINDING_CHANGED") as caught:
        revise(inventory, RaisingProvider())
    assert "--package-id" in caught.value.hint
    assert "inventory-2" in caught.value.found
    assert files(inventory) == before


def test_a_case_without_facts_of_the_database_is_revised_for_another_state(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(enrichment=""))
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(enrichment="", snapshot_id="inventory-2"))
    assert revise(inventory, InventoryModel()).state == "interpreted"
    assert answer(inventory) == "holds"


def test_a_case_that_another_process_holds_is_not_revised(inventory):
    inventory.resolve(InventoryModel())
    with exclusive(inventory.package()), pytest.raises(UnavailableError, match="CASE_BUSY"):
        revise(inventory, RaisingProvider())
    assert numbers(inventory) == [1]


def test_a_revision_does_not_open_a_new_purse(inventory):
    """The budget of a case holds for all its interpretations together."""
    inventory.configure(settings_text(more="[budget]\ncase_calls = 3\n"))
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    before = files(inventory)
    with pytest.raises(CaseboundError, match="BUDGET_REACHED"):
        revise(inventory, RaisingProvider())
    assert files(inventory) == before
    inventory.configure(settings_text(more="[budget]\ncase_calls = 5\n"))
    model = InventoryModel()
    result = revise(inventory, model)
    assert (result.state, result.code, len(model.calls)) == ("assessed", "BUDGET_REACHED", 2)
    assert "5 calls for this case, in 2 interpretations" in result.error
    inventory.configure(settings_text(more="[budget]\ncase_calls = 6\n"))
    result = inventory.resolve(model)
    assert (result.state, dict(result.calls), len(model.calls)) == ("interpreted", dict.fromkeys(CORE_STAGES, 1), 3)


# --- a revision that was cut off ------------------------------------------------------------------------------------


def test_a_revision_that_was_cut_off_is_gone_on_with_and_only_under_the_same_settings(inventory):
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(more="[budget]\nrun_calls = 1\n"))
    assert revise(inventory, InventoryModel()).code == "BUDGET_REACHED"
    cut_off = files(inventory)
    model = InventoryModel()
    inventory.configure(settings_text(more="[budget]\nrun_calls = 1\n"))
    project = inventory.project(model)
    assert project.revise("INC-7").code == "BUDGET_REACHED"
    assert project.notes == [f"INC-7 goes on with {SECOND.folder}, which was cut off"]
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 0}
    assert files(inventory).items() > cut_off.items()
    inventory.configure(settings_text(model="other"))
    assert revise(inventory, InventoryModel()).state == "interpreted"
    assert numbers(inventory) == [1, 2, 3]
    assert answer(inventory) == "holds"


@pytest.mark.parametrize("phase", ["admission", "construction", "research"])
def test_stopping_before_the_interpretation_freezes_and_asks_nothing(inventory, phase):
    inventory.resolve(InventoryModel())
    inventory.configure(settings_text(model="other"))
    assert revise(inventory, RaisingProvider(), stop_after=phase).state == "researched"
    assert set(SECOND.beginnings) <= set(inventory.package().paths())
    assert inventory.resolve(InventoryModel()).state == "interpreted"
    assert numbers(inventory) == [1, 2]


@pytest.mark.parametrize("folder", [SECOND.folder, SECOND.resolution])
def test_an_empty_folder_that_a_killed_process_left_is_no_interpretation(inventory, folder):
    first = inventory.resolve(InventoryModel())
    (inventory.package().root / folder).mkdir(parents=True)
    assert latest_revision(inventory.package()).number == 1
    assert inventory.resolve(RaisingProvider()).to_json() == first.to_json()
    assert inventory.project(RaisingProvider()).show("INC-7")["plan"] is not None
    assert answer(inventory) == "holds"
    assert revise(inventory, InventoryModel()).state == "interpreted"
    assert numbers(inventory) == [1, 2]
    assert answer(inventory) == "holds"


# --- verify ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def revised(tmp_path_factory):
    """Return a case with three interpretations: finished, exhausted, finished."""
    inventory = write_inventory(tmp_path_factory.mktemp("revised"))
    inventory.resolve(InventoryModel())
    revise(inventory, InventoryModel(scripted={"assessment": ["x", "x", "x"]}))
    revise(inventory, InventoryModel())
    assert answer(inventory) == "holds"
    return inventory


def forged(revised, tmp_path, forge):
    root = shutil.copytree(revised.package().root, tmp_path / "INC-7")
    forge(root)
    verification = verify_package(root, revised.host())
    return verification.answer, {finding.file for finding in verification.findings}


def _only_events(root):
    folder = root / Revision(4).events
    folder.mkdir(parents=True)
    shutil.copy(root / SECOND.event(1), folder / "0001.json")


FORGERIES = {
    "a seal is gone": (lambda root: (root / FIRST.seal).unlink(), FIRST.seal),
    "an interpretation is gone": (lambda root: shutil.rmtree(root / SECOND.folder), Revision(3).folder),
    "a number is left out": (
        lambda root: shutil.copytree(root / SECOND.folder, root / Revision(5).folder),
        Revision(5).folder,
    ),
    "one never began": (
        lambda root: [(root / path).unlink() for path in SECOND.beginnings],
        Revision(3).folder,
    ),
    "only events": (_only_events, Revision(4).folder),
    "an old request": (
        lambda root: (root / SECOND.attempt("plan", 1) / "request.json").write_bytes(b"{}"),
        f"{SECOND.attempt('plan', 1)}/request.json",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_an_earlier_interpretation_that_was_tampered_with_is_named(revised, tmp_path, name):
    forge, named = FORGERIES[name]
    said, places = forged(revised, tmp_path, forge)
    assert said == "does_not_hold"
    assert named in places


def test_every_seal_covers_what_was_there_before_it_and_nothing_later(revised, tmp_path):
    said, places = forged(revised, tmp_path, lambda root: shutil.rmtree(root / Revision(3).folder))
    assert (said, places) == ("unfinished", set())  # the second one waits for ever; what is there holds


# --- phases behind it -----------------------------------------------------------------------------------------------


def test_a_phase_follows_each_finished_interpretation_once_and_no_other(inventory):
    set_budget(inventory.workspace, 9)
    inventory.resolve(InventoryModel(), phases=True)
    assert budget_left(inventory.workspace) == 7
    waiting = InventoryModel(scripted={"plan": ["x", "x", "x"]})
    assert inventory.project(waiting, phases=True).revise("INC-7").state == "review"
    assert budget_left(inventory.workspace) == 7
    project = inventory.project(InventoryModel(), phases=True)
    assert project.revise("INC-7", stop_after="interpretation").state == "interpreted"
    assert budget_left(inventory.workspace) == 7
    for _ in range(2):
        assert inventory.resolve(RaisingProvider(), phases=True).state == "interpreted"
        assert budget_left(inventory.workspace) == 5
    package = inventory.package()
    for name in ("hypothesis", "investigation"):
        assert package.names(f"analysis/{name}") == ["0001.json", "phase-0003.json", "phase.json"]
    assert answer(inventory, phases=True) == "holds"
