"""`link verify` derives everything again: whatever was touched is named."""

from __future__ import annotations

import json
import shutil

import pytest
from casebound.canonical import canonical_bytes

CALL = "attempts/entity_link-0001"


@pytest.fixture
def link(pair):
    found = pair.propose("no JSON")
    for verdict in ("accepted", "rejected"):
        pair.journal().decide(found.name, verdict, rationale="looked at it", by="Kim")
    return found


def test_an_untouched_link_holds(pair, link):
    verification = pair.verify(link)
    assert (verification.answer, verification.findings) == ("holds", ())
    assert verification.checked == len(pair.files())


def test_every_file_of_a_link_is_looked_at(pair, link):
    for path, data in pair.files().items():
        file = pair.root / path
        file.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
        found = pair.verify(link)
        assert found.answer == "does_not_hold", path
        file.write_bytes(data)
    assert pair.verify(link).answer == "holds"


def test_every_file_of_a_link_is_needed(pair, link):
    for path, data in pair.files().items():
        file = pair.root / path
        file.unlink()
        unfinished = path.endswith(("/suggestion.json", "/decisions/0002.json"))
        if not unfinished:
            assert pair.verify(link).answer == "does_not_hold", path
        file.write_bytes(data)


def test_a_suggestion_without_an_accepted_reply_is_found(pair, link):
    shutil.rmtree(link.package.root / "attempts" / "entity_link-0002")
    found = {(finding.code, finding.file) for finding in pair.verify(link).findings}
    assert ("VERIFY_DERIVED", "suggestion.json") in found


def test_a_decision_that_was_exchanged_is_found(pair, link):
    path = link.package.root / "decisions/0001.json"
    path.write_bytes(canonical_bytes({**json.loads(path.read_bytes()), "decision": "rejected"}))
    (finding,) = pair.verify(link).findings
    assert (finding.code, finding.file, finding.pointer) == ("VERIFY_BINDING", "decisions/0002.json", "/supersedes")


def test_a_stray_file_is_found(pair, link):
    (link.package.root / "merged.json").write_bytes(b"{}")
    (finding,) = pair.verify(link).findings
    assert (finding.code, finding.file, finding.pointer) == ("VERIFY_DERIVED", "suggestion.json", "/files/12")
    (link.package.root / "merged.json").rename(link.package.root / "decisions/merged.json")
    (finding,) = pair.verify(link).findings
    assert (finding.code, finding.file) == ("VERIFY_EXTRA", "decisions/merged.json")


def test_a_package_that_changed_or_went_away_is_found(pair, link):
    case = pair.inventory.workspace / "cases" / "INC-8"
    seal = case / "analysis/interpretations/0001/seal.json"
    kept = seal.read_bytes()
    seal.write_bytes(kept + b" ")
    (finding,) = pair.verify(link).findings
    assert (finding.code, finding.pointer) == ("VERIFY_BINDING", "/right/package_id")
    shutil.rmtree(case)
    (finding,) = pair.verify(link).findings
    assert (finding.code, finding.file, finding.pointer) == (
        "PACKAGE_UNREADABLE",
        "input.json",
        "/right/package_id",
    )


def test_a_context_that_does_not_follow_from_the_packages_is_found(pair, link):
    context = json.loads(canonical_bytes(link.input.context))
    context["left"]["mentions"][0]["text"] = "edge-proxy-canary was renamed."
    forged = link.input.model_copy(update={"context": context})
    folder = pair.root / forged.question.replace(":", "-")
    folder.mkdir()
    (folder / "input.json").write_bytes(forged.to_bytes())
    (finding,) = pair.verify(pair.journal().find(folder.name)).findings
    assert (finding.code, finding.file, finding.pointer) == ("VERIFY_DERIVED", "input.json", "/context")


def test_an_unfinished_link_is_unfinished(pair):
    assert pair.verify(pair.propose("{", "{", "{")).answer == "unfinished"


def test_a_revision_of_a_case_leaves_its_links_as_they_are(pair, link):
    from casebound.specs import CORE_STAGES
    from casebound.testing.inventory_model import InventoryModel

    pair.inventory.project(dict.fromkeys(CORE_STAGES, InventoryModel())).revise("INC-7")
    assert pair.verify(link).answer == "holds"
    newer = pair.propose()
    assert newer.name != link.name
    assert newer.input.left.seal == "analysis/interpretations/0002/seal.json"
