"""Characters that a reader cannot see, or would take for others.

They are matched literally everywhere and never removed; this module only names them and makes them visible. The set is
written out, so that it is the same under every Unicode version: controls, spaces other than U+0020, zero-width and
bidirectional signs, fillers, variation selectors, lone surrogates, and the full-width letters and digits.
"""

from __future__ import annotations

import re
from functools import cache
from unicodedata import combining, normalize

_LONG_TEXT, _LONG_RUN = 2048, 32
_PECULIAR = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def peculiar_characters(text: str) -> tuple[str, ...]:
    """Return the invisible and look-alike characters of `text` as `U+200B`, in order of first appearance, each once."""
    return tuple(dict.fromkeys(code_point(sign) for sign in _PECULIAR.findall(text)))


def visible(text: str, *, keep: str = "") -> str:
    r"""Return `text` with every invisible or look-alike character written out as `⟦U+200B⟧`.

    Args:
        text: any text of a report, a reply or a database row.
        keep: characters that stay as they are, `"\n\t"` where a whole text is shown and not a name.
    """
    return _PECULIAR.sub(lambda found: found[0] if found[0] in keep else f"⟦{code_point(found[0])}⟧", text)


def escape_peculiar(document: str) -> str:
    r"""Return an indented JSON document with invisible and look-alike characters as `\u200b`, which parse the same."""

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _PECULIAR.sub(lambda found: found[0] if found[0] == "\n" else escape(found), document)


def code_point(character: str) -> str:
    """Return the usual name of one character's code point: `U+` and at least four hexadecimal digits."""
    return f"U+{ord(character):04X}"


def compose(text: str) -> str:
    """Return the NFC of `text`, in a time that grows with its length alone.

    The standard library takes quadratic time for a run of combining marks that are out of order. No writing has long
    ones, so those are put in order beforehand, which is a part of NFC; the result is the same.
    """
    if len(text) < _LONG_TEXT:
        return normalize("NFC", text)
    return normalize("NFC", _run_of_marks().sub(lambda run: _in_order(run[0]), text))


def _in_order(marks: str) -> str:
    """Return marks decomposed one by one, then in the order of their classes, those of one class as they stood."""
    return "".join(sorted("".join(normalize("NFD", mark) for mark in marks), key=combining))


@cache
def _run_of_marks() -> re.Pattern[str]:
    """Return what finds a long run: characters that are marks, or decompose into nothing else."""
    marks = [code for code in range(0x300, 0x20000) if all(map(combining, normalize("NFD", chr(code))))]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges) + f"]{{{_LONG_RUN},}}")
