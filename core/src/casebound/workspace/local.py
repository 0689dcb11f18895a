"""The runner that core ships: every job is a task of this process's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from casebound.workspace.runner import Job


async def run(jobs: AsyncIterator[Job], most: int) -> None:
    """Do every job, at most `most` of them at once; see `casebound.specs.Runner`."""
    room = asyncio.Semaphore(most)
    try:
        async with asyncio.TaskGroup() as group:
            await room.acquire()
            async for job in jobs:
                group.create_task(_do(job, room))
                await room.acquire()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None  # the one that ended the others


async def _do(job: Job, room: asyncio.Semaphore) -> None:
    try:
        await job.here()
    finally:
        room.release()
