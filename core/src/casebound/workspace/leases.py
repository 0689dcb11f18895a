"""The leases of one run: taken, renewed and given back in a thread, so that no event loop waits for the index.

Rules:
- The thread is the index's alone, and asks one thing after the other: look-ups that are slow hold up no lease.
- What ends in the same turn of the loop, or while rows are being written, is written in one transaction.
- No lease outlives its run, however that ends; a case that it leaves is given back as its files are then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TypeVar

from casebound.blocking import Blocking
from casebound.clock import Clock, parse_time
from casebound.errors import CaseboundError, IntegrityError
from casebound.gate import INTERRUPTED, Gate
from casebound.workspace.index import Index
from casebound.workspace.row import CaseRow
from casebound.workspace.selection import Selection

T = TypeVar("T")


class Leases:
    """What one run has leased.

    Args:
        index: of the workspace.
        owner: who leases, and the name of the run: no other has it.
        lease_s: how long a lease lasts that nobody renews, in seconds.
        derive: a package's id → its row, as its files are now; raises a `CaseboundError` where nobody can look.
        lent: the leases are another run's: they are neither renewed nor given back here.
    """

    def __init__(
        self, index: Index, owner: str, *, lease_s: int, derive: Callable[[str], CaseRow], lent: bool = False
    ) -> None:
        self.owner = owner
        self._index = index
        self._lease_s = lease_s
        self._derive = derive
        self._lent = lent
        self._ended: list[tuple[CaseRow, str | None]] = []
        self._writing = asyncio.Lock()
        self._thread = Blocking(1, "casebound-index")

    @asynccontextmanager
    async def kept(self, clock: Clock, gate: Gate) -> AsyncIterator[None]:
        """Renew the leases as long as the block lasts, and give back what it leaves, for the reason of the gate.

        Raises:
            CaseboundError: they could not be given back; they end by themselves then.
        """
        renewing = asyncio.ensure_future(self._renew(clock))
        try:
            yield
        finally:
            renewing.cancel()
            try:
                await asyncio.shield(asyncio.ensure_future(self._give_back(gate.reason or INTERRUPTED)))
            finally:
                self._thread.close()

    async def claim(self, most: int, selection: Selection) -> list[str]:
        """Lease cases that may go on now, at most so many. Raises as the index does."""
        return await self._ask(lambda: self._index.claim(self.owner, run=self.owner, limit=most, selection=selection))

    async def held(self) -> list[str]:
        """Return what is leased to this run. Raises as the index does."""
        return await self._ask(lambda: self._index.held(self.owner))

    async def next_due(self, selection: Selection) -> datetime | None:
        """Return when the next case may go on that waits for its time. Raises as the index does."""
        at = await self._ask(lambda: self._index.next_due(self.owner, selection))
        try:
            return None if at is None else parse_time(at)
        except ValueError as exc:  # somebody else wrote it
            raise IntegrityError("INDEX_BROKEN", where=self._index.database.place, found="a time that is none") from exc

    async def row(self, package_id: str) -> CaseRow:
        """Return the row of a case, as its files are, or as the index has it where nobody can look at them."""
        with suppress(CaseboundError):
            return self._derive(package_id)
        with suppress(CaseboundError):
            return await self._ask(lambda: self._index.get(package_id)) or CaseRow(package_id)
        return CaseRow(package_id)

    async def release(self, row: CaseRow, code: str | None) -> None:
        """Write the row of a case that ended, with the code that it was left with, and give it back.

        Raises:
            CaseboundError: as the index does; whoever writes together with others raises for all of them.
        """
        self._ended.append((row, code))
        async with self._writing:
            await asyncio.sleep(0)  # whoever ends in this turn of the loop comes along
            rows, self._ended = self._ended, []
            if rows:
                await self._ask(lambda: self._index.release_all(self.owner, rows))

    async def _ask(self, question: Callable[[], T]) -> T:
        return await self._thread.run(question, computes=self._index.database.is_file)

    async def _renew(self, clock: Clock) -> None:
        while not self._lent:
            await clock.sleep(self._lease_s / 3)
            with suppress(CaseboundError):  # the lock on each package holds nevertheless, and the next claim tells
                await self._ask(lambda: self._index.renew(self.owner))

    async def _give_back(self, reason: str) -> None:
        if self._lent:
            return
        rows = []
        for package_id in await self.held():
            with suppress(CaseboundError):
                rows.append((self._derive(package_id), reason))
        await self._ask(lambda: self._index.release_all(self.owner, rows))
        await self._ask(lambda: self._index.drop(self.owner))
