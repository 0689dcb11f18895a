"""What a command that works on one case tells the index of many, where the workspace has one.

The lock of the package already keeps others away from it. The lease tells a run not to try; the row tells it afterwards
what has become of the case. So an index that fails never keeps a case from going on: somebody is told, that is all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from casebound.clock import Clock
from casebound.errors import CaseboundError, UnavailableError
from casebound.settings import Settings
from casebound.store import Package, Workspace
from casebound.workspace.lease import new_owner
from casebound.workspace.place import is_used
from casebound.workspace.row import derive_row

if TYPE_CHECKING:
    from casebound.workspace.index import Index

T = TypeVar("T")
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
    _owner: str = field(default_factory=new_owner)
    _index: Index | None = None
    _failed: bool = False

    @contextmanager
    def at_work(self, package: Package) -> Iterator[None]:
        """Lease the case for the block, and write its row at the end. The caller holds the package.

        Raises:
            UnavailableError: a run has leased the case (`CASE_BUSY`).
        """
        with self._leased(package):
            try:
                yield
            finally:
                self._tell_index(lambda index: index.release(self._owner, derive_row(package, self.phases)))

    def close(self) -> None:
        """Let go of the index."""
        if self._index is not None:
            self._index.close()
            self._index = None

    @contextmanager
    def _leased(self, package: Package) -> Iterator[None]:
        held = self._tell_index(lambda index: index.hold(self._owner, derive_row(package, self.phases)))
        if held is False:
            raise UnavailableError("CASE_BUSY", path=str(package.root), found="a run that has leased it")
        over = threading.Event()
        thread = threading.Thread(target=self._renew_until, args=(over,), daemon=True)
        if held:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if held:
                thread.join()

    def _renew_until(self, over: threading.Event) -> None:
        while not over.wait(self.settings.workspace.lease_s / _RENEWALS_A_LEASE):
            self._tell_index(lambda index: index.renew(self._owner))

    def _tell_index(self, what: Callable[[Index], T]) -> T | None:
        """Return what an index answers; None where there is none, or it fails, which it does once."""
        try:
            index = None if self._failed else self._open()
            return None if index is None else what(index)
        except CaseboundError as exc:
            self._failed = True
            self.tell(str(exc))
            return None

    def _open(self) -> Index | None:
        if self._index is None and is_used(self.workspace, self.settings):
            from casebound.workspace.index import Index  # only now: it brings SQLAlchemy

            self._index = Index.open(self.workspace, self.settings, self.clock)
        return self._index
