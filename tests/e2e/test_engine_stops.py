"""Every way in which a run stops or is refused, and what it leaves alone: outages, changes, phases, their budget."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from casebound.api import verify
from casebound.contracts.interpretation import HypothesisContext
from casebound.errors import ProviderError, SettingsError
from casebound.progress import latest_revision
from casebound.render.terminal import next_step
from casebound.testing.inventory import CATALOGS, ENRICHMENT, settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_phases import budget_left, set_budget
from casebound.testing.scripted import RaisingProvider


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


def resolve(inventory, provider, **options):
    return inventory.resolve(provider, **options)


def files(package):
    return {path: package.digest(path) for path in package.paths()}


# --- outage and change ----------------------------------------------------------------------------------------------


class Sabotage(InventoryModel):
    """Does something to the project right after it has answered for `stage`."""

    def __init__(self, stage, act, **options):
        super().__init__(**options)
        self._stage, self._act = stage, act

    async def send(self, request):
        native = await super().send(request)
        if request.stage == self._stage:
            self._act()
        return native


@pytest.mark.spec("A-092", "A-095", "A-096", "A-101", "A-102", "A-103", "A-113i")
@pytest.mark.parametrize("kind", ["gone", "damaged"])
def test_an_outage_between_plan_and_look_up_keeps_the_plan(inventory, tmp_path, kind):
    kept = tmp_path / "kept.db"

    def break_it():
        shutil.move(inventory.database, kept)
        if kind == "damaged":
            inventory.database.write_bytes(b"no database" * 100)

    result = resolve(inventory, Sabotage("plan", break_it))
    assert (result.state, result.code) == ("blocked", "RESEARCH_UNAVAILABLE")
    assert result.retry_at == "2026-11-01T08:01:00.000Z"
    package = inventory.package()
    plan = package.require(latest_revision(package).plan)
    assert not package.exists(latest_revision(package).candidates)
    shutil.move(kept, inventory.database)
    inventory.clock.advance(60)
    assert resolve(inventory, RaisingProvider()).state == "blocked"  # only an explicit resume goes on
    model = InventoryModel()
    assert inventory.project(model).resume("INC-7").state == "interpreted"
    assert model.counts() == {"plan": 0, "assessment": 1, "interpretation": 1}
    assert package.require(latest_revision(package).plan) == plan


def test_an_outage_before_anything_was_asked_blocks_without_a_call(inventory):
    kept = inventory.damage()
    result = resolve(inventory, RaisingProvider())
    assert (result.state, result.code) == ("blocked", "RESEARCH_UNAVAILABLE")
    inventory.database.write_bytes(kept)
    inventory.clock.advance(60)
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"


class Killed(BaseException):
    """Ends a run where it stands, as a signal does; nothing in casebound catches it."""


def stop_before(inventory, stage):
    """Leave a case that waits for the model's answer in `stage`."""

    def die():
        raise Killed

    earlier = {"assessment": "plan", "interpretation": "assessment"}
    with pytest.raises(Killed):
        resolve(inventory, Sabotage(earlier[stage], die) if stage in earlier else Sabotage("plan", die))


OTHER_CATALOG = CATALOGS.replace('name_column = "title"', 'name_column = "purpose"').replace(
    '"id", "title"]', '"id", "purpose"]'
)
CHANGES = {
    "catalog": ({"catalogs": OTHER_CATALOG}, "catalogs"),
    "fewer catalogs": ({"catalogs": CATALOGS.rpartition("[[")[0]}, "catalogs"),
    "snapshot": ({"snapshot_id": "inventory-2"}, "snapshot_id"),
    "model": ({"model": "other"}, "other"),
    "stage": ({"llm": '[llm.stage.interpretation]\nmodel = "other"\n'}, "interpretation"),
    "no resolution": ({"catalogs": ""}, "entity_resolution"),
}


@pytest.mark.spec("A-105", "A-106", "A-113k")
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_an_unfinished_case_refuses_other_settings_and_goes_on_with_the_old_ones(inventory, change):
    stop_before(inventory, "plan")
    before = files(inventory.package())
    options, named = CHANGES[change]
    inventory.configure(settings_text(**options))
    result = resolve(inventory, RaisingProvider())
    assert result.code == "BINDING_CHANGED"
    assert named in result.error
    assert files(inventory.package()) == before
    inventory.configure(settings_text())
    assert resolve(inventory, InventoryModel()).state == "interpreted"


@pytest.mark.spec("A-106")
def test_settings_that_changed_under_a_case_are_told_with_both_ways_out(inventory):
    stop_before(inventory, "assessment")
    inventory.configure(settings_text().replace('model = "test-model"\n', ""))
    result = resolve(inventory, RaisingProvider())
    assert result.code == "BINDING_CHANGED"
    assert "stage plan asks scripted, it asked scripted test-model" in result.error
    assert "put the settings back" in next_step(result.to_json())
    assert "casebound revise INC-7" in next_step(result.to_json())


def test_where_nothing_is_frozen_yet_only_the_ways_out_that_there_are_are_told(inventory):
    """There is nothing to revise, and what was fetched holds for another state of the database."""
    resolve(inventory, RaisingProvider(), stop_after="research")
    inventory.configure(settings_text(snapshot_id="inventory-2"))
    result = resolve(inventory, RaisingProvider())
    assert (result.state, result.code) == ("researched", "BINDING_CHANGED")
    for told in (result.error, next_step(result.to_json())):
        assert ("--package-id" in told, "revise" in told) == (True, False)


def test_a_database_that_changes_between_plan_and_look_up_is_refused(inventory):
    def change():
        with closing(sqlite3.connect(inventory.database)) as connection:
            connection.execute("insert into hosts values (999, 'edge-proxy-canary', 'linux')")
            connection.commit()

    result = resolve(inventory, Sabotage("plan", change))
    assert result.code == "BINDING_CHANGED"
    assert not inventory.package().exists(latest_revision(inventory.package()).candidates)


def test_limits_of_today_do_not_change_an_unfinished_case(inventory):
    stop_before(inventory, "plan")
    inventory.configure(settings_text(resolution={"max_searches": 1, "max_candidates": 1}))
    assert resolve(inventory, InventoryModel()).state == "interpreted"


@pytest.mark.spec("A-109", "A-110")
def test_a_finished_case_stays_as_it_is_under_other_settings_and_a_new_package_does_not(tmp_path):
    inventory = write_inventory(tmp_path, settings=settings_text(catalogs=""))
    resolve(inventory, InventoryModel())
    before = files(inventory.package())
    inventory.configure(settings_text())
    model = InventoryModel()
    assert [one["id"] for one in resolve(inventory, model).entities] == ["431"]
    assert model.calls == []
    assert files(inventory.package()) == before
    fresh = resolve(inventory, model, package_id="second")
    assert len(fresh.entities) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resolution": {"max_searches": 3}}, "max_searches is 3, it was 4"),
        ({"resolution": {"max_candidates": 2}}, "max_candidates is 2, it was 8"),
        ({"snapshot_id": "inventory-2"}, "snapshot_id is inventory-2, it was inventory-1"),
        ({"model": "other"}, "assessment: model other, it was test-model"),
        ({"llm": "timeout_s = 7"}, "interpretation: timeout_s 7, it was 300"),
        ({"catalogs": ""}, "[entity_resolution] is absent"),
        ({"catalogs": CATALOGS.split("\n\n")[0]}, "catalogs are inventory.host on hosts, they were"),
        ({"catalogs": CATALOGS.replace('"fqdn", "os"]', '"fqdn"]')}, "the columns of inventory.host are others"),
        ({"enrichment": ""}, "the enrichment enrichment.entity[0] is another"),
        ({"enrichment": ENRICHMENT.replace(', "host_count"', "")}, "the enrichment enrichment.entity[0] is another"),
        ({"more": '[intake.headings]\n"Alarm" = "observation"'}, "typed ids or headings are others"),
    ],
)
def test_a_finished_case_tells_what_a_fresh_one_would_freeze_otherwise(inventory, change, said):
    assert resolve(inventory, InventoryModel()).state == "interpreted"
    same = inventory.project(RaisingProvider())
    list(same.resolve([inventory.report]))
    assert same.notes == []
    inventory.configure(settings_text(**change))
    project = inventory.project(RaisingProvider())
    (result,) = project.resolve([inventory.report])
    assert result.state == "interpreted"
    of_the_case = any(word in said for word in ("snapshot_id", "enrichment", "headings"))  # a revision keeps its facts
    way_out = "resolve --package-id ID REPORT" if of_the_case else "revise INC-7"
    assert [said in note and note.endswith(f"`casebound {way_out}` asks anew") for note in project.notes] == [True]


# --- phases after the interpretation --------------------------------------------------------------------------------


@pytest.mark.spec("A-005", "A-099", "A-112", "A-147c", "A-157c", "A-147d")
def test_phases_run_once_after_the_interpretation_in_their_order_and_touch_no_seal(inventory):
    set_budget(inventory.workspace, 5)
    order = []
    project = inventory.project(InventoryModel(), phases=True)
    project.on_step = lambda package, step: order.append(step)
    (result,) = project.resolve([inventory.report])
    assert result.state == "interpreted"
    assert order[-2:] == ["hypothesis", "investigation"]
    assert budget_left(inventory.workspace) == 3
    assert verify(inventory.package().root, host=inventory.host()).answer == "holds"
    assert resolve(inventory, RaisingProvider(), phases=True).state == "interpreted"
    assert budget_left(inventory.workspace) == 3


@pytest.mark.parametrize(
    ("phase", "left", "folders"),
    [
        ("admission", 5, []),
        ("construction", 5, []),
        ("research", 5, []),
        ("interpretation", 5, []),
        ("hypothesis", 4, ["hypothesis"]),
        ("investigation", 3, ["hypothesis", "investigation"]),
    ],
)
@pytest.mark.spec("A-111", "A-112", "A-113n")
def test_stopping_after_a_phase_leaves_the_later_ones_and_their_budget_alone(inventory, phase, left, folders):
    set_budget(inventory.workspace, 5)
    resolve(inventory, InventoryModel(), stop_after=phase, phases=True)
    assert budget_left(inventory.workspace) == left
    assert [name for name in inventory.package().names("analysis") if name != "interpretations"] == folders


@pytest.mark.spec("A-005", "A-098", "A-099", "A-157c")
@pytest.mark.parametrize(
    ("state", "scripted", "more", "broken"),
    [
        ("review", {"plan": ["x", "x", "x"]}, "", False),
        ("review", {"interpretation": ["x", "x", "x"]}, "", False),
        ("looked_up", {}, "[budget]\nrun_calls = 1\n", False),
        ("blocked", {}, "", True),
    ],
)
def test_no_way_to_stop_spends_the_budget_of_a_phase(inventory, state, scripted, more, broken):
    set_budget(inventory.workspace, 5)
    inventory.configure(settings_text(more=more))
    act = inventory.database.unlink if broken else (lambda: None)
    result = resolve(inventory, Sabotage("plan", act, scripted=scripted), phases=True)
    assert result.state == state
    assert budget_left(inventory.workspace) == 5
    assert [name for name in inventory.package().names("analysis") if name != "interpretations"] == []


@pytest.mark.spec("A-146f", "A-147c")
def test_the_hypothesis_context_keeps_every_statement_with_its_own_kind(inventory):
    resolve(inventory, InventoryModel())
    package = inventory.package()
    context = package.load(latest_revision(package).hypothesis_context, HypothesisContext)
    kinds = {source.kind: source for source in context.sources}
    assert kinds["described_behavior"].labels == {
        "basis": "local_description",
        "verification": "not_independently_verified",
    }
    assert kinds["provisional_behavior_gap"].labels == {"basis": "local_description", "status": "provisional"}
    assert kinds["observed_behavior"].labels == {}
    assert "expected_behavior" not in kinds
    reply = json.loads(package.require(latest_revision(package).interpretation))["reply"]
    for source in context.sources:
        place = reply
        for token in source.id.strip("/").split("/"):
            place = place[int(token)] if isinstance(place, list) else place[token]
        assert list(source.source_ids) == place["source_ids"]


@pytest.mark.spec("A-147b")
def test_the_summary_shows_what_limits_each_statement(inventory):
    resolve(inventory, InventoryModel())
    summary = inventory.package().require(latest_revision(inventory.package()).summary).decode()
    assert "not independently verified" in summary
    assert "Provisional gap (against a local description, provisional)" in summary
    assert "does not exist" not in summary


@pytest.mark.spec("A-148k", "A-148l")
def test_an_assessment_that_was_refused_and_then_blocked_goes_on_without_a_plan_or_a_query(inventory):
    refused = [{"resolutions": []}, ProviderError("LLM_AUTH", retryable=False, found="a test")]
    assert resolve(inventory, InventoryModel(scripted={"assessment": refused})).state == "blocked"
    inventory.database.unlink()
    inventory.clock.advance(60)
    model = InventoryModel(scripted={"assessment": [{"resolutions": []}]})
    assert inventory.project(model).resume("INC-7").state == "interpreted"
    assert model.counts() == {"plan": 0, "assessment": 2, "interpretation": 1}
    assert "feedback" in model.asked("assessment")[0]  # the refusal of the first run still counts, and is told


@pytest.mark.parametrize("stop_after", [None, "research", "interpretation"])
def test_a_missing_variable_is_told_before_anything_is_written(inventory, monkeypatch, stop_after):
    monkeypatch.delenv("INVENTORY_URL", raising=False)
    named = settings_text().replace('url = "sqlite:///inventory.db"', 'url_env = "INVENTORY_URL"')
    assert "INVENTORY_URL" in named
    inventory.configure(named)
    with pytest.raises(SettingsError) as caught:
        inventory.resolve(RaisingProvider(), stop_after=stop_after)
    assert (caught.value.code, caught.value.exit_status) == ("SETTINGS_VARIABLE", 2)
    assert not inventory.workspace.exists()
    assert inventory.resolve(RaisingProvider(), stop_after="construction").state == "built"


def test_a_phase_that_was_cut_off_runs_again_and_one_that_ended_does_not(inventory):
    """What a killed phase left in its folder is no sign that it ended; the mark is."""
    set_budget(inventory.workspace, 5)
    resolve(inventory, InventoryModel(), stop_after="interpretation")
    half_done = inventory.package().root / "analysis" / "hypothesis"
    half_done.mkdir()
    (half_done / "half.json").write_text("{}")
    assert resolve(inventory, RaisingProvider(), phases=True).state == "interpreted"
    assert budget_left(inventory.workspace) == 3
    marks = [f"analysis/{name}/phase.json" for name in ("hypothesis", "investigation")]
    assert set(marks) <= set(inventory.package().paths())
    assert resolve(inventory, RaisingProvider(), phases=True).state == "interpreted"
    assert budget_left(inventory.workspace) == 3
    assert verify(inventory.package().root, host=inventory.host(phases=True)).answer == "holds"
