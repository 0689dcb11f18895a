"""What the rows of cited ids say, as `P` sources and `F` facts. Pure: captures in, facts out, no database.

Rules:
- Aliases are given in the order E alias, rule, row, column; a column may give an `F` and a `P`.
- The name column gives a typed name (`project_entity_name`), description columns a `P`, where they hold more than
  spaces; every other column that is not null a `project_field`.
- No row, no name, no rule for the type: nothing. Nearby text never binds a name.
- Rows are fetched for the first `MOST_ENTITIES` cited ids; a report that lists more (a log, a table) cites them all
  the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from casebound.canonical import digest_of
from casebound.contracts.aliases import alias
from casebound.contracts.capture import (
    Binding,
    Cell,
    EnrichmentInput,
    EntityCapture,
    Facts,
    ProjectFact,
    ProjectSource,
    QueryLimits,
)
from casebound.contracts.case import Case, CitedEntity
from casebound.errors import ContractError

MOST_ENTITIES = 200

FactKind: TypeAlias = Literal["project_entity_name", "project_field"]


def pairs_of(case: Case, rules: Sequence[EnrichmentInput]) -> list[tuple[EnrichmentInput, str]]:
    """Return which rule is to be asked for which cited id, in the order E alias, rule."""
    return [(rule, entity.canonical_id) for entity, rule in _applicable(case, rules)]


def derive_facts(
    case: Case,
    binding: Binding | None,
    rules: Sequence[EnrichmentInput],
    captures: Mapping[tuple[str, str], EntityCapture],
    limits: QueryLimits | None,
) -> Facts:
    """Return `research/facts.json`.

    Args:
        case: the built case.
        binding: the state of the database that was read, None where there is none.
        rules: frozen rules, in the order of the settings.
        captures: by name of the rule and cited id, one for each of `pairs_of`.
        limits: what bounded the queries.

    Raises:
        ContractError: a capture is missing.
    """
    sources: list[ProjectSource] = []
    facts: list[ProjectFact] = []
    digests: dict[str, None] = {}
    for entity, rule in _applicable(case, rules):
        capture = captures.get((rule.name, entity.canonical_id))
        if capture is None:
            raise ContractError(
                "CONTRACT_BROKEN", where="enrichment", found=f"no capture of {rule.name} for {entity.canonical_id}"
            )
        digest = digest_of(capture.to_bytes())
        digests[digest] = None
        for value in _values(capture):
            if value.is_description:
                sources.append(_source(value, entity, rule, digest, len(sources) + 1))
            if value.fact_kind is not None:
                facts.append(_fact(value, value.fact_kind, entity, rule, digest, len(facts) + 1))
    return Facts(
        case_digest=digest_of(case.to_bytes()),
        binding=binding,
        rules=tuple(rules),
        limits=limits,
        captures=tuple(digests),
        sources=tuple(sources),
        facts=tuple(facts),
    )


def _applicable(case: Case, rules: Sequence[EnrichmentInput]) -> Iterator[tuple[CitedEntity, EnrichmentInput]]:
    for entity in case.entities[:MOST_ENTITIES]:
        for rule in rules:
            if rule.entity_type == entity.type:
                yield entity, rule


@dataclass(frozen=True, slots=True)
class _Value:
    column: str
    text: str
    pointer: str
    id_pointer: str
    is_description: bool
    fact_kind: FactKind | None


def _values(capture: EntityCapture) -> Iterator[_Value]:
    rule = capture.rule
    id_index = capture.columns.index(rule.column)
    for row_index, row in enumerate(capture.rows):
        for column_index, (column, cell) in enumerate(zip(capture.columns, row, strict=True)):
            if cell is None:
                continue
            text = cell if isinstance(cell, str) else cell.v
            is_description = column in rule.description_columns and isinstance(cell, str)
            yield _Value(
                column=column,
                text=text,
                pointer=f"/rows/{row_index}/{column_index}",
                id_pointer=f"/rows/{row_index}/{id_index}",
                is_description=is_description and bool(text.strip()),
                fact_kind=_fact_kind(rule, column, cell, is_description),
            )


def _fact_kind(rule: EnrichmentInput, column: str, cell: Cell, is_description: bool) -> FactKind | None:
    if column == rule.name_column:
        return "project_entity_name" if isinstance(cell, str) and cell.strip() else None
    return None if is_description else "project_field"


def _source(value: _Value, entity: CitedEntity, rule: EnrichmentInput, digest: str, number: int) -> ProjectSource:
    return ProjectSource(
        id=alias("P", number),
        entity=entity.id,
        rule=rule.name,
        column=value.column,
        text=value.text,
        capture=digest,
        pointer=value.pointer,
    )


def _fact(
    value: _Value, kind: FactKind, entity: CitedEntity, rule: EnrichmentInput, digest: str, number: int
) -> ProjectFact:
    return ProjectFact(
        id=alias("F", number),
        kind=kind,
        entity=entity.id,
        type=entity.type,
        entity_id=entity.canonical_id,
        rule=rule.name,
        column=value.column,
        value=value.text,
        capture=digest,
        id_pointer=value.id_pointer,
        pointer=value.pointer,
    )
