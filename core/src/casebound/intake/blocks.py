"""The splitter: a text becomes pieces, one a paragraph, list item, heading, comment or fenced code block.

Rules:
- A line ends at LF, CR or CRLF and nowhere else. A piece is contiguous; its ends are not blank; list, quotation and
  heading marks in front of it, and the fences around code, are outside it. Pieces never overlap and come in order.
- A stretch with nothing visible in it (blanks, zero-width and direction marks) is no piece.
- A heading sets the kind of what follows, down to the next heading of its level or above. One that the table knows, by
  itself on its line, says nothing else and is no piece. Any other inherits the kind it stands under and is a piece.
- A label at the start of a line or item works like a heading below all levels: `**Expected:** …` for what follows up to
  the next label or heading; `Expected: …` (only words of the table, at most 60 characters) for its own
  paragraph, or for what follows if nothing else is on the line. A label stays part of the piece it opens. An unknown
  bold label (`**Cost:** …`, or a bold line by itself that starts a paragraph) ends the reach of the label before.
- `_No response_`, which forms write into an empty field, is markup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from casebound.contracts.case import SourceKind
from casebound.intake.headings import MAX_HEADING, heading_key
from casebound.intake.markup import CONTAINER, find_regions, line_end

MAX_PLAIN_LABEL = 60
_LABEL_LEVEL = 7
_NONBLANK = re.compile(r"\S")
_COLONS = (":", "\uff1a")
_VISIBLE = re.compile(r"[^\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_CONTAINER = re.compile(CONTAINER)
_RULE = re.compile(r"([-*_])(?:[ \t]*+\1){2,}+[ \t]*+")
_UNDERLINE = re.compile(r"(={2,}|-{2,})[ \t]*+")
_HASHES = re.compile("#{1,6}")
_EMPTY_ANSWERS = ("_No response_", "*No response*")


class Piece(NamedTuple):
    """A part of a text: half-open code-point range and what it is."""

    kind: SourceKind
    start: int
    end: int


def split_text(text: str, default: SourceKind, headings: Mapping[str, SourceKind]) -> list[Piece]:
    """Split plain text: paragraphs and plain labels, nothing else."""
    return _Paragraphs(text, default, headings).split()


def split_markdown(text: str, default: SourceKind, headings: Mapping[str, SourceKind]) -> list[Piece]:
    """Split Markdown. With an empty `headings` every readable piece has the kind `default`."""
    return _Markdown(text, default, headings).split()


def is_visible(text: str, start: int, end: int) -> bool:
    """Tell whether a stretch of text holds anything beside blanks, zero-width and direction marks."""
    return _VISIBLE.search(text, start, end) is not None


class _Label(NamedTuple):
    kind: SourceKind | None
    alone: bool
    bold: bool


class _Open(NamedTuple):
    """The piece that the next line may continue."""

    kind: SourceKind
    start: int
    depth: int
    item: bool


class _Paragraphs:
    def __init__(self, text: str, default: SourceKind, headings: Mapping[str, SourceKind]) -> None:
        self._text = text
        self._headings = headings
        self._default = default
        self._reach: list[tuple[int, SourceKind]] = []
        self._pieces: list[Piece] = []
        self._open: _Open | None = None
        self._open_end = 0
        self._open_lines = 0

    def split(self) -> list[Piece]:
        self._stretch(0, len(self._text))
        return self._pieces

    # --- lines ----------------------------------------------------------------------------------------------------

    def _stretch(self, start: int, stop: int) -> None:
        """Take the lines of a stretch of prose; the first may begin, and the last may end, within a line."""
        text, at = self._text, start
        while (found := _NONBLANK.search(text, at, stop)) is not None:
            first = found.start()
            if self._open is not None and self._is_blank_between(at, first):
                self._close()
            end = line_end(text, first, stop)
            whole = at != start or start == 0 or _holds_eol(text, start - 1, first)
            if whole:
                self._line(first, end)
            else:
                self._prose(first, end)
            at = end
        self._close()

    def _is_blank_between(self, line_stop: int, first: int) -> bool:
        past = line_stop + (2 if self._text.startswith("\r\n", line_stop) else 1)
        return _holds_eol(self._text, past, first)

    def _line(self, first: int, end: int) -> None:
        self._prose(first, end)

    def _prose(self, first: int, end: int, depth: int = 0, item: bool = False) -> None:
        """Take a line of text: it continues the open piece, or starts one."""
        label = self._label(first, end) if self._headings else None
        if label is not None and label.kind is None and (item or (label.alone and self._open is not None)):
            label = None  # bold words that open an item, or a bold line within a paragraph
        if label is not None:
            self._close()
            kind = label.kind or self._kind_above(_LABEL_LEVEL)
            if label.alone or (label.bold and not item):
                self._enter(_LABEL_LEVEL, kind)
            if not (label.alone and label.kind):
                self._start(kind, first, end, depth, item)
        elif item or self._open is None or self._open.depth != depth:
            self._close()
            self._start(self._kind(), first, end, depth, item)
        else:
            self._open_end = end
            self._open_lines += 1

    # --- kinds ----------------------------------------------------------------------------------------------------

    def _kind(self) -> SourceKind:
        return self._reach[-1][1] if self._reach else self._default

    def _kind_above(self, level: int) -> SourceKind:
        return next((kind for above, kind in reversed(self._reach) if above < level), self._default)

    def _enter(self, level: int, kind: SourceKind) -> None:
        while self._reach and self._reach[-1][0] >= level:
            self._reach.pop()
        self._reach.append((level, kind))

    def _label(self, first: int, end: int) -> _Label | None:
        return self._plain_label(first, end)

    def _plain_label(self, first: int, end: int) -> _Label | None:
        limit = min(end, first + MAX_PLAIN_LABEL + 1)
        places = [place for place in (self._text.find(colon, first, limit) for colon in _COLONS) if place >= 0]
        if not places:
            return None
        colon = min(places)
        kind = self._headings.get(heading_key(self._text[first:colon]))
        if kind is None:
            return None
        return _Label(kind, _NONBLANK.search(self._text, colon + 1, end) is None, bold=False)

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _start(self, kind: SourceKind, start: int, end: int, depth: int, item: bool) -> None:
        self._open = _Open(kind, start, depth, item)
        self._open_end = end
        self._open_lines = 1

    def _close(self) -> None:
        if self._open is not None:
            self._emit(self._open.kind, self._open.start, self._open_end)
            self._open = None

    def _emit(self, kind: SourceKind, start: int, end: int) -> None:
        text = self._text
        first = _NONBLANK.search(text, start, end)
        if first is None or not is_visible(text, start, end):
            return
        start = first.start()
        while text[end - 1].isspace():
            end -= 1
        if end - start == len(_EMPTY_ANSWERS[0]) and text[start:end] in _EMPTY_ANSWERS:
            kind = "markup"
        self._pieces.append(Piece(kind, start, end))


class _Markdown(_Paragraphs):
    def split(self) -> list[Piece]:
        at = 0
        for region in find_regions(self._text):
            self._stretch(at, region.start)
            self._emit("markup" if region.kind == "markup" else self._kind(), region.inner_start, region.inner_end)
            at = region.end
        self._stretch(at, len(self._text))
        return self._pieces

    def _line(self, first: int, end: int) -> None:
        mark = self._text[first]
        if mark in "-*_=" and self._is_ruled(first, end):
            return
        content, depth, item = first, 0, False
        if mark in ">-+*0123456789":
            content, depth, item = self._container(first, end)
        if content == end:
            self._close()
        elif self._text[content] != "#" or not self._is_heading(content, end):
            self._prose(content, end, depth, item)

    def _is_ruled(self, first: int, end: int) -> bool:
        """Take a thematic break, or the underline of a heading."""
        opened = self._open
        underline = _UNDERLINE.fullmatch(self._text, first, end)
        if underline is not None and opened is not None and opened.depth == 0 and not opened.item:
            if self._open_lines == 1:
                self._open = None
                self._heading(1 if underline[0][0] == "=" else 2, opened.start, self._open_end)
            else:
                self._close()
            return True
        if _RULE.fullmatch(self._text, first, end) is None:
            return False
        self._close()
        return True

    def _container(self, first: int, end: int) -> tuple[int, int, bool]:
        """Return where the content of the line starts, how deep it is quoted, and whether it opens a list item."""
        found = _CONTAINER.match(self._text, first, end)
        marks = found[0] if found else ""
        depth, item = marks.count(">"), marks.strip(" \t>")
        opened = self._open
        wraps = opened is not None and not opened.item and opened.depth == depth
        if wraps and item[:1].isdecimal() and not item.startswith(("1.", "1)")):
            return first, depth, False  # a number at the start of a wrapped line
        return first + len(marks), depth, item != ""

    def _is_heading(self, content: int, end: int) -> bool:
        text = self._text
        hashes = _HASHES.match(text, content, end)
        level = len(hashes[0]) if hashes else 0
        start = content + level
        while start < end and text[start] in " \t":
            start += 1
        stop = end
        while stop > start and text[stop - 1] in " \t":
            stop -= 1
        closing = stop
        while closing > start and text[closing - 1] == "#":
            closing -= 1
        if closing == start or text[closing - 1] in " \t":
            stop = closing
        if start == content + level < end and (level < 2 or self._headings.get(heading_key(text[start:stop])) is None):
            return False  # `#17`, or `##Expected` with a word that no table knows
        self._close()
        self._heading(level, start, stop)
        return True

    def _heading(self, level: int, start: int, end: int) -> None:
        kind = self._headings.get(heading_key(self._text[start:end]) if end - start <= MAX_HEADING else "")
        if kind is not None:
            self._enter(level, kind)
            return
        label = self._plain_label(start, end) if self._headings else None
        kind = label.kind if label is not None and label.kind else self._kind_above(level)
        self._enter(level, kind)
        self._emit(kind, start, end)

    def _label(self, first: int, end: int) -> _Label | None:
        text = self._text
        marks = text[first : first + 2]
        if marks not in ("**", "__"):
            return self._plain_label(first, end)
        close = text.find(marks, first + 2, min(end, first + MAX_HEADING + 4))
        if close < 0:
            return None
        inside = text[first + 2 : close].rstrip()
        rest = _NONBLANK.search(text, close + 2, end)
        outside_colon = rest is not None and rest[0] in _COLONS
        if outside_colon and rest is not None:
            rest = _NONBLANK.search(text, rest.end(), end)
        kind = self._headings.get(heading_key(inside))
        is_label = inside.endswith(_COLONS) or outside_colon or (kind is not None and inside.endswith(("?", "\uff1f")))
        return _Label(kind, rest is None, bold=True) if is_label or rest is None else None


def _holds_eol(text: str, start: int, stop: int) -> bool:
    return text.find("\n", start, stop) >= 0 or text.find("\r", start, stop) >= 0
