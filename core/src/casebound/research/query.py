"""The only two SELECTs: the literal look-up, and the rows of a typed id.

Rules:
- One table, explicit columns, bound values; no aggregate, no join, no text of a model in a statement.
- Both only narrow down: they may return rows too many and never too few. Python decides, ranks and cuts, so that the
  answer is the same on every database. For that reason there is no ORDER BY; where a limit on what is read cuts the
  answer off, the capture says so.
- Names are compared under a fixed collation that ignores ASCII case, whatever the table's own: SQLite's LIKE does so
  by itself, MariaDB gets `utf8mb4_general_ci`, PostgreSQL `ILIKE` under `"C"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    MetaData,
    Select,
    String,
    Table,
    Text,
    bindparam,
    cast,
    collate,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.types import NullType

from casebound.contracts.capture import CatalogInput, EnrichmentInput

ColumnKind: TypeAlias = Literal["integer", "text", "other"]

_MOST_BIGINT = 2**63 - 1
_SHAPES = 256  # of queries that are kept: building and compiling one takes SQLAlchemy longer than SQLite to answer it


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, which all queries of its shape share, and the values of this one by the names of their places."""

    select: Select[tuple[object, ...]]
    values: Mapping[str, object]


def look_up_query(catalog: CatalogInput, pattern: str, kind: ColumnKind, most_rows: int, dialect: str) -> Query:
    """Return the look-up: rows whose name fits the LIKE `pattern`.

    Args:
        catalog: where to look.
        pattern: from `casebound.research.fold.prefilter_pattern`.
        kind: what the name column holds.
        most_rows: rows that the database may send.
        dialect: `sqlite`, `mysql` or `postgresql`.
    """
    select = _look_up_select(catalog.table, catalog.columns, catalog.name_column, kind, most_rows, dialect)
    return Query(select, {"pattern": pattern})


@lru_cache(maxsize=_SHAPES)
def _look_up_select(
    table_name: str, columns: tuple[str, ...], name_column: str, kind: ColumnKind, most_rows: int, dialect: str
) -> Select[tuple[object, ...]]:
    table = _table(table_name, (*columns, name_column))
    fits = _fits(table.c[name_column], bindparam("pattern", type_=String), kind, dialect)
    return _selected(table, columns).where(fits).limit(most_rows)


def _fits(
    name: ColumnElement[object], pattern: ColumnElement[str], kind: ColumnKind, dialect: str
) -> ColumnElement[bool]:
    if dialect == "mysql":
        # The conversion serves columns of older tables (utf8mb3, latin1), which the collation would refuse.
        converted = func.convert(name.op("USING")(literal_column("utf8mb4")))
        return collate(converted, "utf8mb4_general_ci").like(pattern)
    if dialect == "postgresql":
        return collate(name if kind == "text" else cast(name, Text), "C").ilike(pattern)
    # SQLite's LIKE ends at a NUL; a name that holds one must be seen, for it is refused.
    return or_(name.like(pattern), func.instr(name, func.char(literal_column("0"))) > literal_column("0"))


def entity_query(rule: EnrichmentInput, entity_id: str, kind: ColumnKind, most_rows: int) -> Query:
    """Return the rows whose id column equals `entity_id`, and perhaps some that only the database takes for equal.

    A canonical number is compared with an integer column as a number, so that an index serves; everything else as text.

    Args:
        rule: where to look.
        entity_id: the id as the report cites it.
        kind: what the id column holds.
        most_rows: rows that the database may send.
    """
    as_number = kind == "integer" and _is_canonical_number(entity_id)
    select = _entity_select(rule.table, rule.columns, rule.column, kind, as_number, most_rows)
    return Query(select, {"id": int(entity_id) if as_number else entity_id})


@lru_cache(maxsize=_SHAPES)
def _entity_select(
    table_name: str, columns: tuple[str, ...], id_column: str, kind: ColumnKind, as_number: bool, most_rows: int
) -> Select[tuple[object, ...]]:
    table = _table(table_name, (*columns, id_column))
    column = table.c[id_column]
    if as_number:
        same = column == bindparam("id", type_=BigInteger)
    else:
        same = (column if kind == "text" else cast(column, Text)) == bindparam("id", type_=String)
    return _selected(table, columns).where(same).limit(most_rows)


def _is_canonical_number(text: str) -> bool:
    return (
        text.isascii() and text.isdigit() and len(text) <= 19 and str(int(text)) == text and int(text) <= _MOST_BIGINT
    )


def _table(name: str, columns: tuple[str, ...]) -> Table:
    # No types: the driver's own values come through, and cells are made of them in one place.
    return Table(name, MetaData(), *(Column(column, NullType()) for column in dict.fromkeys(columns)))


def _selected(table: Table, columns: Sequence[str]) -> Select[tuple[object, ...]]:
    return select(*(table.c[column] for column in columns))


def rendered(query: Query, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """Return the statement exactly as it is sent, and its bound values as text, in the order of their places."""
    statement, names, fixed = _compiled(query.select, dialect)
    values = {**fixed, **query.values}
    return statement, tuple(str(values[name]) for name in names)


@lru_cache(maxsize=_SHAPES)
def _compiled(
    select: Select[tuple[object, ...]], dialect: Dialect
) -> tuple[str, tuple[str, ...], Mapping[str, object]]:
    """Return the statement, the names of its places in order, and the values that belong to its shape."""
    compiled = select.compile(dialect=dialect)
    # A server-side compiler names no positions; there the values stand in the order in which they were met.
    names = getattr(compiled, "positiontup", None) or list(compiled.params)
    return str(compiled), tuple(names), compiled.params
