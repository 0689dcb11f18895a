"""A workspace with an index for tests, rows to put into it, and owners of leases that can be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from casebound.clock import format_time
from casebound.settings import Settings, parse_settings
from casebound.store import Workspace
from casebound.testing.faults import start_child, wait_for
from casebound.testing.scripted import FixedClock
from casebound.workspace.index import Index
from casebound.workspace.lease import new_owner
from casebound.workspace.reindex import pages
from casebound.workspace.row import CaseRow, RowState
from casebound.workspace.selection import Selection

LEASE_S = 60


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """A workspace, and where its index is.

    Attributes:
        clock: what every index that is opened here goes by.
    """

    workspace: Workspace
    settings: Settings
    clock: FixedClock = field(default_factory=FixedClock)

    @classmethod
    def write(cls, folder: Path, url: str | None = None) -> IndexPlace:
        """Make a workspace in `folder`; its index is at `url`, None: in its own file."""
        table = {"lease_s": LEASE_S} | ({} if url is None else {"index_url": url})
        settings = parse_settings({"project": {"name": "index"}, "workspace": table}, folder / "casebound.toml")
        place = cls(Workspace(folder / "workspace"), settings)
        place.workspace.prepare()
        return place

    @contextmanager
    def open(self, *rows: CaseRow) -> Iterator[Index]:
        """Open the index, with these rows added."""
        with closing(Index.open(self.workspace, self.settings, self.clock)) as index:
            index.upsert(rows)
            yield index

    def time(self, seconds: float) -> str:
        """Return the time that is `seconds` away, as a row holds it."""
        return format_time(self.clock.now() + timedelta(seconds=seconds))


class Worker:
    """A process that does nothing but live, and the owner that it is.

    Attributes:
        owner: the name under which it leases.
        lives: False once it was killed.
    """

    def __init__(self) -> None:
        self._process = start_child(signal.pause)
        self.owner = new_owner(self._process)
        self.lives = True

    def kill(self) -> None:
        """End it at once."""
        if self.lives:
            os.kill(self._process, signal.SIGKILL)
            wait_for(self._process)
            self.lives = False


def dead_owner() -> str:
    """Return the name of an owner whose process has ended."""
    worker = Worker()
    worker.kill()
    return worker.owner


def cases(number: int, state: RowState = "admitted") -> list[CaseRow]:
    """Return rows, by the order of their names; every third has the same case id."""
    return [CaseRow(f"p-{n:05}", case_id=f"c-{n % 3}", state=state) for n in range(number)]


def claim(
    index: Index, owner: str = "", *, run: str = "run", limit: int = 1000, selection: Selection | None = None
) -> list[str]:
    """Claim cases, for somebody who is alive where no owner is named."""
    return index.claim(owner or new_owner(), run=run, limit=limit, selection=selection or Selection())


def leased(index: Index) -> list[str]:
    """Return the cases that somebody works on now, by name."""
    idle = {row.package_id for page in pages(lambda after: index.idle(after=after)) for row in page}
    known = {row.package_id for page in pages(lambda after: index.rows(after=after)) for row in page}
    return sorted(known - idle)
