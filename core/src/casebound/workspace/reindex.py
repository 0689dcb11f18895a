"""The index made to agree with the packages: what changed behind its back, or all of it.

Others may work meanwhile. A row is replaced only if nobody has changed it since it was read, and one that is leased is
left to its owner, who writes what is true in the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from casebound.clock import Clock
from casebound.errors import IntegrityError, SettingsError
from casebound.settings import Settings
from casebound.store import Workspace
from casebound.workspace.index import Index
from casebound.workspace.opening import find_database
from casebound.workspace.row import CaseRow, derive_row

_TO_BE_LOOKED_AT = ("new", "broken")  # somebody may have admitted or mended them since


def reconcile(index: Index, workspace: Workspace, phases: Sequence[str]) -> None:
    """Add the packages that the index does not know, remove rows without one, and derive what may be out of date.

    Args:
        index: of the workspace.
        workspace: whose packages it tells of.
        phases: the names of what plugins put behind the interpretation.
    """
    unknown = set(workspace.package_ids())
    for page in pages(lambda after: index.rows(after=after)):
        unknown.difference_update(row.package_id for row in page)
        index.remove(row for row in page if not _stands(workspace, row))
    index.upsert(derive_row(workspace.package(package_id), phases) for package_id in sorted(unknown))
    changed = index.phases() != tuple(phases)
    _derive_again(index, workspace, phases, states=(*_TO_BE_LOOKED_AT, *(["interpreted"] if changed else [])))
    if changed:
        index.note_phases(phases)


def reindex(workspace: Workspace, settings: Settings, clock: Clock, phases: Sequence[str]) -> Index:
    """Make every row again from its package, in a new index where the one at hand cannot be used, and return it.

    Raises:
        UnavailableError: `INDEX_UNAVAILABLE`; also where a file has to be replaced that another process has open.
        SettingsError: `INDEX_NOT_OURS`: the settings name a file that was not written as an index; nobody touches it.
    """
    try:
        return _again(Index.open(workspace, settings, clock), workspace, phases)
    except IntegrityError:
        with closing(find_database(workspace, settings)) as database:
            database.replace()
    return _again(Index.open(workspace, settings, clock), workspace, phases)


def _again(index: Index, workspace: Workspace, phases: Sequence[str]) -> Index:
    try:
        _derive_again(index, workspace, phases)
        index.note_phases(phases)
        reconcile(index, workspace, phases)
    except BaseException:
        index.close()
        raise
    return index


def _derive_again(
    index: Index, workspace: Workspace, phases: Sequence[str], *, states: Sequence[str] | None = None
) -> None:
    for page in pages(lambda after: index.idle(states=states, after=after)):
        index.upsert(
            replace(derive_row(workspace.package(row.package_id), phases), changes=row.changes)
            for row in page
            if _stands(workspace, row)
        )


def _stands(workspace: Workspace, row: CaseRow) -> bool:
    """Tell whether anything stands where the package of `row` belongs; nothing does for what is no package's name."""
    try:
        return os.path.lexists(workspace.package(row.package_id).root)
    except SettingsError:  # somebody else wrote it: a database may be shared, and a name may lead anywhere
        return False


def pages(read: Callable[[str], list[CaseRow]]) -> Iterator[list[CaseRow]]:
    """Yield the pages that `read` returns, each for the package id that ended the page before; the first for none."""
    after = ""
    while page := read(after):
        yield page
        after = page[-1].package_id
