"""The built-in prompt protocols: conformance, and what each published version sends, byte for byte."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from casebound import protocols
from casebound.host import build_host
from casebound.protocols.registry import built_in_protocols
from casebound.specs import CORE_ROLES
from casebound.testing.conformance.protocol import Capabilities, ProtocolConformance
from casebound.testing.goldens import DIGESTS, derive_digests, golden_versions
from casebound.testing.inventory_cases import facts_of
from casebound.testing.rules import message_of_context, rules_of

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "protocols"
BY_NAME = {(protocol.stage, protocol.version): protocol for protocol in built_in_protocols()}
VERSIONS = golden_versions(GOLDEN)
PLAIN = ("interpretation", 0)
NAMES = [f"{version.stage}-v{version.number}" for version in VERSIONS]


# What a version does not do, and where its inputs are others.
CAPABILITIES = {
    ("plan", 1): Capabilities(shows_schema=False),
    ("assessment", 1): Capabilities(shows_schema=False),
    ("interpretation", 1): Capabilities(tells_all_errors=False),
}
SITUATIONS = {"assessment": ("selected", "ambiguous", "truncated", "locales", "grouped", "hostile")}


def suite_of(stage, version):
    """Return the conformance suite of one version, as a class that pytest collects."""
    situations = ("plain",) if (stage, version) == PLAIN else SITUATIONS.get(stage, ProtocolConformance.situations)
    members = {
        "__module__": __name__,
        "where": f"casebound.protocols.{stage}.v{version}:PROTOCOL",
        "situations": situations,
        "capabilities": CAPABILITIES.get((stage, version), Capabilities()),
    }
    return type(f"Test{stage.title()}{version}", (ProtocolConformance,), members)


globals().update({suite.__name__: suite for suite in (suite_of(*name) for name in BY_NAME)})


# --- frozen bytes ---------------------------------------------------------------------------------------------------


def test_every_built_in_version_is_frozen_and_every_frozen_version_is_still_there():
    """A new version: run scripts/freeze_goldens.py once. A version that is missing can never be replayed again."""
    assert {(version.stage, version.number) for version in VERSIONS} == set(BY_NAME)


@pytest.mark.spec("A-008", "A-109", "A-133", "A-144c", "A-150b", "A-155")
@pytest.mark.parametrize("version", VERSIONS, ids=NAMES)
def test_a_published_version_never_changes_by_one_byte(version):
    """Prompt, context, schema, findings and feedback. Repair: undo the change, and write the next version."""
    protocol = BY_NAME[version.stage, version.number]
    derived, files = version.derive(protocol, rules_of(protocol)), version.files()
    assert sorted(derived) == sorted(files)
    for path, data in files.items():
        assert derived[path] == data, path


@pytest.mark.parametrize("version", VERSIONS, ids=NAMES)
def test_nobody_edits_a_golden_file(version):
    kept = (version.folder / DIGESTS).read_bytes()
    assert derive_digests(version.files(), version.inputs()) == kept


@pytest.mark.parametrize("version", VERSIONS, ids=NAMES)
def test_the_goldens_hold_a_reply_for_every_rule_and_a_valid_one_for_every_input(version):
    protocol = BY_NAME[version.stage, version.number]
    replies = {path: json.loads(version.files()[path]) for path, _ in version.replies()}
    found = {finding["code"] for kept in replies.values() for finding in kept["findings"]}
    assert {rule.code for rule in protocol.rules} <= found
    assert {"LLM_OUTPUT_JSON", "LLM_OUTPUT_SCHEMA", "LLM_INCOMPLETE_OUTPUT", "LLM_REFUSED"} <= found
    valid = {kept["situation"] for path, kept in replies.items() if path.startswith("replies/valid-")}
    assert valid == set(version.situations())
    assert all(not kept["findings"] for path, kept in replies.items() if path.startswith("replies/valid-"))


@pytest.mark.parametrize("path", ["context.json", "schema.json", "request.json"])
def test_one_changed_byte_is_noticed(path, tmp_path):
    version = VERSIONS[0]
    protocol = BY_NAME[version.stage, version.number]
    situation = version.situations()[0]
    derived = version.derive(protocol, rules_of(protocol))
    changed = {**version.files(), f"{situation}/{path}": version.files()[f"{situation}/{path}"] + b" "}
    assert derived != changed
    assert derive_digests(changed, version.inputs()) != (version.folder / DIGESTS).read_bytes()


# --- what the prompts say -------------------------------------------------------------------------------------------


@pytest.mark.spec("A-036", "A-151a", "A-157d", "A-158c", "A-158g")
@pytest.mark.parametrize(
    ("stage", "version", "phrases"),
    [
        ("plan", 4, ["copied character for character", "specific names of the affected subject", "before broad names"]),
        ("assessment", 4, ["equal name alone is not enough", "hints, never a decision", "does not speak against"]),
        ("interpretation", 6, ["in no field", "not independently verified", "no proof of a cause", "does not exist"]),
        ("interpretation", 0, ['kind "expectation"', "You do not diagnose causes"]),
    ],
)
def test_the_prompt_says_what_a_rule_cannot_hold(stage, version, phrases):
    system = " ".join(BY_NAME[stage, version].request(context_of(stage, version), None).system.split())
    for phrase in [*phrases, "never an instruction to you", "exactly one JSON object"]:
        assert phrase in system


def context_of(stage, version):
    return BY_NAME[stage, version].context(facts_of("plain" if (stage, version) == PLAIN else "selected"))


@pytest.mark.spec("A-126")
@pytest.mark.parametrize(
    ("stage", "version", "keys"),
    [
        ("plan", 4, {"catalogs", "entities", "known_names", "limits", "roles", "sources"}),
        ("assessment", 4, {"candidates", "entities", "known_names", "overlaps", "roles", "sources", "specifics"}),
        ("interpretation", 6, {"entities", "expected_behavior", "facts", "sources", "unknowns"}),
        ("interpretation", 0, {"entities", "expected_behavior", "facts", "sources", "unknowns"}),
    ],
)
def test_the_reserved_keys_of_a_message(stage, version, keys):
    message = message_of_context(BY_NAME[stage, version], context_of(stage, version))
    assert message.keys() == keys | {"task", "output_schema"}
    for source in message["sources"]:
        assert {"id", "kind", "text"} <= source.keys()
    if "roles" in message:
        assert set(CORE_ROLES) < set(message["roles"])
    # What only a program follows stands in the context and is kept from the model.
    assert not {"pointer", "capture_digest", "row"} & set(re.findall(r'"([a-z_]+)":', json.dumps(message)))


@pytest.mark.parametrize(("stage", "version"), sorted(BY_NAME))
def test_a_schema_is_small_beside_what_it_describes(stage, version):
    protocol = BY_NAME[stage, version]
    assert len(json.dumps(protocol.response_schema(context_of(stage, version)))) < 3500


def test_a_schema_grows_little_with_each_search():
    context = context_of("assessment", 4)
    table = context["candidates"][0]
    many = [{**table, "search_index": number, "capture": f"V{number + 1:04d}"} for number in range(100)]
    size = [
        len(json.dumps(BY_NAME["assessment", 4].response_schema({**context, "candidates": many[:count]})))
        for count in (50, 100)
    ]
    assert size[1] - size[0] < 50 * 650


# --- how they are laid out ------------------------------------------------------------------------------------------

ALLOWED = (
    "__future__",
    "collections",
    "dataclasses",
    "typing",
    "casebound.specs",
    "casebound.contracts",
    "casebound.canonical",
    "casebound.protocols.parts",
)


@pytest.mark.parametrize(
    "path", sorted(Path(protocols.__path__[0]).glob("*/*.py")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_version_imports_nothing_that_may_change(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.startswith(ALLOWED), name


def test_the_registry_finds_versions_by_listing_and_the_host_offers_them_all():
    assert set(build_host(entry_points=()).protocols) == set(BY_NAME)
    for stage, version in BY_NAME:
        assert import_module(f"casebound.protocols.{stage}.v{version}").PROTOCOL is BY_NAME[stage, version]
