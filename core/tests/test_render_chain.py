"""A chain holds what the files hold: exact quotes, rows, decisions; as far as the case has come and no further."""

from __future__ import annotations

import json
import shutil

import pytest
from casebound.canonical import canonical_bytes
from casebound.contracts.case import Case
from casebound.errors import ProviderError
from casebound.render.chain import CONTEXT, derive_chain
from casebound.render.terminal import chain_nodes, result_nodes
from casebound.render.tree import plain
from casebound.store import Package
from casebound.store.layout import CASE
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel

SEARCHES = (
    ("inventory.host", "edge-proxy-canary", "affected_subject"),
    ("inventory.host", "edge-proxy", "participant"),
    ("inventory.service", "batch-runner", "context"),
    ("inventory.host_locale", "Randvermittler", "context"),
)


@pytest.fixture
def inventory(tmp_path):
    return write_inventory(tmp_path)


def resolved(inventory, searches=SEARCHES, scripted=None, **options):
    [result] = inventory.project(InventoryModel(searches, scripted)).resolve([inventory.report], **options)
    return result


def test_chain_leads_from_the_words_of_the_report_to_the_decision(inventory):
    resolved(inventory)
    chain = derive_chain(inventory.package())
    assert (chain.package, chain.case_id, chain.state) == ("INC-7", "INC-7", "interpreted")
    canary, broad, missing, locale = chain.searches
    assert [row.id for row in canary.candidates if row.selected] == ["12"]
    assert (canary.assessment.alias, canary.assessment.status) == ("N0001", "selected")
    assert canary.capture.alias in canary.assessment.source_ids
    assert (canary.capture.alias, canary.capture.snapshot, canary.capture.truncated) == ("V0001", "inventory-1", False)
    assert [(row.id, row.selected) for row in broad.candidates] == [("11", True), ("12", False)]
    assert (missing.candidates, missing.capture.matched, missing.assessment.alias) == ((), 0, "D0001")
    assert "No name of catalog" in missing.capture.scope
    assert {row.locale for row in locale.candidates} == {"de"}
    captures = {path.rpartition("/")[2] for path in inventory.package().paths() if "/captures/" in path}
    for search in chain.searches:
        assert search.capture.digest.replace(":", "-") + ".json" in captures


def test_quotes_are_exactly_the_cited_characters_and_their_surroundings_of_the_same_source(inventory):
    resolved(inventory)
    chain = derive_chain(inventory.package())
    case = inventory.package().load(CASE, Case)
    texts = {source.id: case.text_of(source) for source in case.sources}
    quotes = [quote for search in chain.searches for quote in search.mentions]
    quotes += [quote for cited in chain.cited for quote in cited.mentions]
    assert {quote.source[0] for quote in quotes} == {"S", "P"}
    for quote in quotes:
        around = quote.before + quote.text + quote.after
        assert len(quote.before) <= CONTEXT
        assert len(quote.after) <= CONTEXT
        if quote.field is not None:
            assert case.fields.text(quote.field)[quote.start : quote.end] == quote.text
            text = texts[quote.source]
            assert around in text
            assert quote.cut_before == (not text.startswith(around))
            assert quote.cut_after == (not text.endswith(around))


def test_cited_ids_come_with_the_facts_of_the_database(inventory):
    resolved(inventory)
    [service] = derive_chain(inventory.package()).cited
    assert (service.alias, service.type, service.id) == ("E0001", "service", "431")
    assert {quote.text for quote in service.mentions} == {"service 431", "service=431"}
    kinds = {fact.alias: (fact.kind, fact.column, fact.value) for fact in service.facts}
    assert ("project_entity_name", "title", "Nightly billing run") in kinds.values()
    assert [alias for alias, (kind, *_) in kinds.items() if kind == "project_description"] == ["P0001"]


def test_chain_is_the_same_wherever_the_package_lies(inventory, tmp_path):
    resolved(inventory)
    root = inventory.package().root
    elsewhere = tmp_path / "else where" / root.name
    shutil.copytree(root, elsewhere)
    chain, copied = derive_chain(Package(root)), derive_chain(Package(elsewhere))
    assert canonical_bytes(chain.to_json()) == canonical_bytes(copied.to_json())
    assert str(tmp_path) not in plain(chain_nodes(chain))


@pytest.mark.parametrize("phase", ["admission", "construction", "research"])
def test_chain_of_a_case_on_its_way_goes_as_far_as_the_case(inventory, phase):
    resolved(inventory, stop_after=phase)
    chain = derive_chain(inventory.package())
    assert chain.searches is None
    assert bool(chain.cited) == (phase != "admission")
    assert bool(chain.cited and chain.cited[0].facts) == (phase == "research")
    assert "nothing was looked up" in plain(chain_nodes(chain))


def test_chain_of_a_case_without_assessment_shows_candidates_and_no_decision(inventory):
    resolved(inventory, scripted={"assessment": [ProviderError("LLM_QUOTA", retryable=False)]})
    chain = derive_chain(inventory.package())
    assert (chain.state, chain.code) == ("blocked", "LLM_QUOTA")
    assert [search.assessment for search in chain.searches] == [None] * 4
    assert not any(row.selected for search in chain.searches for row in search.candidates)
    assert "not assessed yet" in plain(chain_nodes(chain))


def test_an_empty_plan_is_told(inventory):
    resolved(inventory, searches=())
    assert derive_chain(inventory.package()).searches == ()
    assert "the plan proposes no search" in plain(chain_nodes(derive_chain(inventory.package())))


def test_a_truncated_search_says_so_and_selects_nothing(inventory):
    inventory.report.write_text(inventory.report.read_text() + "\nEvery worker was slow.\n")
    resolved(inventory, searches=[("inventory.host", "worker", "participant")])
    [search] = derive_chain(inventory.package()).searches
    assert (search.capture.truncated, search.capture.limit_met) == (True, "max_candidates")
    assert not any(row.selected for row in search.candidates)
    assert "cut off (max_candidates)" in plain(chain_nodes(derive_chain(inventory.package())))


def test_a_result_shows_what_is_open_with_its_candidates_and_the_next_step(inventory):
    result = resolved(inventory)
    line = json.loads(json.dumps(result.to_json()))
    drawn = plain(result_nodes(line, summary=result.summary, options="--workspace w"))
    assert "no_match  “batch-runner”  in inventory.service" in drawn
    assert "next  casebound explain INC-7 --workspace w" in drawn
    assert drawn.endswith(result.summary)
