"""Runners: the one of core, and a small one for programs, which shows that the hook is enough for an engine outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from casebound.host import build_host
from casebound.processes import kill_group
from casebound.specs import Runner
from casebound.testing.conformance.runner import RunnerConformance
from casebound.workspace.runner import Job


async def run_programs(jobs: AsyncIterator[Job], most: int) -> None:
    """Run the command of every job as a process of its own, at most `most` of them at once."""
    room = asyncio.Semaphore(most)

    async def execute(job: Job) -> None:
        process = await asyncio.create_subprocess_exec(*job.command, start_new_session=True)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                kill_group(process)
                await process.wait()
            room.release()

    try:
        async with asyncio.TaskGroup() as group:
            await room.acquire()
            async for job in jobs:
                group.create_task(execute(job))
                await room.acquire()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


class TestLocal(RunnerConformance):
    @pytest.fixture
    def runner(self):
        return build_host(entry_points=[]).runners["local"]


class TestPrograms(RunnerConformance):
    uses = "command"

    @pytest.fixture
    def runner(self):
        return Runner("programs", run=f"{__name__}:run_programs")

    @pytest.fixture
    def run(self):
        return run_programs
