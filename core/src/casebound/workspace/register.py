"""What a command that works on one case tells the index of many, where the workspace has one.

The lock of the package already keeps others away from it. The lease tells a run not to try; the row tells it afterwards
what has become of the case. So an index that fails never keeps a case from going on: somebody is told, that is all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from casebound.clock import Clock
from casebound.errors import CaseboundError, UnavailableError
from casebound.settings import Settings
from casebound.store import Package, Workspace
from casebound.workspace.lease import new_owner
from casebound.workspace.place import is_used
from casebound.workspace.row import derive_row

if TYPE_CHECKING:
    from casebound.workspace.index import Index

_RENEWALS_A_LEASE = 3


@dataclass(slots=True)
class Register:
    """Keeps the rows of the cases that one command works on.

    Attributes:
        workspace, settings, clock: whose index it is.
        phases: the names of what plugins put behind the interpretation.
        tell: takes what the operator should know.
    """

    workspace: Workspace
    settings: Settings
    clock: Clock
    phases: tuple[str, ...]
    tell: Callable[[str], None]
    _index: Index | None = None
    _owner: str = field(default_factory=new_owner)

    @contextmanager
    def at_work(self, package: Package) -> Iterator[None]:
        """Lease the case for the block, and write its row at the end. The caller holds the package.

        Raises:
            UnavailableError: a run has leased the case (`CASE_BUSY`).
        """
        held = self._hold(package)
        try:
            with self._renewed() if held else nullcontext():
                yield
        finally:
            self._write(package)
