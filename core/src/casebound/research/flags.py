"""Warnings in a capture about characters that its reader cannot see or would take for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casebound.contracts.capture import Cell, Flag
from casebound.text import peculiar_characters


def derive_flags(asked: tuple[str, str], rows: Sequence[Sequence[Cell]]) -> tuple[Flag, ...]:
    """Return one flag a place, the asked text first, then cell by cell.

    Args:
        asked: JSON pointer and text of what was asked (`("/term", "…")`).
        rows: the kept rows of the capture.
    """
    return tuple(
        Flag(place=place, characters=characters)
        for place, text in _texts(asked, rows)
        if (characters := peculiar_characters(text))
    )


def _texts(asked: tuple[str, str], rows: Sequence[Sequence[Cell]]) -> Iterator[tuple[str, str]]:
    yield asked
    for row_index, row in enumerate(rows):
        for column_index, cell in enumerate(row):
            if isinstance(cell, str):
                yield f"/rows/{row_index}/{column_index}", cell
