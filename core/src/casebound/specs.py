"""What a plugin offers, as frozen values: no pydantic, nothing heavy, classes named as strings.

A hook returns these; the host checks and indexes them by name. A class is named as `"package.module:Class"`, so that
listing plugins imports no vendor's code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from casebound.contracts.findings import Finding
    from casebound.contracts.model_call import Prompt

CORE_STAGES = ("plan", "assessment", "interpretation")
STAGES = (*CORE_STAGES, "entity_link")
CORE_ROLES = ("affected_subject", "participant", "contributor", "location", "context")


# --- catalogs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where names of one entity type are looked up: one table, chosen by an operator or a preset, never by a model.

    Attributes:
        name: `plugin.thing`, as settings and plans name it.
        entity_type: the type of every row (`host`, `service` …).
        table: the one table that is read; it must be in the operator's allowlist.
        id_column: holds the identity.
        name_column: holds the name that is searched.
        columns: what is returned, id and name among them. A preset may list columns that some schemas lack.
        locale_column: holds the locale of the name, where rows carry one.
        preset: True drops columns that the table does not have; an operator's own catalog must be exact.
    """

    name: str
    entity_type: str
    table: str
    id_column: str
    name_column: str
    columns: tuple[str, ...]
    locale_column: str | None = None
    preset: bool = False


@dataclass(frozen=True, slots=True)
class EnrichmentRule:
    """Which rows to fetch for a typed id that a report cites, and what their columns mean.

    Attributes:
        name: `plugin.thing`; an operator's own rule is named by its place in the settings.
        entity_type: for which cited ids the rule runs.
        table: the one table that is read.
        column: the id column; rows are those where it equals the cited id.
        columns: what is returned, id and name columns among them.
        name_column: yields typed `project_entity_name` facts.
        description_columns: nonempty text becomes a readable `P` source.
        preset: True drops columns that the table does not have.
    """

    name: str
    entity_type: str
    table: str
    column: str
    columns: tuple[str, ...]
    name_column: str | None = None
    description_columns: tuple[str, ...] = ()
    preset: bool = False


@dataclass(frozen=True, slots=True)
class ReferencePattern:
    """How reports write a typed id of one entity type.

    Attributes:
        name: `plugin.thing`, frozen in `build.json`.
        entity_type: the type of the ids it finds.
        pattern: a regular expression of Python's `re` with exactly one group named `id`.
        ignore_case: whether letters match in either case.
    """

    name: str
    entity_type: str
    pattern: str
    ignore_case: bool = True

    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern. Raises `re.error` for a broken one."""
        return re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)


@dataclass(frozen=True, slots=True)
class CatalogOffer:
    """All that one domain offers: catalogs, how reports cite its ids, what to fetch for them, its roles.

    Attributes:
        catalogs: presets, inactive unless settings name them.
        references: patterns for typed ids; always active.
        enrichments: presets, inactive unless settings name them.
        roles: contextual roles beside the core ones.
        headings: heading text (any case) → source kind, beside the built-in table.
        settings_text: the `casebound.toml` that `init` writes where this domain is installed; None: none.
    """

    catalogs: tuple[Catalog, ...] = ()
    references: tuple[ReferencePattern, ...] = ()
    enrichments: tuple[EnrichmentRule, ...] = ()
    roles: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    settings_text: str | None = None


# --- providers and rules --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A model provider.

    Attributes:
        name: as `[llm] provider` names it; its settings table is `[llm.NAME]`.
        settings: `"pkg.mod:Model"`, a frozen pydantic model with `extra="forbid"`.
        factory: `"pkg.mod:Provider"`, called with the validated settings (and, for `resolver = "rules"`, with the
            installed `RuleSet`s by stage as the second argument). Returns a `casebound.llm.provider.Provider`.
        resolver: `model`, or `rules` for a deterministic provider; results say which.
        needs_model: True: settings without a `model` for it are refused before anything is written.
        program: for a provider that runs a program: `"pkg.mod:function"`, called with the validated settings; returns
            what it runs, as texts by name (version, digest of the file …). A live run of a benchmark binds them. It
            asks no model and resolves no secret.
    """

    name: str
    settings: str
    factory: str
    resolver: Literal["model", "rules"] = "model"
    needs_model: bool = False
    program: str | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Deterministic answers for one stage, used by rule-based providers.

    Attributes:
        stage: the stage it answers.
        answer: `"pkg.mod:function"`, called with the parsed user message (a dict with the reserved keys) and returning
            the reply as a dict. Pure: no clock, no randomness, no I/O.
    """

    stage: str
    answer: str


# --- protocols and validators ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleRef:
    """A validator as a protocol or a frozen input names it."""

    code: str
    revision: int


@dataclass(frozen=True, slots=True)
class PromptProtocol:
    """One version of one stage's conversation: a number and pure functions, never changed once published.

    Attributes:
        stage: `plan`, `assessment`, `interpretation`, or a stage of the plugin's own.
        version: counts from 1; from 1000 for a version that another distribution adds to a stage of core; 0 is the
            prompt of an interpretation without resolution, which no number selects.
        prompt_id: the published name of the prompt (`case_interpretation_resolved_v3`).
        context: the artifacts of the steps before (`casebound.contracts.stage_facts.StageFacts`; for a stage that a
            plugin brings itself, what that plugin freezes) → the frozen context, a JSON object.
        request: (context, feedback or None) → the prompt: system text and user object.
        response_schema: context → JSON Schema (Draft 2020-12) of the reply.
        rules: the validators that judge a reply, in order.
        feedback: (findings, context) → the feedback object that the next request carries.
        draft: True: used only where settings ask for it.
        context_policy: the published name of the context's shape, where the interpretation's artifact states one.
        response_contract: the published name of the reply's contract, where it has one.
    """

    stage: str
    version: int
    prompt_id: str
    context: Callable[[Any], dict[str, object]]  # what it takes is the stage's own
    request: Callable[[Mapping[str, object], Mapping[str, object] | None], Prompt]
    response_schema: Callable[[Mapping[str, object]], dict[str, object]]
    rules: tuple[RuleRef, ...]
    feedback: Callable[[Sequence[Finding], Mapping[str, object]], dict[str, object]]
    draft: bool = False
    context_policy: str | None = None
    response_contract: str | None = None


@dataclass(frozen=True, slots=True)
class ProtocolAlias:
    """A version that is an earlier one of its stage under a new number: a release may change one of two stages only.

    Attributes:
        stage: whose version it is.
        version: the new number, counted as `PromptProtocol.version` is.
        of: the earlier version that it stands for, by whomever it is offered.
    """

    stage: str
    version: int
    of: int


@dataclass(frozen=True, slots=True)
class Validator:
    """A versioned semantic rule: pure, and silent where the reply holds.

    Attributes:
        stage: whose replies it judges.
        code: what it reports; a row of the table of codes.
        revision: counts from 1; a change of meaning is a new revision.
        check: (reply, context) → findings. The reply has already passed the schema.
        always: True: takes part in every fresh case of its stage (validators that a plugin adds); False: only where a
            protocol names it.
    """

    stage: str
    code: str
    revision: int
    check: Callable[[Mapping[str, object], Mapping[str, object]], Sequence[Finding]]
    always: bool = False


# --- readers, phases, runners, benchmarks, demos, commands ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportReader:
    """Turns the bytes of a report into named fields.

    Attributes:
        name: as `admission.json` names it.
        suffixes: file endings with the dot, lower case.
        read: `"pkg.mod:function"`: the decoded text → `casebound.contracts.case.Report`. Same text in, same report out.
    """

    name: str
    suffixes: tuple[str, ...]
    read: str


@dataclass(frozen=True, slots=True)
class Phase:
    """Something that may follow interpretation.

    Attributes:
        name: as `--stop-after` names it.
        after: the phase it follows (`interpretation`, or another plugin's).
        run: `"pkg.mod:function"`, called with the package folder (`pathlib.Path`) of an interpreted case, whose newest
            interpretation (`analysis/interpretations/NNNN`, the largest number with a `seal.json`) it builds on. What
            it writes goes below `analysis/<name>/`, outside every seal. A run that was killed or failed is repeated,
            and a revised case is given to it again once its new interpretation is finished, so it must cope with what
            earlier runs left there; core writes `phase.json`, for a revision `phase-NNNN.json`, once it has ended well.
            It is called in a thread, and for several cases at once where a run works on several.
    """

    name: str
    after: str
    run: str


@dataclass(frozen=True, slots=True)
class Runner:
    """Where cases are executed: in this process, or wherever an engine of the operator's has room for them.

    Attributes:
        name: as `[workspace] runner` names it.
        run: `"pkg.mod:function"`: `async (jobs: AsyncIterator[casebound.workspace.runner.Job], most: int) -> None`. It
            takes a job only when there is room for it, has at most `most` of them under way, and returns once all have
            ended. Waiting for the next job may take long; where waiting or a job raises, so does it, having ended the
            others first.
    """

    name: str
    run: str


@dataclass(frozen=True, slots=True)
class Guide:
    """How people decide a reference, in one language.

    Attributes:
        language: `en`, `zh` …
        file: `"package:path/in/it.md"`, shipped with the package.
    """

    language: str
    file: str


@dataclass(frozen=True, slots=True)
class BenchmarkVersions:
    """The published names of a benchmark's formats. A new meaning is a new name; what had the old one is kept as it is.

    Attributes:
        guide: the rules of decision.
        corpus: the cases with their references.
        checker: what is counted, and over what.
        measurement: the measurement identity.
        captures: recorded outputs.
        author_review: the receipt of the corpus's author.
        independent_review: the receipt of a person who wrote no part of the corpus.
        runtime: what the digest of an installed tree covers.
    """

    guide: str
    corpus: str
    checker: str
    measurement: str
    captures: str
    author_review: str
    independent_review: str
    runtime: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A frozen benchmark of one stage's prompt: its cases, its guides, and how an answer is compared.

    Prompt, schema and admission are those of the protocol, wherever it comes from; the benchmark has none of its own.

    Attributes:
        name: as `casebound bench` names it.
        stage, protocol_version: which protocol is measured.
        corpus: `"pkg.mod:Model"`, a subclass of `casebound.contracts.benchmark.Corpus`.
        corpus_file: `"package:path/in/it.json"`: the published corpus.
        checker: `"pkg.mod:function"`: an admitted reply (a dict) → its assessment, a text. Pure.
        guides: one a language; the first is the one that binds where two differ.
        versions: the names of its formats.
        components: modules of the plugin whose bytes decide what is counted, those of `corpus` and `checker` among
            them; the kit adds its own.
    """

    name: str
    stage: str
    protocol_version: int
    corpus: str
    corpus_file: str
    checker: str
    guides: tuple[Guide, ...]
    versions: BenchmarkVersions
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Demo:
    """An embedded sample: `folder` is `"pkg.mod:function"`, called with an empty folder that it fills.

    The folder then holds `casebound.toml` and the reports that the function returns (paths, in order).
    """

    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command group that a plugin adds; `group` is `"pkg.mod:group"`, a click command."""

    name: str
    help: str
    group: str
