"""Loading captures: every binding is checked over all lines before one of them is judged.

The rules (each has its own sentence in the error): the head is of this benchmark's format, of this measurement, of one
split and of its cases; it begins after every receipt, and not in the future; the lines are those that the head binds,
each a canonical record; each names a planned slot, once, with the input that is frozen. Nothing that is unknown,
doubled, changed or unplanned is passed over. Lines are streamed: memory holds one of them, and one byte a planned slot.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NoReturn

from pydantic import ValidationError

from casebound.bench.files import read_file
from casebound.bench.parsing import parse_written
from casebound.bench.receipts import Receipt
from casebound.bench.subject import Subject, input_digest
from casebound.canonical import RunningDigest, digest_of
from casebound.clock import format_time, parse_time
from casebound.contracts.bench_captures import CaptureRecord, Captures
from casebound.errors import IntegrityError, SettingsError

CODE = "BENCH_CAPTURES"
MOST_LINE_BYTES = 16 << 20
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not keep a reader waiting


@dataclass(frozen=True)
class CaptureFile:
    """Captures that hold.

    Attributes:
        path: of the head.
        head: what was planned, and which lines belong to it.
        digest: of the head's bytes; through it, of every line.
        bound_receipts: whether every receipt that was given is one that the run was bound to before it began. Where it
            is not, only the clocks say that the receipt came first.
    """

    path: Path
    head: Captures
    digest: str
    bound_receipts: bool

    def records(self) -> Iterator[CaptureRecord]:
        """Read the lines once more, one at a time.

        Raises:
            IntegrityError: they are no longer those that were loaded (`STORE_DIGEST`).
            SettingsError: they can no longer be read (`BENCH_FILE`).
        """
        lines = self.path.with_name(self.head.records.file)
        running = RunningDigest()
        with _open(lines) as file:
            for line in file:
                running.update(line)
                try:
                    yield CaptureRecord.model_validate_json(line, by_alias=True, by_name=False)
                except ValidationError as exc:
                    raise _changed(lines) from exc
        if running.digest() != self.head.records.digest:
            raise _changed(lines)


def _changed(lines: Path) -> IntegrityError:
    return IntegrityError("STORE_DIGEST", path=str(lines), found="other bytes than when it was loaded")


def load_captures(path: Path, subject: Subject, receipts: Sequence[Receipt], now: datetime) -> CaptureFile:
    """Return the captures whose head is `path`, once all of them hold.

    Args:
        path: `captures.json`; its lines stand beside it.
        subject: the measurement that they must belong to.
        receipts: of the people who reviewed its corpus.
        now: the present time.

    Raises:
        SettingsError: `BENCH_CAPTURES`, `BENCH_FILE`.
    """
    data = read_file(path)
    head = parse_written(data, Captures, CODE, path)
    _check_head(path, head, subject)
    _check_times(path, head, receipts, now)
    planned = {case_id: number for number, case_id in enumerate(head.case_ids)}
    _Lines(path.with_name(head.records.file), head, subject, planned).check()
    bound = all(receipt.digest in head.receipts for receipt in receipts)
    return CaptureFile(path, head, digest_of(data), bound)


def _check_head(path: Path, head: Captures, subject: Subject) -> None:
    expected = subject.versions.captures
    if head.format != expected:
        raise SettingsError(CODE, path=str(path), pointer="/format", found=repr(head.format), expected=expected)
    if head.measurement_id != subject.measurement_id:
        found, expected = head.measurement_id, subject.measurement_id
        raise SettingsError(CODE, path=str(path), pointer="/measurementId", found=found, expected=expected)
    if head.split not in subject.corpus.SPLITS:
        found, allowed = repr(head.split), subject.corpus.SPLITS
        raise SettingsError(CODE, path=str(path), pointer="/split", found=found, allowed=allowed)
    seen: set[str] = set()
    for index, case_id in enumerate(head.case_ids):
        if (wrong := _wrong_case(case_id, seen, head, subject)) is not None:
            raise SettingsError(CODE, path=str(path), pointer=f"/caseIds/{index}", found=wrong)
        seen.add(case_id)


def _wrong_case(case_id: str, seen: set[str], head: Captures, subject: Subject) -> str | None:
    case = subject.cases.get(case_id)
    if case is None:
        return f"the case {case_id!r}, which the corpus does not have"
    if case.split != head.split:
        return f"the case {case_id!r} of the split {case.split!r}"
    return f"the case {case_id!r} a second time" if case_id in seen else None


def _check_times(path: Path, head: Captures, receipts: Sequence[Receipt], now: datetime) -> None:
    """Refuse what the clocks contradict. One equal to now is no future; one equal to a review's is not after it."""
    started = parse_time(head.started_at)
    if started > now:
        found = f"{head.started_at}, {started - now} after the present {format_time(now)}"
        raise SettingsError(CODE, path=str(path), pointer="/startedAt", found=found)
    for receipt in receipts:
        reviewed = receipt.review.reviewed_at
        if parse_time(reviewed) >= started:
            found = f"{head.started_at}, which is not after the review of {reviewed} in {receipt.path.name}"
            hint = "references are settled before outputs; freeze a new bundle, and capture again"
            raise SettingsError(CODE, path=str(path), pointer="/startedAt", found=found, hint=hint)


class _Lines:
    """One pass over the lines, in which each planned slot may be seen once."""

    def __init__(self, path: Path, head: Captures, subject: Subject, planned: dict[str, int]) -> None:
        self.path = path
        self.head = head
        self.subject = subject
        self.planned = planned
        self.seen = bytearray(len(planned) * head.repeats)

    def check(self) -> None:
        bound, running, count = self.head.records, RunningDigest(), 0
        with _open(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size != bound.bytes:
                self._refuse(f"{size} bytes, where the head binds {bound.bytes}")
            while line := file.readline(MOST_LINE_BYTES + 1):
                count += 1
                running.update(line)
                self._check_line(line, f"line {count}")
        if running.digest() != bound.digest:
            self._refuse("other bytes than the head binds")
        if count != bound.count:
            self._refuse(f"{count} lines, where the head says {bound.count}")

    def _check_line(self, line: bytes, where: str) -> None:
        if len(line) > MOST_LINE_BYTES:
            self._refuse(f"more than {MOST_LINE_BYTES} bytes", where)
        if not line.endswith(b"\n"):
            self._refuse("a line that does not end", where)
        record = parse_written(line[:-1], CaptureRecord, CODE, self.path, where)
        case = self.subject.cases.get(record.case_id)
        number = self.planned.get(record.case_id)
        if case is None:
            self._refuse(f"the case {record.case_id!r}, which the corpus does not have", where, "/caseId")
        if number is None:
            self._refuse(f"the case {record.case_id!r}, which was not planned", where, "/caseId")
        if record.repeat > self.head.repeats:
            self._refuse(f"repeat {record.repeat}, where {self.head.repeats} were planned", where, "/repeat")
        if record.input != input_digest(case.input):
            self._refuse(f"another input than that of the case {record.case_id!r}", where, "/input")
        slot = number * self.head.repeats + record.repeat - 1
        if self.seen[slot]:
            self._refuse(f"the slot {record.case_id!r}, repeat {record.repeat}, a second time", where)
        self.seen[slot] = 1

    def _refuse(self, found: str, where: str | None = None, pointer: str | None = None) -> NoReturn:
        raise SettingsError(CODE, path=str(self.path), where=where, pointer=pointer, found=found)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(path, _READ)
    except OSError as exc:
        raise SettingsError("BENCH_FILE", path=str(path), found=os.strerror(exc.errno or 0)) from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SettingsError("BENCH_FILE", path=str(path), found="no regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file
