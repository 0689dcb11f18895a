"""The measurement identity: digests of everything declared to have a say in what a benchmark measures.

Rules:
- Each part has a field of its own, so that two identities can say where they differ. The measurement id is the digest
  of the identity's canonical JSON.
- Equal bytes give an equal identity on every machine: no path of an installation, no time and no order of files enters.
- `scope` names what a tree digest covers. A new scope is BREAKING-COMPARABILITY: identities of two scopes are never
  compared, and nothing is migrated or scored again.
"""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, CamelContract, Digest
from casebound.contracts.bench_receipts import Readiness

Scope = Literal["casebound-entity-measurement-runtime/v2"]
TREE_SCOPE: Scope = "casebound-entity-measurement-runtime/v2"


class Tree(CamelContract):
    """A set of files: the digest over their paths and bytes, how many there are, and their bytes together."""

    digest: Digest
    files: int
    bytes: int


class InstalledTree(CamelContract):
    """An installed distribution: its version, and the tree of its files."""

    distribution: str
    version: str
    tree: Tree


class Declaration(CamelContract):
    """What declares dependencies: the metadata of a distribution, or the constraints file. Raw bytes are digested."""

    name: str
    digest: Digest


class Language(CamelContract):
    """The interpreter that measures.

    Attributes:
        implementation: `cpython` …
        version: `3.11.7`.
        executable: of the program that runs, links resolved.
        library: of the shared library that holds the interpreter, where it is apart from the program; else None.
    """

    implementation: str
    version: str
    executable: Digest
    library: Digest | None


class GovernedPrompt(CamelContract):
    """The subject: one version of one stage's prompt.

    Attributes:
        system: of the system text's raw UTF-8.
        response_schema: of the schema's canonical JSON.
    """

    stage: str
    version: int
    prompt_id: str
    system: Digest
    response_contract: str | None
    response_schema: Digest


class MeasurementIdentity(CamelContract, Artifact):
    """Everything that is bound, part by part.

    Attributes:
        benchmark: its name.
        measurement_version, corpus_version, guide_version, checker_version, capture_format: of the benchmark's own
            contracts.
        scope: what the tree digests cover.
        corpus: of the raw bytes.
        guides: language → of the raw bytes.
        checker: modules of the benchmark's package and of the measurement kit, with what they digest and judge by.
        production: the distributions that offer the subject, core first.
        validators: the libraries that validate.
        declarations: metadata of the production distributions and of the benchmark's own, and the constraints file
            where there is one; sorted by name.
    """

    format: Literal["casebound-measurement-identity/v1"] = "casebound-measurement-identity/v1"
    benchmark: str
    measurement_version: str
    corpus_version: str
    guide_version: str
    checker_version: str
    capture_format: str
    scope: Scope = TREE_SCOPE
    corpus: Digest
    guides: dict[str, Digest]
    checker: Tree
    production: tuple[InstalledTree, ...]
    validators: tuple[InstalledTree, ...]
    declarations: tuple[Declaration, ...]
    language: Language
    prompt: GovernedPrompt


class BundledFile(CamelContract):
    """A file of a bundle, by its path with `/`."""

    path: str
    bytes: int
    digest: Digest


class BundledCase(CamelContract):
    """A case as captures refer to it; `input` is the digest of the input's canonical JSON."""

    case_id: str
    split: str
    input: Digest


class BundleManifest(CamelContract, Artifact):
    """`manifest.json` of a bundle: what stands in it, and what it does not claim.

    Attributes:
        measurement_id: the digest of `identity`.
        cases: in the order of the corpus.
        readiness: as the receipts in the bundle make it.
        captures: digest of the captures that were checked when the bundle was prepared; None: no output was seen.
        files: every other file of the bundle, sorted by path.
        limitations: what this measurement does not establish, in words.
    """

    format: Literal["casebound-bench-bundle/v1"] = "casebound-bench-bundle/v1"
    benchmark: str
    measurement_id: Digest
    identity: MeasurementIdentity
    cases: tuple[BundledCase, ...]
    readiness: Readiness
    captures: Digest | None
    files: tuple[BundledFile, ...]
    limitations: tuple[str, ...]
