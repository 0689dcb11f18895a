"""Hypothesis strategies for the text that real reports hold and that breaks naive programs.

Composed and decomposed letters, case pairs of several scripts, look-alikes, zero-width and direction marks, emoji with
joiners, every kind of line end, and the marks of Markdown. All of it is valid text: no NUL, no lone surrogate, no
control character that only a binary has.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LINE_ENDS = ("\n", "\r\n", "\r")
"""What ends a line."""

SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c")
"""What other programs take for a line end, and we do not."""

INVISIBLES = (
    "\u200b",
    "\u200c",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u200e",
    "\u200f",
    "\u202a",
    "\u202e",
    "\u2066",
    "\u2069",
)
"""Zero-width and direction marks."""

UGLY_WORDS = (
    "caf\u00e9",
    "cafe\u0301",
    "\u1e9b\u0323",
    "\ufb01le",
    "\uff21\uff22",
    "\u0130I\u0131i",
    "Stra\u00dfe",
    "\u03a3\u03c3\u03c2",
    "\u0401\u0436",
    "\u0435xample",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u65e5\u672c\u8a9e",
    "\U00020000\U0001f600",
    "\U0001f469\u200d\U0001f4bb",
    "\U0001f1e9\U0001f1ea",
    "e\u0301\u0323\u0301",
    "100%",
    "a_b",
    "a\\b",
    "it's",
    "\u00ab\u00bb",
)
"""Words in several scripts, among them pairs that look or fold alike."""

MARKS = (
    "<!--",
    "-->",
    "<!-->",
    "<!--->",
    "`",
    "``",
    "```",
    "~~~",
    "# ",
    "## ",
    "#",
    "- ",
    "* ",
    "12. ",
    "1) ",
    "> ",
    "**",
    "__",
    "---",
    "===",
    "|",
    ":",
    "\uff1a",
    "[//]: # (x)",
    "[a](b)",
    "\\",
    "    ",
    "\t",
    "- [ ] ",
)
"""Marks of Markdown, whole and torn."""

_VISIBLE = st.characters(exclude_categories=("Cs", "Cc"))
_PARTS = st.one_of(
    st.sampled_from(UGLY_WORDS),
    st.sampled_from(MARKS),
    st.sampled_from(LINE_ENDS),
    st.sampled_from(SEPARATORS),
    st.sampled_from(INVISIBLES),
    st.text(_VISIBLE, max_size=4),
    st.sampled_from((" ", "  ", "a", "B", "7", "007")),
)


def ugly_texts(extra: tuple[str, ...] = (), *, max_parts: int = 40) -> SearchStrategy[str]:
    """Return texts glued together from ugly parts, torn Markdown, and the words in `extra`, in any order."""
    parts = st.one_of(st.sampled_from(extra), _PARTS) if extra else _PARTS
    return st.lists(parts, max_size=max_parts).map("".join)


def ugly_lines() -> SearchStrategy[str]:
    """Return a title: ugly text without a line end."""
    return ugly_texts(max_parts=8).map(lambda text: text.replace("\n", " ").replace("\r", " "))
