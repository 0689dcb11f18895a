"""What a Markdown text holds that is not prose: comments nobody sees, and fenced code.

Rules (CommonMark's, as GitHub shows a report, so that a model reads what a person sees):
- `<!-- … -->` is a comment wherever it stands outside code; it does not nest; `<!-->` and `<!--->` are whole comments.
- A comment that never ends hides the rest of the text where it opens a line (at most three spaces in front), as it
  does on the page that the reporter saw; anywhere else its opening is text like any other.
- In code (a fence, or a code span on one line) and after a backslash, `<!--` is text.
- A line that begins with `[//]:` is a comment too: templates use it as one.
- A fence that never closes runs to the end of the text; one inside a quotation ends with the quotation.
Every search goes forward only, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Literal, NamedTuple

_BOL = r"(?<![^\r\n])"  # a line starts after LF or CR or at 0; `^` would not know a lone CR
CONTAINER = r"(?:>[ \t]*+|(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]++|\Z)(?:\[[ xX]\][ \t]++)?+)*+"
_CANDIDATE = re.compile(
    rf"(?P<comment><!--)|{_BOL}(?P<lead>[ \t]*+{CONTAINER})(?P<fence>`{{3,}}+|~{{3,}}+)|{_BOL} {{0,3}}(?P<link>\[//\]:)"
)
_EOL = re.compile(r"[\r\n]")
_TICKS = re.compile("`+")


class Region(NamedTuple):
    """A stretch that is no prose: `[start, end)` all of it, `[inner_start, inner_end)` the part that counts."""

    kind: Literal["markup", "code"]
    start: int
    end: int
    inner_start: int
    inner_end: int


def find_regions(text: str) -> list[Region]:
    """Return comments and fenced code of a Markdown text, in order, never overlapping."""
    return _Scanner(text).regions()


def line_end(text: str, at: int, stop: int | None = None) -> int:
    """Return where the line that holds `at` ends: its CR or LF, or `stop` (default: the end of the text)."""
    stop = len(text) if stop is None else stop
    found = _EOL.search(text, at, stop)
    return found.start() if found else stop


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._spans = _CodeSpans(text, 0, 0)
        self._endless = False

    def regions(self) -> list[Region]:
        regions = []
        while (found := _CANDIDATE.search(self._text, self._at)) is not None:
            if found["comment"]:
                region = self._comment(found.start())
            elif found["fence"]:
                region = self._fence(found)
            else:
                end = line_end(self._text, found.end())
                region = Region("markup", found.start("link"), end, found.start("link"), end)
            if region is None:
                self._at = max(self._at, found.end())
            else:
                self._at = region.end
                regions.append(region)
        return regions

    def _comment(self, start: int) -> Region | None:
        text = self._text
        if start > self._spans.end:
            line_start = 1 + max(text.rfind("\n", self._at, start), text.rfind("\r", self._at, start), self._at - 1)
            self._spans = _CodeSpans(text, line_start, line_end(text, start))
        span_end = self._spans.end_of_span_at(start, self._at)
        if span_end is not None:
            self._at = span_end
            return None
        if start and text[start - 1] == "\\":
            return None
        end = self._comment_end(start)
        return None if end is None else Region("markup", start, end, start, end)

    def _comment_end(self, start: int) -> int | None:
        text = self._text
        for whole in ("<!-->", "<!--->"):
            if text.startswith(whole, start):
                return start + len(whole)
        end = -1 if self._endless else text.find("-->", start + 4)
        if end >= 0:
            return end + 3
        self._endless = True
        indent = 0
        while indent < 3 and start - indent > 0 and text[start - indent - 1] == " ":
            indent += 1
        opens_line = start == indent or text[start - indent - 1] in "\r\n"
        return len(text) if opens_line else None

    def _fence(self, found: re.Match[str]) -> Region | None:
        text, fence, start = self._text, found["fence"], found.start("fence")
        opening_end = line_end(text, found.end())
        if fence[0] == "`" and text.find("`", found.end(), opening_end) >= 0:
            return None  # a code span
        inner = _after_eol(text, opening_end)
        close = _closing(fence[0], len(fence), ">" in found["lead"]).search(text, inner)
        if close is None:
            return Region("code", start, len(text), inner, len(text))
        return Region("code", start, close.end(), inner, close.start())


class _CodeSpans:
    """The code spans of one line; asked for places in ascending order."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.end = end
        self._runs = [(run.start(), run.end()) for run in _TICKS.finditer(text, start, end)]
        self._starts = [start for start, _ in self._runs]
        self._by_length: dict[int, list[int]] = {}
        for opened, closed in self._runs:
            self._by_length.setdefault(closed - opened, []).append(opened)
        self._next = 0

    def end_of_span_at(self, place: int, resume: int) -> int | None:
        """Return the end of the code span that holds `place`, None if none does; spans open from `resume` on."""
        self._next = max(self._next, bisect_left(self._starts, resume))
        while self._next < len(self._runs) and self._starts[self._next] < place:
            start, end = self._runs[self._next]
            same = self._by_length[end - start]
            partner = bisect_right(same, start)
            if partner == len(same):
                self._next += 1
                continue
            closing_end = same[partner] + end - start
            if closing_end > place:
                return closing_end
            self._next = bisect_left(self._starts, closing_end)
        return None


@lru_cache(maxsize=64)
def _closing(mark: str, length: int, quoted: bool) -> re.Pattern[str]:
    lead = r"[ \t>]*+" if quoted else r"[ \t]*+"
    close = rf"{_BOL}{lead}{mark}{{{length},}}+[ \t]*+(?=[\r\n]|\Z)"
    return re.compile(rf"{close}|{_BOL}(?![ \t]*+>)" if quoted else close)


def _after_eol(text: str, at: int) -> int:
    """Return where the next line starts, `at` being the end of one."""
    return min(len(text), at + (2 if text.startswith("\r\n", at) else 1))
