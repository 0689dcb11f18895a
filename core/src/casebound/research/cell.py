"""Database values as capture cells, and the order of rows: the same on every database.

Rules:
- An id and a name are text. Any other value is null, text, or a `TypedCell`; a float becomes the shortest decimal
  text that reads back as the same float, bytes become hexadecimal digits, a time its ISO 8601 form.
- NaN, Infinity, a lone surrogate, a name with NUL, and types that have no such form are refused with table and
  column.
- Two ids of ASCII digits are ordered as numbers, before all other ids, which are ordered by code point.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

from casebound.contracts.capture import Cell, TypedCell
from casebound.errors import ResearchError
from casebound.research.fold import refused_character

IdOrder: TypeAlias = tuple[int, int, str]
_LONGEST_NUMBER = 40


def text_of(value: object, place: str) -> str:
    """Return an id or a name as text; `place` is its table and column, for the error.

    Raises:
        ResearchError: the value has no text form, or holds NUL or a lone surrogate.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            raise _refusal(place, "bytes that are not UTF-8 text") from None
    elif isinstance(value, str):
        text = value
    else:
        cell = to_cell(value, place)
        text = cell.v if isinstance(cell, TypedCell) else str(cell)
    sign = refused_character(text)
    if sign is not None:
        raise _refusal(place, f"a text with the character {sign}")
    return text


def to_cell(value: object, place: str) -> Cell:
    """Return a database value as a cell of a capture; `place` is its table and column, for the error.

    Raises:
        ResearchError: the value cannot be recorded.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if any("\ud800" <= sign <= "\udfff" for sign in value):
            raise _refusal(place, f"a text with the character {refused_character(value.replace(chr(0), ''))}")
        return value
    if isinstance(value, int):
        return TypedCell(t="int", v=str(int(value)))
    if isinstance(value, float | Decimal):
        return _decimal_cell(value, place)
    if isinstance(value, bytes | bytearray | memoryview):
        return TypedCell(t="bytes", v=bytes(value).hex())
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return TypedCell(t="time", v=value.isoformat())
    if isinstance(value, dt.timedelta):
        return TypedCell(t="time", v=str(value))
    if isinstance(value, UUID):
        return str(value)
    raise _refusal(place, f"a value of type {type(value).__name__}")


def _decimal_cell(value: float | Decimal, place: str) -> Cell:
    if not math.isfinite(value):
        raise _refusal(place, "a number that is not finite")
    return TypedCell(t="dec", v=repr(value) if isinstance(value, float) else format(value, "f"))


def _refusal(place: str, found: str) -> ResearchError:
    return ResearchError(
        "RESEARCH_UNAVAILABLE",
        where=place,
        found=found,
        hint="correct the row, or do not select the column; then `casebound resume CASE`",
    )


def id_order(entity_id: str) -> IdOrder:
    """Return the sort key of an id: numbers first, by value; then code points."""
    if entity_id.isascii() and entity_id.isdigit() and len(entity_id) <= _LONGEST_NUMBER:
        return (0, int(entity_id), entity_id)
    return (1, 0, entity_id)


def row_order(row: Sequence[Cell]) -> tuple[tuple[IdOrder, str], ...]:
    """Return the sort key of a whole row, cell by cell: null first, then as ids are ordered."""
    return tuple(_cell_order(cell) for cell in row)


def _cell_order(cell: Cell) -> tuple[IdOrder, str]:
    if cell is None:
        return (-1, 0, ""), ""
    if isinstance(cell, str):
        return id_order(cell), ""
    return id_order(cell.v), cell.t


def size_of(row: Sequence[object]) -> int:
    """Return about how many bytes the row had on its way: text as UTF-8, every other value as eight bytes."""
    size = 0
    for value in row:
        if isinstance(value, str):
            size += len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | bytearray):
            size += len(value)
        else:
            size += 8
    return size
