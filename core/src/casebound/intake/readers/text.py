"""Plain text: an optional title line, then the body.

Rule: the first line is the title if it is not blank, has at most 120 characters, is followed by a blank line and then
by more text; the way a mail or a commit message is written. It is taken without the blanks around it. Otherwise all
of the text is the body. The body starts with the line behind the blank one, and is unchanged from there on.
"""

from __future__ import annotations

import re

from casebound.contracts.case import Report

MAX_TITLE = 120
_TITLE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n)")


def read(text: str) -> Report:
    """Return the report that `text` holds. Never raises."""
    found = _TITLE.match(text)
    title = found[1].strip() if found else ""
    if found is None or not 0 < len(title) <= MAX_TITLE or not text[found.end() :].strip():
        return Report(body=text, body_format="text")
    return Report(title=title, body=text[found.end() :], body_format="text")
