"""What `casebound.toml` may say: frozen, strict models, one a table. Field names are the keys of the file.

Every number has bounds, so that a slip of the finger is found before anything runs. Zero means "no limit" only where
the field says so. Money, prices and factors are decimals.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from casebound.contracts.model_call import ResponseFormat

LARGEST = 2**53 - 1
HeadingKind = Literal["observation", "expectation", "reproduction", "environment", "reference", "comment", "text"]
FallbackCode = Literal["LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE", "LLM_QUOTA", "LLM_AUTH", "LLM_REQUEST"]
FALLBACK_CODES: tuple[FallbackCode, ...] = ("LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE", "LLM_QUOTA")
UnknownCalls = Literal["retry", "hold"]

Name: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$")
]
Words: TypeAlias = Annotated[tuple[Name, ...], Field(strict=False)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=LARGEST)]


def _as_decimal(value: object) -> object:
    """TOML numbers are integers and floats; the shortest text of a float is what the operator wrote."""
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value


Amount: TypeAlias = Annotated[Decimal, BeforeValidator(_as_decimal), Field(ge=0, le=10**9)]
CapFactor: TypeAlias = Annotated[Decimal, BeforeValidator(_as_decimal), Field(ge=1, le=16)]


class Table(BaseModel):
    """A frozen table that knows every one of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Project(Table):
    """`[project]`. `plugins` pins which plugins may load (built-ins always do); None: all that are installed."""

    name: Name
    plugins: Words | None = None


class Database(Table):
    """`[database]`: where names are looked up, which tables may be read, and what bounds a look-up.

    Attributes:
        url: without a password; `url_env` names a variable instead. Exactly one of the two.
        snapshot_id: the operator's name for this state of the database.
        tables: the allowlist.
        statement_timeout_s: seconds that one statement may take.
        scan_rows: most rows that one look-up may read.
        max_bytes: most bytes that one look-up may read.
    """

    url: Annotated[str, Field(min_length=1)] | None = None
    url_env: Name | None = None
    snapshot_id: Name
    tables: Words
    statement_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    scan_rows: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1_000_000
    max_bytes: Annotated[int, Field(ge=1, le=2**40)] = 67_108_864

    @model_validator(mode="after")
    def _one_url(self) -> Database:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("exactly one of url and url_env")
        return self

    @property
    def key(self) -> str:
        """The key that says where the database is."""
        return "database.url" if self.url is not None else "database.url_env"


class Intake(Table):
    """`[intake]`: the largest report in bytes, and heading texts beside the built-in table."""

    max_bytes: Annotated[int, Field(ge=1, le=2**31)] = 8_388_608
    headings: dict[Name, HeadingKind] = {}


class OwnCatalog(Table):
    """`[[entity_resolution.catalog]]`: a catalog of the operator's own; its columns must be exact."""

    name: Name
    entity_type: Name
    table: Name
    id_column: Name
    name_column: Name
    columns: Annotated[Words, Field(min_length=1)]
    locale_column: Name | None = None


class EntityResolution(Table):
    """`[entity_resolution]`; resolution is off where the table is absent.

    Attributes:
        max_searches: most searches that a plan may propose.
        max_candidates: most rows kept of one search.
        max_invalid_responses: invalid replies after which a semantic stage stops, counted per stage.
        catalogs: presets by name.
        own: `[[entity_resolution.catalog]]`.
    """

    max_searches: Annotated[int, Field(ge=1, le=1000)] = 4
    max_candidates: Annotated[int, Field(ge=1, le=1000)] = 8
    max_invalid_responses: Annotated[int, Field(ge=1, le=100)] = 3
    catalogs: Words = ()
    own: Annotated[tuple[OwnCatalog, ...], Field(strict=False, alias="catalog")] = ()

    @model_validator(mode="after")
    def _some_catalog(self) -> EntityResolution:
        if not self.catalogs and not self.own:
            raise ValueError("at least one catalog, in catalogs or in [[entity_resolution.catalog]]")
        return self


class Interpretation(Table):
    """`[interpretation]`."""

    max_invalid_responses: Annotated[int, Field(ge=1, le=100)] = 3


class OwnEnrichment(Table):
    """`[[enrichment.entity]]`: what to fetch for a typed id that a report cites."""

    entity_type: Name
    table: Name
    column: Name
    columns: Annotated[Words, Field(min_length=1)]
    name_column: Name | None = None
    description_columns: Words = ()


class Enrichment(Table):
    """`[enrichment]`: presets by name, and the operator's own rules."""

    rules: Words = ()
    entity: Annotated[tuple[OwnEnrichment, ...], Field(strict=False)] = ()


class Protocols(Table):
    """`[protocols]`: which versions a fresh case uses; None: the newest built-in one that is not a draft."""

    resolution: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    interpretation: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class Retry(Table):
    """`[llm.retry]`: transient provider errors that a stage survives."""

    max_retries: Annotated[int, Field(ge=0, le=100)] = 2


class Price(Table):
    """`[llm.price]`: the operator's own figures, money per million tokens."""

    input: Amount
    output: Amount


ProviderTables: TypeAlias = dict[str, dict[str, Any]]


class Llm(Table):
    """`[llm]`: who answers, and within which bounds.

    Attributes:
        provider: an installed provider.
        model: None where the provider needs none.
        response_format: how far the provider enforces the reply's schema.
        timeout_s: deadline of a whole call, in seconds.
        max_output_tokens: cap of the first attempt.
        incomplete_cap_factor: how much longer the attempt after a cut reply may be.
        unknown_calls: what becomes of a call that was sent and whose reply never reached the disk.
        fallback: names of profiles, tried in turn on `fallback_codes` once retries are used up.
        stage: other choices for one stage.
        profile: named choices for `fallback`.
        provider_tables: `[llm.PROVIDER]` as read; the provider's own model validates it.
    """

    provider: Name = "offline"
    model: Name | None = None
    response_format: ResponseFormat = "json_schema"
    timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 300
    max_output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 4096
    incomplete_cap_factor: CapFactor = Decimal(2)
    unknown_calls: UnknownCalls = "retry"
    fallback: Words = ()
    fallback_codes: Annotated[tuple[FallbackCode, ...], Field(strict=False)] = FALLBACK_CODES
    retry: Retry = Retry()
    stage: dict[str, LlmChoice] = {}
    profile: dict[str, LlmProfile] = {}
    price: Price | None = None
    provider_tables: ProviderTables = {}


class LlmProfile(Table):
    """`[llm.profile.X]`: keys of somebody who may answer that differ from `[llm]`; None means "as there".

    What bounds a stage as a whole (`retry`, `unknown_calls`, `fallback`) is no profile's: its answerers share it.
    `[llm.profile.X.PROVIDER]` names its own key: that of `[llm.PROVIDER]` is not sent to what may be another server.
    """

    provider: Name | None = None
    model: Name | None = None
    response_format: ResponseFormat | None = None
    timeout_s: Annotated[int, Field(ge=1, le=86_400)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    incomplete_cap_factor: CapFactor | None = None
    price: Price | None = None
    provider_tables: ProviderTables = {}


class LlmChoice(LlmProfile):
    """`[llm.stage.X]`: keys of one stage that differ from `[llm]`; None means "as there"."""

    unknown_calls: UnknownCalls | None = None
    retry: Retry | None = None


class Limits(Table):
    """`[limits]`, per provider; 0: no limit."""

    in_flight: Annotated[int, Field(ge=1, le=4096)] = 8
    requests_per_minute: Count = 0
    tokens_per_minute: Count = 0


class Budget(Table):
    """`[budget]`: most calls, tokens and money for a run and for a case; 0: no limit."""

    run_calls: Count = 0
    run_tokens: Count = 0
    run_money: Amount = Decimal(0)
    case_calls: Count = 0
    case_tokens: Count = 0
    case_money: Amount = Decimal(0)


class WorkspaceTable(Table):
    """`[workspace]`: how many cases are worked on together.

    Attributes:
        index_url: where the index lies; None, as `index_url_env`: a SQLite file in the workspace.
        index_url_env: the variable that holds the URL.
        lease_s: for so long a case belongs to a process that has stopped telling that it lives, in seconds.
        runner: an installed runner.
    """

    index_url: str | None = None
    index_url_env: Name | None = None
    lease_s: Annotated[int, Field(ge=5, le=3600)] = 60
    runner: Name = "local"

    @model_validator(mode="after")
    def _one_index(self) -> WorkspaceTable:
        if self.index_url is not None and self.index_url_env is not None:
            raise ValueError("only one of index_url and index_url_env")
        return self

    @property
    def key(self) -> str:
        """The key that says where the index is."""
        return "workspace.index_url" if self.index_url is not None else "workspace.index_url_env"


class Settings(Table):
    """A whole settings file.

    Attributes:
        database: None where the table is absent; then nothing is looked up or fetched.
        entity_resolution: None where the table is absent: resolution is off.
    """

    project: Project
    database: Database | None = None
    intake: Intake = Intake()
    entity_resolution: EntityResolution | None = None
    interpretation: Interpretation = Interpretation()
    enrichment: Enrichment = Enrichment()
    protocols: Protocols = Protocols()
    llm: Llm = Llm()
    limits: Limits = Limits()
    budget: Budget = Budget()
    workspace: WorkspaceTable = WorkspaceTable()

    _path: Path = PrivateAttr(default=Path())
    _llm_path: Path | None = PrivateAttr(default=None)

    @property
    def path(self) -> Path:
        """The settings file; relative database files start at its folder."""
        return self._path

    @property
    def llm_path(self) -> Path:
        """The file whose `[llm]` table holds: the one given with --llm-config, else the settings file."""
        return self._llm_path or self._path

    @model_validator(mode="after")
    def _needs_a_database(self) -> Settings:
        if self.database is None and (self.entity_resolution or self.enrichment.rules or self.enrichment.entity):
            raise ValueError("a [database] table, because entities are to be resolved or enriched")
        return self
