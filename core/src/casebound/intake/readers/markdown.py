"""Markdown: optional front matter, an optional title heading, then the body.

Front matter is a block at the very start between two lines `---` (the second may be `...`), with an `id` or a `title`
in it, and nothing but `key: value` lines, blank lines, `# …`, and indented or `- …` lines. Everything else, an
unterminated block above all, is body: nothing is hidden by mistake. In it:
- `id` and `title` (any case) are scalars of one line, taken as they are written, without quotes around them; nothing is
  unescaped, ` #` starts no comment (titles name tickets), and an empty value, `null` and `~` mean none.
- Other keys are read past, so that an exported issue or a template keeps its own front matter.
- A key that comes twice is `REPORT_SYNTAX`, and so is an `id` or `title` that goes on in the next line.

Without a `title` there, a first line `# Heading` is the title and no part of the body, as issue exports write it;
unless the built-in table knows it (`# Steps to reproduce`), for then it opens a section, or an HTML comment stands in
it. Ranges in the body count from the character behind the front matter or the title line.
"""

from __future__ import annotations

import re

from casebound.contracts.case import Report
from casebound.errors import SettingsError
from casebound.intake.headings import is_builtin_heading

_EOL = r"(?:\r\n|\r|\n|\Z)"
_LINE = re.compile(rf"([^\r\n]*){_EOL}")
_OPEN = re.compile(r"---[ \t]*(?:\r\n|\r|\n)")
_CLOSE = re.compile(r"(?:---|\.\.\.)[ \t]*")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*))?", re.DOTALL)
_PAST = re.compile(r"[ \t]|#|-[ \t]|-?\Z")
_TITLE = re.compile(rf"(?:[^\S\r\n]*(?:\r\n|\r|\n))*+[ ]{{0,3}}#[ \t]+([^\r\n]*){_EOL}")
_CLOSING_HASHES = re.compile(r"(?:\A|[ \t])#+\Z")
_KEYS = ("id", "title")
_NONE = ("", "null", "~")
_MORE_LINES = ("|", ">", "|-", ">-", "|+", ">+")


def read(text: str) -> Report:
    """Return the report that `text` holds.

    Raises:
        SettingsError: `REPORT_SYNTAX` for front matter with a key twice, or with an id or title of several lines.
    """
    values, start = _front_matter(text)
    title = values.get("title")
    if title is None:
        title, start = _title_heading(text, start)
    return Report(case_id=values.get("id"), title=title, body=text[start:])


def _front_matter(text: str) -> tuple[dict[str, str | None], int]:
    """Return id and title of the front matter, and where the body starts."""
    opened = _OPEN.match(text)
    if opened is None:
        return {}, 0
    lines: list[tuple[str, str | None]] = []
    at = opened.end()
    while at < len(text):
        line = _LINE.match(text, at)
        if line is None:
            break
        at = line.end()
        if _CLOSE.fullmatch(line[1]):
            return (_values(lines), at) if any(key in _KEYS for key, _ in lines) else ({}, 0)
        pair = _KEY.fullmatch(line[1])
        if pair is None and _PAST.match(line[1]) is None:
            break
        lines.append((pair[1].lower(), (pair[2] or "").strip()) if pair else ("", line[1].strip()))
    return {}, 0


def _values(lines: list[tuple[str, str | None]]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    seen: set[str] = set()
    current = ""
    for number, (key, value) in enumerate(lines, 2):
        where = f"front matter, line {number}"
        if key in seen:
            raise SettingsError("REPORT_SYNTAX", pointer=f"/{key}", where=where, found=f"the key {key} a second time")
        if key:
            seen.add(key)
            current = key
        if current in _KEYS and ((not key and value and value[0] != "#") or value in _MORE_LINES):
            expected = "one line, `key: value`"
            raise SettingsError("REPORT_SYNTAX", pointer=f"/{current}", where=where, expected=expected)
        if key in _KEYS:
            values[key] = None if value in _NONE else _unquoted(value or "")
    return values


def _unquoted(value: str) -> str:
    quote = value[0]
    inner = value[1:-1]
    if quote in "\"'" and len(value) > 1 and value[-1] == quote and quote not in inner and "\\" not in inner:
        return inner
    return value


def _title_heading(text: str, start: int) -> tuple[str | None, int]:
    found = _TITLE.match(text, start)
    if found is None:
        return None, start
    title = _CLOSING_HASHES.sub("", found[1].strip()).strip()
    if not title or "<!--" in title or is_builtin_heading(title):
        return None, start
    return title, found.end()
