"""What a runner gets: jobs, each of which is one case to be taken as far as it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Job:
    """One case that may go on, and is leased to this run until the job has ended.

    Attributes:
        package_id: of the case.
        here: does the work in this process; it records what becomes of the case and raises only to end the run.
        command: program and arguments that do the work in another process, which reaches the same workspace. Its exit
            status is that of the case, and no runner's business: what became of the case stands in the workspace.
    """

    package_id: str
    here: Callable[[], Awaitable[None]]
    command: tuple[str, ...]


RunJobs: TypeAlias = Callable[[AsyncIterator[Job], int], Awaitable[None]]
