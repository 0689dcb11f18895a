"""A `resume` that is refused leaves the case blocked, and its folder as it was, byte for byte."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from casebound.canonical import digest_of
from casebound.errors import ProviderError, SettingsError
from casebound.installed import Installed
from casebound.progress import derive_progress
from casebound.recording import write_recording
from casebound.store.events import EventLog
from casebound.store.layout import Revision
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider

QUOTA = ProviderError("LLM_QUOTA", retryable=False)
RULE = """
from casebound.hookspecs import hookimpl
from casebound.specs import Validator

@hookimpl
def casebound_validators():
    return [Validator("interpretation", "STRICTER", 1, check=lambda reply, context: (), always=True)]
"""
KEYED = """
from casebound.hookspecs import hookimpl
from casebound.settings import read_secret
from casebound.specs import ProviderSpec
from casebound.testing.inventory_plugin import SilentProvider, SilentSettings

class Keyed(SilentProvider):
    def __init__(self, settings):
        read_secret(env="CASEBOUND_TEST_KEY", cmd=None, key="llm.keyed")

@hookimpl
def casebound_providers():
    return [ProviderSpec("keyed", settings=__name__ + ":SilentSettings", factory=__name__ + ":Keyed")]
"""


def files(inventory):
    root = inventory.package().root
    return {path.relative_to(root): digest_of(path.read_bytes()) for path in root.rglob("*") if path.is_file()}


def blocked(inventory, stage="plan", **options):
    """Block the case at a stage of the model, and let the time for `resume` come."""
    project = inventory.project(InventoryModel(scripted={stage: [QUOTA]}), **options)
    (waits,) = project.resolve([inventory.report])
    assert waits.state == "blocked"
    inventory.clock.advance(3600)


def away(inventory):
    """Block the case at its look-up, because the database goes away once it is planned; return the database."""
    kept = []

    class Leaving(InventoryModel):
        async def send(self, request):
            kept.append(inventory.damage())
            return await super().send(request)

    assert inventory.resolve(Leaving()).code == "RESEARCH_UNAVAILABLE"
    inventory.clock.advance(3600)
    return kept[0]


def refused(inventory, code, **options):
    before = files(inventory)
    steps = []
    project = inventory.project(None if "replay_from" in options else RaisingProvider(), **options)
    project.on_step = lambda package, step: steps.append(step)
    result = project.resume("INC-7")
    assert (result.state, result.code, result.exit_status) == ("blocked", code, 1)
    assert result.error.startswith(f"{code}: ")
    assert files(inventory) == before
    assert derive_progress(inventory.package()).state == "blocked"
    assert steps == []
    return result


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path / "project")


@pytest.mark.parametrize("stage", ["plan", "assessment", "interpretation"])
def test_another_model_is_refused(inventory, stage):
    blocked(inventory, stage)
    inventory.configure(settings_text(model="other"))
    assert "scripted other" in refused(inventory, "BINDING_CHANGED").error
    inventory.configure(settings_text())
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"


def test_another_snapshot_is_refused(inventory):
    blocked(inventory)
    inventory.configure(settings_text(snapshot_id="inventory-2"))
    refused(inventory, "BINDING_CHANGED")


def test_a_database_that_came_back_as_another_one_is_refused(inventory):
    kept = away(inventory)
    inventory.database.write_bytes(kept)
    with closing(sqlite3.connect(inventory.database)) as connection:
        connection.execute("alter table hosts add column colour text")
        connection.commit()
    refused(inventory, "BINDING_CHANGED")
    inventory.database.write_bytes(kept)
    assert inventory.project(InventoryModel()).resume("INC-7").state == "interpreted"


def test_a_database_that_is_still_away_was_asked_again_and_blocks_again(inventory):
    away(inventory)
    result = inventory.project(RaisingProvider()).resume("INC-7")
    assert (result.state, result.code) == ("blocked", "RESEARCH_UNAVAILABLE")
    kinds = [event.kind for event in EventLog(inventory.package(), Revision(1)).all()]
    assert kinds == ["blocked", "resumed", "blocked"]


def test_a_rule_that_is_gone_is_refused_before_an_earlier_stage_is_paid_for(inventory, tmp_path, monkeypatch):
    (tmp_path / "strict_rule_plugin.py").write_text(RULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = [Installed("stricter", "strict_rule_plugin", "casebound-stricter", "2.0")]
    blocked(inventory, plugins=plugins)
    assert "casebound-stricter 2.0" in refused(inventory, "PLUGIN_MISSING").error
    assert inventory.project(InventoryModel(), plugins=plugins).resume("INC-7").state == "interpreted"


def test_a_budget_that_is_used_up_is_refused(inventory):
    blocked(inventory)
    inventory.configure(settings_text(more="[budget]\ncase_calls = 1\n"))
    refused(inventory, "BUDGET_REACHED")


def test_trying_out_spends_nothing_of_the_budget(inventory):
    blocked(inventory)
    inventory.configure(settings_text(more="[budget]\nrun_calls = 3\n"))
    model = InventoryModel()
    assert inventory.project(model).resume("INC-7").state == "interpreted"
    assert sum(model.counts().values()) == 3


def test_a_recording_without_the_next_reply_is_refused(inventory, tmp_path):
    other = write_inventory(tmp_path / "other")
    other.resolve(InventoryModel())
    write_recording(other.package().root, tmp_path / "other.json", other.host())
    blocked(inventory)
    refused(inventory, "REPLAY_MISSING", replay_from=tmp_path / "other.json")


def test_a_variable_that_is_not_set_is_refused(inventory, monkeypatch):
    blocked(inventory)
    monkeypatch.delenv("CASEBOUND_TEST_URL", raising=False)
    inventory.configure(settings_text().replace('url = "sqlite:///inventory.db"', 'url_env = "CASEBOUND_TEST_URL"'))
    before = files(inventory)
    with pytest.raises(SettingsError, match="SETTINGS_VARIABLE"):
        inventory.project(RaisingProvider()).resume("INC-7")
    assert files(inventory) == before


def test_a_provider_whose_key_is_missing_is_refused(inventory, tmp_path, monkeypatch):
    (tmp_path / "keyed_plugin.py").write_text(KEYED)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins = [Installed("keyed", "keyed_plugin", "casebound-keyed", "1.0")]
    inventory.configure(settings_text().replace('"scripted"', '"keyed"'))
    blocked(inventory, plugins=plugins)
    monkeypatch.delenv("CASEBOUND_TEST_KEY", raising=False)
    before = files(inventory)
    with pytest.raises(SettingsError, match="SETTINGS_VARIABLE"):
        inventory.project(plugins=plugins).resume("INC-7")
    assert files(inventory) == before
