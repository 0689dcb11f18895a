"""A capture: one executed query and all that came back.

It holds no time and no search number, so that equal queries share one file.
"""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, Contract, Digest


class TypedCell(Contract):
    """A value that JSON has no exact form for: `v` is its text."""

    t: Literal["int", "dec", "bytes", "time"]
    v: str


Cell = None | str | TypedCell


class Binding(Contract):
    """Which state of which database was read.

    Attributes:
        dialect: `sqlite`, `mysql` (MariaDB too), `postgresql` …
        database: the database's name; of a SQLite file its name without the folder.
        snapshot_id: the operator's name for this state.
        file_digest: of a SQLite file, else None.
    """

    dialect: str
    database: str
    snapshot_id: str
    file_digest: Digest | None = None


class CatalogInput(Contract):
    """A catalog as it was frozen: columns are those that the table really has."""

    name: str
    entity_type: str
    table: str
    id_column: str
    name_column: str
    columns: tuple[str, ...]
    locale_column: str | None = None


class EnrichmentInput(Contract):
    """An enrichment rule as it was frozen: columns are those that the table really has."""

    name: str
    entity_type: str
    table: str
    column: str
    columns: tuple[str, ...]
    name_column: str | None = None
    description_columns: tuple[str, ...] = ()


class QueryLimits(Contract):
    """What bounded the query: kept rows, rows read, bytes read, seconds."""

    max_candidates: int
    scan_rows: int
    max_bytes: int
    statement_timeout_s: int


class Flag(Contract):
    """An invisible or look-alike character in a name or term, so that a reader of the capture is warned.

    Attributes:
        place: JSON pointer inside the capture (`/term`, `/rows/0/1`).
        characters: the code points (`U+200B`), in order, each once.
    """

    place: str
    characters: tuple[str, ...]


class Capture(Artifact):
    """`captures/sha256-….json` of a look-up.

    Attributes:
        rule: what a match means.
        statement: the SELECT as executed, with placeholders; parameters are bound values.
        columns: of `rows`, in order.
        rows: kept rows, ranked: exact match, then shorter name, then name, then id.
        matched: how many rows matched among those read.
        truncated: more matches than kept, or a limit was met: what was not read may match too.
        limit_met: which limit cut the look-up off, None where none did.
        scope: the fixed sentence that says what a miss means.
    """

    format: Literal["casebound-capture/v1"] = "casebound-capture/v1"
    kind: Literal["lookup"] = "lookup"
    rule: Literal["literal_contains/1"] = "literal_contains/1"
    catalog: CatalogInput
    term: str
    statement: str
    parameters: tuple[str, ...]
    binding: Binding
    limits: QueryLimits
    order: Literal["exact,length,name,id"] = "exact,length,name,id"
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    matched: int
    truncated: bool
    limit_met: Literal["max_candidates", "scan_rows", "max_bytes"] | None
    scope: str
    flags: tuple[Flag, ...] = ()


class EntityCapture(Artifact):
    """`research/captures/sha256-….json`: the rows of one typed id that a report cites."""

    format: Literal["casebound-entity-capture/v1"] = "casebound-entity-capture/v1"
    kind: Literal["entity"] = "entity"
    rule: EnrichmentInput
    entity_id: str
    statement: str
    parameters: tuple[str, ...]
    binding: Binding
    limits: QueryLimits
    order: Literal["all_columns"] = "all_columns"
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool
    scope: str
    flags: tuple[Flag, ...] = ()


class ProjectSource(Contract):
    """A `P` alias: text that the database holds about a cited entity.

    Attributes:
        capture: digest of the entity capture; `pointer` names the cell inside it.
    """

    id: str
    kind: Literal["project_description"] = "project_description"
    entity: str
    rule: str
    column: str
    text: str
    capture: Digest
    pointer: str


class ProjectFact(Contract):
    """An `F` alias of enrichment.

    Attributes:
        kind: `project_entity_name` (a typed name binding) or `project_field` (any other non-null column).
        entity: the `E` alias it was fetched for; `type` and `entity_id` repeat what it says.
        column: the column of the value.
        value: the cell as text, exactly.
        id_pointer: JSON pointer of the id cell inside the capture; `pointer` is that of the value.
    """

    id: str
    kind: Literal["project_entity_name", "project_field"]
    entity: str
    type: str
    entity_id: str
    rule: str
    column: str
    value: str
    capture: Digest
    id_pointer: str
    pointer: str


class Facts(Artifact):
    """`research/facts.json`: what the database holds about the typed ids that the report cites."""

    format: Literal["casebound-facts/v1"] = "casebound-facts/v1"
    case_digest: Digest
    binding: Binding | None
    rules: tuple[EnrichmentInput, ...]
    limits: QueryLimits | None
    captures: tuple[Digest, ...]
    sources: tuple[ProjectSource, ...]
    facts: tuple[ProjectFact, ...]
