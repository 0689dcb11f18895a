"""Which of the rows that a database sends match, and which of them are kept. No database in here.

The order of kept rows depends on nothing but the rows: exact match, then shorter name, then name, then id, then the
whole row. Memory holds the kept rows only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from operator import itemgetter
from typing import Literal, TypeAlias

from casebound.contracts.capture import CatalogInput, Cell, EnrichmentInput
from casebound.research.cell import IdOrder, id_order, row_order, size_of, text_of, to_cell
from casebound.research.fold import fold

LimitMet: TypeAlias = Literal["max_candidates", "scan_rows", "max_bytes"] | None
Row: TypeAlias = tuple[Cell, ...]


class Scan:
    """The rows of one query, up to the limits on what may be read.

    Attributes:
        limit_met: which limit ended the rows; None while none has.
    """

    def __init__(self, rows: Iterable[Sequence[object]], *, scan_rows: int, max_bytes: int) -> None:
        self.limit_met: Literal["scan_rows", "max_bytes"] | None = None
        self._rows = rows
        self._scan_rows = scan_rows
        self._max_bytes = max_bytes

    def __iter__(self) -> Iterator[Sequence[object]]:
        size = 0
        for number, row in enumerate(self._rows, start=1):
            size += size_of(row)
            if number > self._scan_rows:
                self.limit_met = "scan_rows"
                return
            if size > self._max_bytes:
                self.limit_met = "max_bytes"
                return
            yield row


class Matching:
    """One literal look-up.

    Attributes:
        count: how many of the rows read so far match. A row without name or id, or whose id is empty, is
            no entity and never does.
    """

    def __init__(self, catalog: CatalogInput, term: str) -> None:
        self.count = 0
        self._needle = fold(term)
        self._cells = _Cells(catalog.table, catalog.columns, (catalog.id_column, catalog.name_column))
        self._id = catalog.columns.index(catalog.id_column)
        self._name = catalog.columns.index(catalog.name_column)

    def best(self, rows: Iterable[Sequence[object]], most: int) -> tuple[Row, ...]:
        """Return at most `most` of the matching rows, the best first.

        Raises:
            ResearchError: a matching row cannot be recorded; see `casebound.research.cell`.
        """
        return tuple(self._cells.of(row) for _, row in nsmallest(most, self._ranked(rows), key=itemgetter(0)))

    def _ranked(self, rows: Iterable[Sequence[object]]) -> Iterator[tuple[_Rank, Sequence[object]]]:
        for row in rows:
            name, entity_id = row[self._name], row[self._id]
            if name is None or entity_id is None:
                continue
            text = name if isinstance(name, str) else self._cells.text(self._name, name)
            folded = fold(text)
            if self._needle in folded:
                identity = self._cells.text(self._id, entity_id)
                if not identity:
                    continue
                self._cells.text(self._name, text, of_id=identity)
                self.count += 1
                yield (folded != self._needle, len(text), text, id_order(identity), _Rest(self._cells, row)), row


_Rank: TypeAlias = "tuple[bool, int, str, IdOrder, _Rest]"


class _Rest:
    """The whole row as the last part of a rank, made only where all before it is equal."""

    __slots__ = ("_cells", "_row")

    def __init__(self, cells: _Cells, row: Sequence[object]) -> None:
        self._cells = cells
        self._row = row

    def __lt__(self, other: _Rest) -> bool:
        return row_order(self._cells.of(self._row)) < row_order(self._cells.of(other._row))


class _Cells:
    def __init__(self, table: str, columns: Sequence[str], texts: Sequence[str]) -> None:
        self._places = [f"table {table}, column {column}" for column in columns]
        self._is_text = [column in texts for column in columns]

    def text(self, index: int, value: object, of_id: str | None = None) -> str:
        return text_of(value, self._places[index] if of_id is None else f"{self._places[index]}, id {of_id}")

    def of(self, row: Sequence[object]) -> Row:
        return tuple(
            text_of(value, place) if is_text and value is not None else to_cell(value, place)
            for value, place, is_text in zip(row, self._places, self._is_text, strict=True)
        )


def rows_of_entity(
    rule: EnrichmentInput, entity_id: str, rows: Iterable[Sequence[object]], most: int
) -> tuple[Row, ...]:
    """Return at most `most` of the rows whose id is exactly `entity_id`, in the order of all their columns.

    Raises:
        ResearchError: such a row cannot be recorded; see `casebound.research.cell`.
    """
    cells = _Cells(rule.table, rule.columns, (rule.column, *((rule.name_column,) if rule.name_column else ())))
    column = rule.columns.index(rule.column)
    same = (cells.of(row) for row in rows if row[column] is not None and cells.text(column, row[column]) == entity_id)
    return tuple(nsmallest(most, same, key=row_order))
