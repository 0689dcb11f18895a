"""The response contracts that core ships: what a version asks for is its contract, narrowed to a case."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from casebound.canonical import canonical_bytes
from casebound.protocols.registry import built_in_protocols
from casebound.testing.goldens import golden_versions
from casebound.testing.inventory_model import interpretation_reply
from casebound.testing.rules import message_of_context
from jsonschema import Draft202012Validator

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "protocols"
CONTRACTS = resources.files("casebound.protocols") / "contracts"
BOUND = {p.version: p for p in built_in_protocols() if p.response_contract}
VERSIONS = [version for version in golden_versions(GOLDEN) if version.stage == "interpretation"]
every_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: f"v{version.number}")


def contract(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((CONTRACTS / f"{name}.schema.json").read_text(encoding="utf-8")))


def replies(version) -> list[tuple[str, dict]]:
    """Return every golden reply of a version that is a JSON object, and valid replies to every situation."""
    found = []
    for _, golden in version.replies():
        try:
            value = json.loads(golden.reply.text)
        except ValueError:
            continue
        found.append((golden.situation, value))
    for situation in version.situations():
        context = json.loads(version.files()[f"{situation}/context.json"])
        found.append((situation, interpretation_reply(message_of_context(BOUND[version.number], context))))
    return found


@pytest.mark.spec("A-145a")
def test_every_contract_is_shipped_and_is_a_schema() -> None:
    names = {protocol.response_contract for protocol in BOUND.values()}
    assert {path.name for path in CONTRACTS.iterdir()} == {f"{name}.schema.json" for name in names}
    for name in names:
        schema = contract(name).schema
        Draft202012Validator.check_schema(schema)
        assert schema["title"] == name


@every_version
def test_what_a_version_accepts_its_contract_accepts(version) -> None:
    protocol = BOUND[version.number]
    wide = contract(protocol.response_contract)
    accepted = 0
    for situation, reply in replies(version):
        context = json.loads(version.files()[f"{situation}/context.json"])
        schema = json.loads(canonical_bytes(protocol.response_schema(context)))
        if Draft202012Validator(schema).is_valid(reply):
            accepted += 1
            assert wide.is_valid(reply), (situation, reply)
    assert accepted >= len(version.situations())


@pytest.mark.spec("A-147a")
@every_version
def test_no_reply_fits_the_contract_of_another_shape(version) -> None:
    own = BOUND[version.number].response_contract
    others = {protocol.response_contract for protocol in BOUND.values()} - {own}
    for _, reply in replies(version):
        if contract(own).is_valid(reply):
            assert not any(contract(other).is_valid(reply) for other in others)
