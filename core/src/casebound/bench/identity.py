"""Measuring the identity: which bytes are at work here, part by part.

Nothing is run and nobody is asked: files of the installation are read and digested. Which distributions take part
follows from the host: core, whoever offers the protocol, and whoever offers its rules.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from casebound.bench.corpus import CorpusFile
from casebound.bench.instrument import Instrument
from casebound.bench.prompt import prompt_of, response_schema_of
from casebound.bench.trees import declaration_of, digest_file, digest_tree, installed_tree
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.bench_identity import (
    TREE_SCOPE,
    Declaration,
    GovernedPrompt,
    InstalledTree,
    Language,
    MeasurementIdentity,
    Tree,
)
from casebound.contracts.benchmark import Corpus
from casebound.errors import PluginError, SettingsError
from casebound.loading import DISTRIBUTION
from casebound.specs import Benchmark, PromptProtocol

VALIDATORS = ("jsonschema", "pydantic", "pydantic-core")
CONSTRAINTS = "constraints.txt"
OTHER_SCOPE = (
    "BREAKING-COMPARABILITY: a release of that scope can use it; for this one prepare a new bundle, receipts and plans."
    " Nothing is converted, compared or scored again."
)
# The kit, and what it digests, parses and judges by: with the benchmark's own components, the checker.
KIT = (
    "casebound.bench",
    "casebound.canonical",
    "casebound.contracts.base",
    "casebound.contracts.bench_captures",
    "casebound.contracts.bench_checks",
    "casebound.contracts.bench_identity",
    "casebound.contracts.bench_receipts",
    "casebound.contracts.bench_review",
    "casebound.contracts.benchmark",
    "casebound.llm.judge",
    "casebound.strict_json",
)


@dataclass(frozen=True, slots=True)
class Governed:
    """What is governed: the protocol's system text as UTF-8, and its response schema as canonical JSON."""

    system: bytes
    response_schema: bytes


def derive_governed(instrument: Instrument, corpus: Corpus) -> Governed:
    """Return what the protocol asks of every case.

    Raises:
        PluginError: system text or schema depend on the case (`PLUGIN_OFFER`): then no single digest binds them.
    """
    protocol = instrument.protocol
    found = {
        (
            prompt_of(case.input, protocol).system.encode(),
            canonical_bytes(response_schema_of(case.input, protocol)),
        )
        for case in corpus.cases
    }
    if len(found) != 1:
        raise PluginError(
            "PLUGIN_OFFER",
            where=f"protocol {protocol.stage}/{protocol.version}",
            found=f"{len(found)} pairs of system text and response schema over {len(corpus.cases)} cases",
            expected="one pair, whatever the case",
        )
    return Governed(*found.pop())


def measure_identity(
    instrument: Instrument, corpus: CorpusFile, governed: Governed, *, constraints: Path | None = None
) -> MeasurementIdentity:
    """Return the identity of a measurement with what is installed here.

    Args:
        instrument: the benchmark, with the host that knows who offers what takes part.
        corpus: as it was read.
        governed: what the protocol asks of every case.
        constraints: the file that pins dependencies, where there is one.

    Raises:
        SettingsError: something that must be bound cannot be, or the benchmark asks for another scope of its trees
            (`BENCH_IDENTITY`).
    """
    spec = instrument.spec
    _refuse_other_scope(spec)
    production = taking_part(instrument)
    own = instrument.host.distribution_of("benchmarks", spec.name).distribution
    return MeasurementIdentity(
        benchmark=spec.name,
        measurement_version=spec.versions.measurement,
        corpus_version=spec.versions.corpus,
        guide_version=spec.versions.guide,
        checker_version=spec.versions.checker,
        capture_format=spec.versions.captures,
        scope=TREE_SCOPE,
        corpus=corpus.digest,
        guides={language: digest_of(guide.data) for language, guide in instrument.guides.items()},
        checker=checker_tree(spec.components),
        production=installed_trees(production),
        validators=installed_trees(VALIDATORS),
        declarations=declarations((*production, own), constraints),
        language=interpreter(),
        prompt=govern(instrument.protocol, governed),
    )


def measurement_id(identity: MeasurementIdentity) -> str:
    """Return the digest that receipts, captures and plans bind."""
    return digest_of(identity.to_bytes())


def differing_parts(one: MeasurementIdentity, other: MeasurementIdentity) -> tuple[str, ...]:
    """Return the parts in which two identities differ, as their JSON names them; `scope` first, for it says most."""
    left, right = one.to_json(), other.to_json()
    return tuple(sorted((key for key in left if left[key] != right[key]), key=lambda key: (key != "scope", key)))


def _refuse_other_scope(benchmark: Benchmark) -> None:
    if benchmark.versions.runtime != TREE_SCOPE:
        raise SettingsError(
            "BENCH_IDENTITY",
            where=f"benchmark {benchmark.name}",
            found=f"tree digests of the scope {benchmark.versions.runtime!r}",
            allowed=(TREE_SCOPE,),
            hint=OTHER_SCOPE,
        )


# --- which distributions --------------------------------------------------------------------------------------------


def taking_part(instrument: Instrument) -> tuple[str, ...]:
    """Return the production distributions: core, then those that offer the protocol and its rules, sorted."""
    spec, host, stage = instrument.spec, instrument.host, instrument.spec.stage
    offers: list[tuple[str, object]] = [("protocols", (stage, spec.protocol_version))]
    offers += [("validators", (stage, rule.code, rule.revision)) for rule in instrument.protocol.rules]
    others = {host.distribution_of(kind, name).distribution for kind, name in offers}
    return (DISTRIBUTION, *sorted(others - {DISTRIBUTION}))


def installed_trees(names: Iterable[str], folders: Iterable[str] | None = None) -> tuple[InstalledTree, ...]:
    """Return the trees of distributions, in the order given. Raises `SettingsError` (`BENCH_IDENTITY`)."""
    places = None if folders is None else tuple(folders)
    return tuple(installed_tree(name, places) for name in names)


def declarations(
    names: Iterable[str], constraints: Path | None = None, folders: Iterable[str] | None = None
) -> tuple[Declaration, ...]:
    """Return what declares dependencies: the metadata of distributions, each once, and the constraints file."""
    places = None if folders is None else tuple(folders)
    found = [declaration_of(name, places) for name in dict.fromkeys(names)]
    if constraints is not None:
        found.append(Declaration(name=CONSTRAINTS, digest=digest_file(constraints)[0]))
    return tuple(sorted(found, key=lambda declaration: declaration.name))


# --- the other parts ------------------------------------------------------------------------------------------------


def checker_tree(components: Iterable[str]) -> Tree:
    """Return the tree of the benchmark's components and of the kit: a module is its file, a package all its modules.

    What else a package holds is none of the checker: corpus and guides are parts of their own.

    Raises:
        SettingsError: a module is not there, or has no file (`BENCH_IDENTITY`).
    """
    roots: dict[str, Path] = {}
    for name in sorted({*KIT, *components}):
        place, base = _place_of(name), name.replace(".", "/")
        if place.is_dir():
            roots.update((f"{base}/{path.relative_to(place).as_posix()}", path) for path in place.rglob("*.py"))
        else:
            roots[base + place.suffix] = place
    return digest_tree(roots)


def _place_of(name: str) -> Path:
    try:
        spec = find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise SettingsError("BENCH_IDENTITY", where=f"module {name}", found="no file of this module")
    place = Path(spec.origin)
    return place.parent if spec.submodule_search_locations is not None else place


def interpreter() -> Language:
    """Return the interpreter that runs this; its digests are of the files behind all links."""
    if not sys.executable:
        raise SettingsError("BENCH_IDENTITY", where="the interpreter", found="no path of its program")
    library = shared_library()
    return Language(
        implementation=sys.implementation.name,
        version=platform.python_version(),
        executable=digest_file(Path(sys.executable).resolve())[0],
        library=None if library is None else digest_file(library)[0],
    )


def shared_library() -> Path | None:
    """Return the shared library that holds the interpreter; None where the program holds it itself."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return None
    named = str(sysconfig.get_config_var("INSTSONAME") or sysconfig.get_config_var("LDLIBRARY"))
    folders = (str(sysconfig.get_config_var("LIBDIR")), str(Path(sys.base_prefix) / "lib"))
    for folder in folders:
        if (Path(folder) / named).is_file():
            return Path(folder) / named
    raise SettingsError("BENCH_IDENTITY", where="the interpreter", found=f"no file of its library {named}")


def govern(protocol: PromptProtocol, governed: Governed) -> GovernedPrompt:
    """Return what binds a prompt: its published names, and the digests of its texts."""
    return GovernedPrompt(
        stage=protocol.stage,
        version=protocol.version,
        prompt_id=protocol.prompt_id,
        system=digest_of(governed.system),
        response_contract=protocol.response_contract,
        response_schema=digest_of(governed.response_schema),
    )
