"""What one file may hold: one report, or many of them, which are found one at a time.

| the file | what is in it |
|---|---|
| `.jsonl`, `.ndjson` | JSON Lines: each line that is not blank is a report |
| `.json` that begins with `[` | each element is a report; an element that is an array, as `gh api --slurp` writes pages, is taken apart too |
| other `.json` | one report |
| whatever another reader takes | one report |
| standard input, and a pipe whose name no reader takes | by its beginning: `[` and an object or array (or nothing): JSON array; `{` and a key: JSON Lines, or one report in JSON where the first line shows that it goes on (it ends in `{`, `[`, `,` or `:`); else Markdown |

The bytes of a report are those that stand in the file, from its first sign to its last. A JSON object with the number of
an issue is read as an issue of GitHub; any other one in a collection as a record.
"""  # noqa: E501  # a table

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from casebound.errors import CaseboundError, SettingsError
from casebound.intake.admission import BOM, check_byte_order, check_size, choose_reader
from casebound.intake.readers import github
from casebound.specs import ReportReader
from casebound.strict_json import JsonError, parse_json
from casebound.workspace.elements import CHUNK, split_arrays, split_lines

STDIN = "stdin"
_ARRAY = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*(?:\[[ \t\r\n]*)?(?:\{|\][ \t\r\n]*\Z|\Z)")
_OBJECT = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*["}]')
_MAY_BE_AN_ISSUE = re.compile(rb'"(?:number|issue_url|pull_request)"')


@dataclass(frozen=True, slots=True)
class Found:
    """The bytes of one report.

    Attributes:
        name: the name of the file that it was in; for standard input one that says what it is.
        place: where in it, in words; empty where it is the whole file.
        missing_comments: how many comments of an issue the export does not hold.
    """

    name: str
    place: str
    data: bytes
    reader: ReportReader
    missing_comments: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """What cannot be a report, and why."""

    name: str
    place: str
    error: CaseboundError


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A pull request among issues: no report."""

    name: str
    place: str


Item = Found | Refused | PassedOver


class Stream(io.RawIOBase):
    """Bytes, counted as they are read; each buffer is filled, so that a look ahead shows all of the beginning."""

    def __init__(self, inner: io.RawIOBase, on_bytes: Callable[[int], None]) -> None:
        self._inner = inner
        self._on_bytes = on_bytes

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        """Fill `buffer` as far as there is anything; return how far."""
        view, size = memoryview(buffer), 0
        while size < len(view) and (part := self._inner.readinto(view[size:])):
            size += part
        self._on_bytes(size)
        return size


def reports_in(stream: Stream, name: str | None, readers: Mapping[str, ReportReader], max_bytes: int) -> Iterator[Item]:
    """Yield what the stream holds, in its order.

    Args:
        stream: at its beginning.
        name: of the file; None: what it is shows in its beginning.
        readers: what the host offers.
        max_bytes: of one report.

    Raises:
        SettingsError: `REPORT_FORMAT`; `REPORT_ENCODING` for a collection in another encoding.
        OSError: it cannot be read (further).
    """
    file = io.BufferedReader(stream, CHUNK)
    head = file.peek()
    beginning = head.removeprefix(BOM)
    if name is None:
        name = f"{STDIN}{_suffix(beginning)}"
    reader = choose_reader(name, list(readers.values()))
    is_lines, is_json = reader.name == "record", reader.name in ("json", "github")
    if is_lines or (is_json and beginning.lstrip().startswith(b"[")):
        check_byte_order(head, name=name)
        file.read(len(head) - len(beginning))
        yield from _Split(name, readers, max_bytes).items(file, lines=is_lines)
        return
    data = file.read(max_bytes + 1)
    check_size(len(data), max_bytes, path=name)
    yield _whole(name, data, reader, readers) if is_json else Found(name, "", data, reader)


def _suffix(beginning: bytes) -> str:
    if _ARRAY.match(beginning):
        return ".json"
    if not _OBJECT.match(beginning):
        return ".md"
    line, end, _ = beginning.lstrip().partition(b"\n")
    return ".json" if end and line.rstrip().endswith((b"{", b"[", b",", b":")) else ".jsonl"


def _whole(name: str, data: bytes, reader: ReportReader, readers: Mapping[str, ReportReader]) -> Item:
    members = _issue(data)
    return Found(name, "", data, reader) if members is None else _found_issue(name, "", data, members, readers)


def _issue(data: bytes) -> dict[str, object] | None:
    """Return the issue, or the comment on one, that the bytes are; None for everything else, broken JSON too."""
    if _MAY_BE_AN_ISSUE.search(data) is None:
        return None
    try:
        members = parse_json(data.removeprefix(BOM))
    except JsonError:
        return None
    return members if isinstance(members, dict) and github.is_issue(members) else None


def _found_issue(
    name: str, place: str, data: bytes, members: Mapping[str, object], readers: Mapping[str, ReportReader]
) -> Item:
    if github.is_pull_request(members):
        return PassedOver(name, place)
    return Found(name, place, data, readers["github"], github.missing_comments(members))


@dataclass(frozen=True, slots=True)
class _Split:
    name: str
    readers: Mapping[str, ReportReader]
    max_bytes: int

    def items(self, file: BinaryIO, *, lines: bool) -> Iterator[Item]:
        split, word = (split_lines, "line") if lines else (split_arrays, "element")
        try:
            for number, data in split(file, self.max_bytes):
                yield from self._items_of(f"{word} {number}", data)
        except SettingsError as exc:
            yield Refused(self.name, "", exc)

    def _items_of(self, place: str, data: bytes | None) -> Iterator[Item]:
        if data is None:
            expected = f"at most {self.max_bytes} bytes"
            yield Refused(self.name, place, SettingsError("REPORT_TOO_LARGE", found="more", expected=expected))
            return
        if not data.startswith(b"["):
            members = _issue(data)
            if members is None:
                yield Found(self.name, place, data, self.readers["record"])
            else:
                yield _found_issue(self.name, place, data, members, self.readers)
            return
        try:
            for number, part in split_arrays(io.BytesIO(data), self.max_bytes):
                inner = f"{place}, element {number}"
                if part is None or not part.startswith(b"["):
                    yield from self._items_of(inner, part)
                else:
                    yield Found(self.name, inner, part, self.readers["record"])  # which refuses it
        except SettingsError as exc:
            yield Refused(self.name, place, exc)
