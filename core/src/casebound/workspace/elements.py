"""The lines of JSON Lines, and the elements of JSON arrays: one at a time, as the very bytes that stand in the stream.

Nothing is parsed here. Only strings and brackets are told apart, so that one element that is too large, or no JSON, is
found with its bytes, and the next one after it; a parser of events would have to stop there, would keep no bytes, and
could not be told how much to hold. Memory holds one element of at most `max_bytes`, whatever the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from casebound.errors import SettingsError

CHUNK = 1 << 16
JSON_SPACE = b" \t\r\n"
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OPENINGS = re.compile(rb"[\[{]*")
# What needs no look: everything but brackets (and the commas of the array itself), whole strings too.
_DEEP = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_SHALLOW = re.compile(rb'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)


def split_lines(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield number (from 1) and bytes of every line that is not blank, without what ends it; None: it is too large."""
    number = 0
    while line := stream.readline(max_bytes + 2):
        number += 1
        whole = line.endswith(b"\n") or len(line) < max_bytes + 2
        while not whole:
            whole = (more := stream.readline(CHUNK)).endswith(b"\n") or not more
            line = b""
        if not line:
            yield number, None
        elif line := line.strip(JSON_SPACE):
            yield number, line if len(line) <= max_bytes else None


def split_arrays(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield number (from 1) and bytes of every element of the array, or of several one after another, in the stream.

    Raises:
        SettingsError: `REPORT_SYNTAX` without a path, behind the last element: the stream ends within an array, or
            something else stands between or behind them.
    """
    scanner, element, count, fresh, at = _Scanner(), _Element(max_bytes), 0, True, 0
    while chunk := stream.read(CHUNK):
        start = 0
        while start < len(chunk):
            if not scanner.depth:
                start = _opening(chunk, start, at)
                scanner.depth, fresh = int(start < len(chunk)), True
                start += 1
                continue
            cut = scanner.cut(chunk, start)
            element.take(chunk[start : len(chunk) if cut is None else cut])
            if cut is None:
                break
            if not scanner.depth and chunk[cut] != ord("]"):
                raise _refusal(f"byte {at + cut}", "the sign }", "the array's end")
            if scanner.depth or not (fresh and element.is_blank()):  # in `[ ]` nothing is an element
                count += 1
                yield count, element.done()
            element, fresh, start = _Element(max_bytes), False, cut + 1
        at += len(chunk)
    if scanner.depth:
        raise _refusal(f"byte {at}", "the end of the file", "the array's end")


def _opening(chunk: bytes, start: int, at: int) -> int:
    """Return where the next array opens; the length of `chunk` where only space is left."""
    while start < len(chunk) and chunk[start] in JSON_SPACE:
        start += 1
    if start < len(chunk) and chunk[start] != ord("["):
        raise _refusal(f"byte {at + start}", f"the byte 0x{chunk[start]:02x}", "an array, or the end")
    return start


def _refusal(where: str, found: str, expected: str) -> SettingsError:
    return SettingsError("REPORT_SYNTAX", where=where, found=found, expected=expected)


class _Element:
    """The bytes of one element, as far as they may be held."""

    def __init__(self, max_bytes: int) -> None:
        self._held = bytearray()
        self._max_bytes = max_bytes
        self._too_large = False

    def take(self, part: bytes) -> None:
        if not self._held:
            part = part.lstrip(JSON_SPACE)
        self._held += part
        if len(self._held) > self._max_bytes + CHUNK:  # so much space behind it is not held either
            self._too_large = True
        if self._too_large:
            self._held.clear()

    def is_blank(self) -> bool:
        return not self._held and not self._too_large

    def done(self) -> bytes | None:
        data = bytes(self._held.rstrip(JSON_SPACE))
        return None if self._too_large or len(data) > self._max_bytes else data


class _Scanner:
    """Where in an array a stream is, chunk by chunk: how deep, and whether within a string."""

    def __init__(self) -> None:
        self.depth = 0
        self._in_string = False
        self._escaped = False

    def cut(self, chunk: bytes, start: int) -> int | None:
        """Return where the element that goes on at `start` ends; None: not in this chunk."""
        at = start
        while at < len(chunk):
            if self._in_string:
                at = self._leave_string(chunk, at)
                continue
            at = _end(_SHALLOW if self.depth == 1 else _DEEP, chunk, at)
            if at == len(chunk):
                break
            sign = chunk[at]
            if sign == ord('"'):  # of a string that this chunk does not hold as a whole
                self._in_string = True
            elif sign in b"[{":
                opened = _end(_OPENINGS, chunk, at) - at
                self.depth += opened
                at += opened - 1
            elif sign in b"]}":
                self.depth -= 1
            if sign == ord(",") or not self.depth:
                return at
            at += 1
        return None

    def _leave_string(self, chunk: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        at = _end(_REST_OF_STRING, chunk, at)
        if at < len(chunk):
            self._in_string = chunk[at] != ord('"')
            self._escaped = self._in_string  # the only other sign that stops is a backslash at the end
        return at + 1


def _end(pattern: re.Pattern[bytes], chunk: bytes, at: int) -> int:
    found = pattern.match(chunk, at)
    assert found is not None  # noqa: S101  # each of the patterns also matches nothing
    return found.end()
