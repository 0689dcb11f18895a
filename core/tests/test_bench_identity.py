from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import casebound.contracts
import pytest
from casebound.bench.corpus import load_corpus
from casebound.bench.identity import (
    CONSTRAINTS,
    KIT,
    VALIDATORS,
    checker_tree,
    derive_governed,
    differing_parts,
    govern,
    interpreter,
    measure_identity,
    measurement_id,
    shared_library,
)
from casebound.bench.instrument import GuideFile, Instrument, open_instrument, shipped_file
from casebound.bench.measurement import Sources, confirm_identity, freeze_measurement
from casebound.bench.wording import DECLARATIONS, DECLARED_CLOSURE
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.bench_identity import TREE_SCOPE, MeasurementIdentity
from casebound.contracts.model_call import Prompt
from casebound.errors import PluginError, SettingsError
from casebound.testing.bench_pairs import NOW
from casebound.testing.small_benchmark import PROTOCOL, SYSTEM, small_host
from pydantic import ValidationError
from pydantic.alias_generators import to_camel


@pytest.fixture(scope="module")
def small() -> Instrument:
    return open_instrument(small_host(), "small")


@pytest.fixture(scope="module")
def usual(small) -> MeasurementIdentity:
    return identity_of(small)


@pytest.fixture
def constraints(tmp_path) -> Path:
    path = tmp_path / CONSTRAINTS
    path.write_text("pydantic==2.14.4\n")
    return path


def identity_of(instrument: Instrument, constraints: Path | None = None, corpus: Path | None = None):
    read = load_corpus(corpus or instrument.corpus_path, instrument.model)
    return measure_identity(instrument, read, derive_governed(instrument, read.corpus), constraints=constraints)


def assert_only(part: str, one: MeasurementIdentity, other: MeasurementIdentity):
    assert differing_parts(one, other) == (part,)
    assert measurement_id(one) != measurement_id(other)


# --- each part ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-083")
def test_each_version_is_bound(small, usual):
    names = ("measurement", "corpus", "guide", "checker", "captures")
    fields = ("measurement_version", "corpus_version", "guide_version", "checker_version", "capture_format")
    versions = replace(small.spec.versions, **{name: f"another-{name}/v1" for name in names})
    found = identity_of(replace(small, spec=replace(small.spec, versions=versions)))
    assert [getattr(found, field) for field in fields] == [f"another-{name}/v1" for name in names]
    one_by_one = [usual.model_copy(update={field: getattr(found, field)}) for field in fields]
    assert [differing_parts(usual, one) for one in one_by_one] == [(to_camel(field),) for field in fields]
    assert len({measurement_id(identity) for identity in (usual, found, *one_by_one)}) == 7


@pytest.mark.spec("B-084")
def test_one_space_in_the_corpus_is_another_measurement(small, usual, tmp_path):
    spaced = tmp_path / "corpus.json"
    spaced.write_bytes(small.corpus_path.read_bytes() + b" ")
    assert_only("corpus", usual, identity_of(small, corpus=spaced))
    spaced.write_bytes(small.corpus_path.read_bytes())
    assert identity_of(small, corpus=spaced) == usual


@pytest.mark.spec("B-085")
def test_every_guide_is_bound_by_its_raw_bytes(small):
    two = {"en": small.guides["en"], "zh": GuideFile("guide.zh.md", "指南".encode())}
    first = identity_of(replace(small, guides=two))
    assert first.guides == {"en": digest_of(two["en"].data), "zh": digest_of("指南".encode())}
    for language, guide in two.items():
        changed = replace(guide, data=guide.data[:-1] + bytes([guide.data[-1] ^ 1]))
        assert_only("guides", first, identity_of(replace(small, guides={**two, language: changed})))


@pytest.mark.spec("B-088")
def test_metadata_and_constraints_are_bound(small, usual, constraints):
    found = identity_of(small, constraints)
    names = ["casebound METADATA", CONSTRAINTS]
    assert [declaration.name for declaration in found.declarations] == names
    assert_only("declarations", found, usual)
    constraints.write_text("pydantic==2.14.5\n")
    assert_only("declarations", found, identity_of(small, constraints))


@pytest.mark.spec("B-091")
def test_the_prompt_is_bound_by_its_raw_utf8_and_its_schema(small, usual):
    found = usual.prompt
    assert (found.stage, found.version, found.prompt_id) == ("same_fault", 1, "same-fault-v1")
    assert found.system == digest_of(SYSTEM.encode())
    case = load_corpus(small.corpus_path, small.model).corpus.cases[0]
    assert found.response_schema == digest_of(canonical_bytes(PROTOCOL.response_schema(case.input.to_json())))


@pytest.mark.spec("B-091")
@pytest.mark.parametrize(
    "changes",
    [
        {"request": lambda context, feedback: Prompt(f"{SYSTEM} ", {})},
        {"request": lambda context, feedback: Prompt(SYSTEM.replace("notes", "notés"), {})},
        {"response_schema": lambda context: {"type": "object"}},
        {"prompt_id": "same-fault-v2"},
        {"version": 2},
    ],
)
def test_another_prompt_or_schema_is_another_measurement(small, usual, changes):
    protocol = replace(small.protocol, **changes)
    corpus = load_corpus(small.corpus_path, small.model).corpus
    other = govern(protocol, derive_governed(replace(small, protocol=protocol), corpus))
    assert_only("prompt", usual, usual.model_copy(update={"prompt": other}))


@pytest.mark.parametrize(
    "changes",
    [
        {"request": lambda context, feedback: Prompt(context["notes"][0]["text"], {})},
        {"response_schema": lambda context: {"const": context["notes"][0]["text"]}},
    ],
)
def test_what_depends_on_the_case_has_no_single_digest(small, changes):
    other = replace(small, protocol=replace(small.protocol, **changes))
    with pytest.raises(PluginError, match="pairs of system text and response schema") as caught:
        identity_of(other)
    assert caught.value.code == "PLUGIN_OFFER"


@pytest.mark.spec("B-090")
def test_the_program_that_runs_is_bound_behind_its_links(tmp_path, monkeypatch):
    before = interpreter()
    assert before.version == ".".join(map(str, sys.version_info[:3]))
    copy = Path(shutil.copy(Path(sys.executable).resolve(), tmp_path / "python"))
    (tmp_path / "link").symlink_to(copy)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "link"))
    assert interpreter() == before
    data = bytearray(copy.read_bytes())
    data[-1] ^= 1
    copy.write_bytes(data)
    assert interpreter().executable != before.executable


@pytest.mark.spec("B-090")
def test_a_shared_library_of_the_interpreter_is_bound_too():
    library = shared_library()
    assert interpreter().library == (None if library is None else digest_of(library.read_bytes()))


@pytest.mark.spec("B-086")
def test_the_checker_is_the_kit_and_the_components(tmp_path, monkeypatch):
    (tmp_path / "judge_of_notes.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = checker_tree(("judge_of_notes",))
    assert before != checker_tree(())
    assert before.files == checker_tree(()).files + 1
    (tmp_path / "judge_of_notes.py").write_text("x = 2\n")
    assert checker_tree(("judge_of_notes",)) != before
    # A module of the kit counts once, also where a benchmark lists it.
    assert checker_tree(("casebound.bench.identity", "casebound.canonical")) == checker_tree(())


@pytest.mark.spec("B-086")
def test_every_contract_of_benchmarks_is_a_part_of_the_checker():
    contracts = Path(str(casebound.contracts.__file__)).parent.glob("bench*.py")
    assert {f"casebound.contracts.{path.stem}" for path in contracts} <= set(KIT)


@pytest.mark.parametrize("module", ["no_such_module", "no.such.module", "sys"])
def test_a_component_without_a_file_is_refused(module):
    with pytest.raises(SettingsError, match=f"module {module}") as caught:
        checker_tree((module,))
    assert caught.value.code == "BENCH_IDENTITY"


@pytest.mark.spec("B-087", "B-089")
def test_production_and_validators_are_named_with_version_and_tree(usual):
    assert [part.distribution for part in usual.production] == ["casebound"]
    assert [part.distribution for part in usual.validators] == list(VALIDATORS)
    assert all(part.version and part.tree.files for part in (*usual.production, *usual.validators))


# --- as a whole -----------------------------------------------------------------------------------------------------


def test_equal_bytes_give_equal_identities(small, usual):
    assert identity_of(small).to_bytes() == usual.to_bytes()


@pytest.mark.spec("B-093", "B-095")
def test_another_scope_of_trees_is_refused_as_breaking_comparability(small, usual):
    assert usual.scope == TREE_SCOPE == "casebound-entity-measurement-runtime/v2"
    versions = replace(small.spec.versions, runtime="casebound-entity-measurement-runtime/v1")
    with pytest.raises(SettingsError, match="BREAKING-COMPARABILITY") as caught:
        identity_of(replace(small, spec=replace(small.spec, versions=versions)))
    assert caught.value.code == "BENCH_IDENTITY"
    with pytest.raises(ValidationError):
        MeasurementIdentity.from_json(
            {**identity_of(small).to_json(), "scope": "casebound-entity-measurement-runtime/v1"}
        )


@pytest.mark.spec("B-095")
def test_a_frozen_measurement_is_refused_once_other_bytes_are_installed(small, constraints):
    frozen = freeze_measurement(small, Sources(repository=constraints.parent), NOW)
    confirm_identity(frozen, constraints.parent)
    constraints.write_text("pydantic==2.14.5\n")
    with pytest.raises(SettingsError, match="declarations") as caught:
        confirm_identity(frozen, constraints.parent)
    assert caught.value.code == "BENCH_IDENTITY"


def test_the_working_folder_has_no_say(small, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / CONSTRAINTS).write_text("of another project\n")
    here = freeze_measurement(small, Sources(), NOW).identity
    monkeypatch.chdir(tmp_path)
    assert freeze_measurement(small, Sources(), NOW).identity == here


@pytest.mark.spec("B-094", "B-096")
def test_what_an_identity_does_not_bind_is_said():
    assert "not every installed byte" in DECLARATIONS
    for word in ("declared closure", "operating system", "accounts", "credentials", "provider"):
        assert word in DECLARED_CLOSURE


# --- the instrument -------------------------------------------------------------------------------------------------


def test_a_file_of_no_package_is_refused():
    with pytest.raises(PluginError, match="no package nowhere"):
        shipped_file("nowhere:guide.md", "somebody 1.0")


def test_an_unknown_benchmark_is_refused_with_what_there_is():
    with pytest.raises(SettingsError, match="small") as caught:
        open_instrument(small_host(), "entity-link")
    assert caught.value.code == "SETTINGS_NAME"
