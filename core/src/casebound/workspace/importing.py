"""Import: many reports become admitted cases, one at a time, in constant memory; no model is asked and no database.

Rules:
- A report is refused by itself, with its place, and the next one goes on. What the workspace holds already is known,
  and nothing is written for it; hence an import that was interrupted is finished by repeating it.
- Reports are read one after another; a few are written at once, for most of that is waiting for the disk. What became
  of them is told in their order.
- A case is admitted as soon as its `admission.json` stands, which is written last; a killed import leaves at most
  `WRITERS` folders without, and repeating completes them.
- New cases are told in batches (`on_batch`), for an index; what a killed import could not tell, the index finds itself.
- A workspace that cannot be written ends the import: the next report would fare no better.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host
from casebound.intake.admission import admit_as
from casebound.store import Package, Workspace
from casebound.workspace.admitting import admit_case
from casebound.workspace.collections import Found, Item, PassedOver, Refused, Stream, reports_in
from casebound.workspace.gathering import STANDARD_INPUT, Source, Walk, unreadable

BATCH = 100
WRITERS = 8
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class RefusedReport:
    """One report that was not imported.

    Attributes:
        report: its file, and its place in it.
        code: why, as a row of the table of codes.
        error: the whole message.
    """

    report: str
    code: str
    error: str


@dataclass(slots=True)
class ImportSummary:
    """What became of the reports.

    Attributes:
        imported: how many are new cases.
        known: how many the workspace held before.
        passed_over: how many were pull requests among issues.
        refused: the first of those that were refused.
        refused_total: how many were.
        lacking_comments: how many issues have comments that the export does not hold.
    """

    imported: int = 0
    known: int = 0
    passed_over: int = 0
    refused: list[RefusedReport] = field(default_factory=list)
    refused_total: int = 0
    lacking_comments: int = 0

    @property
    def total(self) -> int:
        """How many reports there were."""
        return self.imported + self.known + self.passed_over + self.refused_total

    @property
    def exit_status(self) -> int:
        """The documented exit status: 1 where a report was refused."""
        return 1 if self.refused_total else 0

    def to_json(self) -> dict[str, Any]:
        """Return the documented keys."""
        return {
            "imported": self.imported,
            "known": self.known,
            "passed_over": self.passed_over,
            "refused": [{"report": one.report, "code": one.code, "error": one.error} for one in self.refused],
            "refused_total": self.refused_total,
        }

    def refuse(self, report: str, error: CaseboundError) -> None:
        """Count a report that was refused."""
        self.refused_total += 1
        if len(self.refused) < MOST_SHOWN:
            self.refused.append(RefusedReport(_showable(report), error.code, _showable(str(error))))


@dataclass(frozen=True, slots=True)
class _Begun:
    """A report whose turn is over once it is written; `folder` is that of its package, without case."""

    item: Item
    folder: str | None = None
    written: Future[tuple[Package, bool]] | None = None


@dataclass(slots=True)
class Import:
    """One import into a workspace.

    Attributes:
        workspace: where the cases go; it is prepared.
        host: the plugins at hand, whose readers read.
        max_bytes: of one report.
        on_batch: called with new cases, some at a time.
        on_report: called after each report.
        summary: what became of the reports so far.
        bytes_read: of all files so far.
    """

    workspace: Workspace
    host: Host
    max_bytes: int
    on_batch: Callable[[Sequence[Package]], None] = lambda packages: None
    on_report: Callable[[Import], None] = lambda running: None
    summary: ImportSummary = field(default_factory=ImportSummary)
    bytes_read: int = 0
    _begun: deque[_Begun] = field(default_factory=deque)
    _new: list[Package] = field(default_factory=list)

    def run(self, paths: Sequence[str], *, package_id: str | None = None) -> ImportSummary:
        """Import the files, folders and standard input (`-`) that `paths` name; return what became of the reports.

        Args:
            paths: in this order.
            package_id: of a single report: a fresh case of it.

        Raises:
            SettingsError: `USAGE`, before a report is written: a package id for more than one report.
            UnavailableError: `WORKSPACE_WRITE`; what was imported before stays.
            CaseboundError: what `on_batch` raises.
        """
        items = self._items(paths)
        if package_id is not None:
            first = list(islice(items, 2))
            if len(first) > 1:
                raise SettingsError("USAGE", found="--package-id for more than one report", expected="one report")
            items = iter(first)
        with ThreadPoolExecutor(WRITERS) as writers:
            for item in items:
                self._begin(item, package_id, writers)
                self._end(until=WRITERS - 1)
            self._end(until=0)
        self._tell()
        return self.summary

    def _items(self, paths: Sequence[str]) -> Iterator[Item]:
        suffixes = tuple(suffix for reader in self.host.readers.values() for suffix in reader.suffixes)
        walk = Walk(suffixes, self.workspace.root, self.summary.refuse)
        for source in walk.sources(paths):
            try:
                yield from self._items_of(source)
            except CaseboundError as exc:
                yield Refused(source.path, "", exc)
            except (OSError, ValueError) as exc:
                yield Refused(source.path, "", unreadable(source.path, exc))

    def _items_of(self, source: Source) -> Iterator[Item]:
        with source.open() as (readable, is_regular):
            if not is_regular and not source.is_named:
                return  # a file when the walk saw it, and something else by now
            yield from reports_in(
                Stream(readable, self._count), self._name(source, is_regular), self.host.readers, self.max_bytes
            )

    def _name(self, source: Source, is_regular: bool) -> str | None:
        """Return what a source is called; None where only its beginning says what it is."""
        if source.path == STANDARD_INPUT:
            return None
        is_nameless = not is_regular and not source.path.lower().endswith(
            tuple(suffix for reader in self.host.readers.values() for suffix in reader.suffixes)
        )
        return None if is_nameless else source.path

    def _count(self, size: int) -> None:
        self.bytes_read += size

    def _begin(self, item: Item, package_id: str | None, writers: ThreadPoolExecutor) -> None:
        if not isinstance(item, Found):
            self._begun.append(_Begun(item))
            return
        try:
            admission, _ = admit_as(item.reader, item.data, name=item.name, package_id=package_id)
        except CaseboundError as exc:
            self._begun.append(_Begun(Refused(item.name, item.place, exc)))
            return
        folder = admission.package_id.lower()
        while any(begun.folder == folder for begun in self._begun):  # the first of two with one id is the one
            self._end(until=len(self._begun) - 1)
        written = writers.submit(admit_case, self.workspace, admission, item.data, self.host, wait=True)
        self._begun.append(_Begun(item, folder, written))

    def _end(self, *, until: int) -> None:
        """Wait for the reports that were begun first, until so many are left."""
        while len(self._begun) > until:
            begun = self._begun.popleft()
            try:
                self._note(begun)
            except CaseboundError as exc:
                if exc.code == "WORKSPACE_WRITE":
                    raise
                self.summary.refuse(_called(begun.item), _placed(exc, begun.item))
            if len(self._new) >= BATCH:
                self._tell()
            self.on_report(self)

    def _note(self, begun: _Begun) -> None:
        if isinstance(begun.item, Refused):
            raise begun.item.error
        if isinstance(begun.item, PassedOver) or begun.written is None:
            self.summary.passed_over += 1
            return
        package, is_new = begun.written.result()
        if is_new:
            self.summary.imported += 1
            self._new.append(package)
        else:
            self.summary.known += 1
        self.summary.lacking_comments += begun.item.missing_comments > 0

    def _tell(self) -> None:
        if self._new:
            self.on_batch(tuple(self._new))
            self._new.clear()


def _called(item: Item) -> str:
    return f"{item.name}, {item.place}" if item.place else item.name


def _placed(error: CaseboundError, item: Item) -> CaseboundError:
    """Add the file, and the place in it, that only the import knows."""
    if item.place:
        parts = [item.place, error.where or ""]
        if item.place.startswith("line ") and parts[1].startswith("line 1 "):  # of a report that is this one line
            parts[1] = parts[1].removeprefix("line 1 ")
        error.where = ", ".join(filter(None, parts))
    error.path = None
    return error.placed(item.name)


def _showable(text: str) -> str:
    """Return text whose bytes may come from a file name: what is no UTF-8 in it becomes an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
