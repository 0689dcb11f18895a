"""What a look-up capture promises about its own rows, so that a forged or damaged one contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator

from casebound.contracts.capture import Capture
from casebound.research.cell import id_order, row_order
from casebound.research.flags import derive_flags
from casebound.research.fold import fold


def contradictions(capture: Capture) -> list[str]:
    """Return the JSON pointers of everything in a capture that its rule, its order or its limits do not allow."""
    return list(_contradictions(capture))


def _contradictions(capture: Capture) -> Iterator[str]:
    catalog, needle = capture.catalog, fold(capture.term)
    if capture.columns != catalog.columns:
        yield "/columns"
        return
    id_place, name_place = capture.columns.index(catalog.id_column), capture.columns.index(catalog.name_column)
    before = None
    for number, row in enumerate(capture.rows):
        place = f"/rows/{number}"
        if len(row) != len(capture.columns):
            yield place
            return
        name, identity = row[name_place], row[id_place]
        if not isinstance(name, str) or not isinstance(identity, str) or needle not in fold(name):
            yield place
            return
        rank = (fold(name) != needle, len(name), name, id_order(identity), row_order(row))
        if before is not None and rank < before:
            yield place
        before = rank
    most = capture.limits.max_candidates
    if len(capture.rows) != min(capture.matched, most):
        yield "/matched"
    if capture.truncated != (capture.limit_met is not None):
        yield "/truncated"
    if (capture.matched > most) and capture.limit_met is None:
        yield "/limit_met"
    if capture.flags != derive_flags(("/term", capture.term), capture.rows):
        yield "/flags"
