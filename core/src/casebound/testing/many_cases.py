"""A project of several reports that real processes work on: what they are, how a command is started, what is on disk.

The title of each report says what its case goes through: a `ModelServer` looks for these words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from casebound.contracts.model_call import ModelRequest
from casebound.host import Host
from casebound.llm.attempts import AttemptLog
from casebound.progress import Progress, begun_revisions, derive_progress
from casebound.specs import CORE_STAGES
from casebound.store import Package, Workspace
from casebound.testing.distributions import write_distribution
from casebound.testing.inventory import Inventory, settings_text, write_database
from casebound.testing.killable import Order
from casebound.testing.scripted import FixedClock
from casebound.verification import verify_package

PLUGIN = "from casebound.testing.inventory_plugin import casebound_catalogs\n"
REPORT = """\
---
id: {case}
title: {case} edge-proxy-canary is {word} during service 431
---

## Current behaviour

While service=431 was running, edge-proxy-canary stopped answering. The mail-relay was silent, and service 440 too.

## Expected behaviour

edge-proxy-canary answers within two seconds.
"""


@dataclass(slots=True)
class ManyCases:
    """The folder of the project.

    Attributes:
        folder: settings, database, reports and workspace.
        processes: every command that was started as a user would.
    """

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @classmethod
    def write(cls, folder: Path, settings: str, words: Sequence[str]) -> ManyCases:
        """Write the project into `folder`, with one report a word: cases INC-1, INC-2 … in that order."""
        folder.mkdir(parents=True)
        write_database(folder / "inventory.db")
        (folder / "casebound.toml").write_text(settings, encoding="utf-8")
        write_distribution(folder / "plugins", "casebound-inventory", PLUGIN)
        (folder / "reports").mkdir()
        for number, word in enumerate(words, 1):
            text = REPORT.format(case=f"INC-{number}", word=word)
            (folder / "reports" / f"{number:04d}.md").write_text(text, encoding="utf-8")
        return cls(folder)

    def copy(self, folder: Path) -> ManyCases:
        """Return a copy of the project as it stands."""
        return ManyCases(Path(shutil.copytree(self.folder, folder)))

    @property
    def workspace(self) -> Path:
        """The workspace."""
        return self.folder / "workspace"

    @property
    def reports(self) -> list[str]:
        """The reports, relative to the folder, in order."""
        return sorted(f"reports/{path.name}" for path in (self.folder / "reports").iterdir())

    @property
    def points(self) -> Path:
        """The points that commands passed, see `killable`."""
        return self.folder / "points"

    # --- commands ---------------------------------------------------------------------------------------------------

    def set_clock(self, ahead_s: float) -> None:
        """Let the wall clock of every command of `Commands` be so far ahead, of running ones too."""
        growing = self.folder / "clock.new"
        growing.write_text(str(ahead_s), encoding="ascii")
        growing.replace(self.folder / "clock")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command as a user would."""
        path = [str(self.folder / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, "-P", "-m", "casebound", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.processes.append(process)
        return process

    def end_all(self) -> None:
        """End every command that still runs, as after a test that failed."""
        for process in self.processes:
            process.kill()
            process.communicate()

    def run(self, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run one command to its end as a user would."""
        return ended(self.start(*arguments), timeout_s)

    def order(self, *arguments: str, ahead_s: float = 0, end_at: str | None = None) -> Order:
        """Return a command for `Commands`: its clock is `ahead_s` ahead, and it ends itself as `Order.end_at` says."""
        self.set_clock(ahead_s)
        return Order(
            arguments=arguments,
            folder=str(self.folder),
            plugins=str(self.folder / "plugins"),
            clock=str(self.folder / "clock"),
            points=str(self.points),
            end_at=end_at,
        )

    # --- what is on disk --------------------------------------------------------------------------------------------

    def packages(self) -> list[Package]:
        """Return every package, in the order of its number."""
        workspace = Workspace(self.workspace)
        found = workspace.package_ids() if workspace.cases.exists() else []
        return [workspace.package(one) for one in sorted(found, key=lambda name: (len(name), name))]

    def files(self) -> dict[str, bytes]:
        """Return path (from the folder of all cases) and bytes of every file of every package."""
        return {
            f"{package.root.name}/{path}": data
            for package in self.packages()
            for path, data in package.files()
            if data is not None
        }

    def progress(self) -> dict[str, Progress]:
        """Return where each case stands."""
        return {package.root.name: derive_progress(package) for package in self.packages()}

    def states(self) -> dict[str, int]:
        """Return how many cases are in each state."""
        return dict(Counter(progress.state for progress in self.progress().values()))

    def host(self) -> Host:
        """Return the host that knows the project's plugins."""
        return Inventory(self.folder, FixedClock()).host()

    def verdicts(self) -> set[str]:
        """Return what `verify` says of all packages."""
        host = self.host()
        return {verify_package(package.root, host).answer for package in self.packages()}

    def attempts(self) -> Iterable[OneAttempt]:
        """Yield every attempt of every case."""
        for package in self.packages():
            for revision in begun_revisions(package):
                for stage in CORE_STAGES:
                    log = AttemptLog(package, revision, stage)
                    for attempt in log.all():
                        request = package.load(log.path(attempt.number, "request.json"), ModelRequest)
                        yield OneAttempt(
                            package.root.name,
                            stage,
                            request.user,
                            arrived=package.exists(log.path(attempt.number, "native.bin")),
                            kind=attempt.outcome.kind if attempt.outcome else None,
                            code=attempt.outcome.code if attempt.outcome else None,
                        )


@dataclass(frozen=True, slots=True)
class Bill:
    """What the model's server was asked, beside what is on disk.

    Attributes:
        sent: how many requests arrived.
        unknown: how many calls have no reply on disk, and are decided to be unknown.
        off_record: user messages that arrived more often than attempts on disk ask them.
        repeated: user messages that were asked again though a reply to them was on disk.
    """

    sent: int
    unknown: int
    off_record: tuple[str, ...]
    repeated: tuple[str, ...]


def bill(project: ManyCases, asked: Counter[str]) -> Bill:
    """Return the bill of a project whose server counted `asked`; nothing may be at work on it."""
    attempts = list(project.attempts())
    on_disk = Counter(attempt.user for attempt in attempts)
    # After a reply that is accepted nothing is asked, and after an invalid one it is asked with feedback.
    answered = Counter(attempt.user for attempt in attempts if attempt.kind in ("accepted", "invalid"))
    return Bill(
        sent=asked.total(),
        unknown=sum(attempt.kind == "unknown" for attempt in attempts),
        off_record=tuple(user for user, number in asked.items() if number > on_disk[user]),
        repeated=tuple(user for user, number in answered.items() if number > 1),
    )


@dataclass(frozen=True, slots=True)
class OneAttempt:
    """One attempt on disk: whether its reply is there, and what was decided about it (None: nothing yet)."""

    case: str
    stage: str
    user: str
    arrived: bool
    kind: str | None
    code: str | None


def ended(process: subprocess.Popen[str], timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Wait for a command and return how it ended."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the command did not end: {process.args!r}\n{out}\n{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def settings_for(llm: str, more: str = "", database: str | None = None) -> str:
    """Return the settings of the inventory project with another `[llm]` table, and another database URL."""
    text = settings_text(more=more)
    start, _, rest = text.partition("[llm]\n")
    _, _, behind = rest.partition("\n\n")
    text = f"{start}{llm}\n{behind}"
    return text if database is None else text.replace("sqlite:///inventory.db", database)


def accepted_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that an interruption may not change: all but attempts, feedback, events and the seal."""
    passing = ("/attempts/", "/feedback-", "/events/", "/seal.json")
    return {path: data for path, data in files.items() if not any(part in path for part in passing)}
