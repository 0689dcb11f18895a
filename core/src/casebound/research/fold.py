r"""What a literal look-up means (`literal_contains/1`): pure text, no database.

Rules:
- `fold` is NFC, then each code point in lower case where that is one code point, then NFC again. A name matches when
  the folded term occurs in the folded name. Accents, width, `%`, `_`, `\`, quotes and spaces are significant.
- The LIKE pattern is a pre-filter: it may let too much through and never too little. Only characters that have one
  spelling stay in it (ASCII but for three, most CJK ideographs); what a foreign sign may fold to, what has a case
  outside ASCII, what can be composed, and the wildcards become `%`. So it needs no escape character, on any database.
"""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

from casebound.errors import SettingsError
from casebound.text import code_point, compose

# KELVIN SIGN, GREEK QUESTION MARK and GREEK VARIA fold to the last three; the others are wildcards, or escape them.
_WIDENED_ASCII = frozenset("%_\\k;`")
_PATTERN_CHARACTERS = 200


def fold(text: str) -> str:
    """Return the form in which names are compared. Idempotent."""
    if text.isascii():
        return text.lower()
    return compose("".join(map(_lower, compose(text))))


def _lower(character: str) -> str:
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


def matches(term: str, name: str) -> bool:
    """Tell whether `name` contains `term`."""
    return fold(term) in fold(name)


def refused_character(text: str) -> str | None:
    """Return the first NUL or lone surrogate of `text` as `U+0000`, None where there is none."""
    return next((code_point(sign) for sign in text if sign == "\0" or "\ud800" <= sign <= "\udfff"), None)


def check_term(term: str) -> None:
    """Refuse a text that no database can be asked for.

    Raises:
        SettingsError: `CATALOG_TERM`: the text is empty, or holds the NUL or lone surrogate that the error names.
    """
    if not term:
        raise SettingsError("CATALOG_TERM", found="an empty text", hint="give a text of at least one character")
    sign = refused_character(term)
    if sign is not None:
        raise SettingsError("CATALOG_TERM", found=f"the character {sign}", where="the text to look up")


def prefilter_pattern(term: str, *, ideographs: bool = True) -> str:
    """Return a LIKE pattern, free of escapes, that every name containing `term` fits.

    Args:
        term: the text that is looked up; of a long one only the beginning takes part.
        ideographs: False keeps ASCII only, for a server whose encoding cannot hold CJK ideographs.
    """
    pattern = "%"
    for character in fold(term)[:_PATTERN_CHARACTERS]:
        if has_one_spelling(character) and (ideographs or character.isascii()):
            pattern += character
        elif not pattern.endswith("%"):
            pattern += "%"
    return pattern if pattern.endswith("%") else pattern + "%"


def has_one_spelling(character: str) -> bool:
    """Tell whether a folded `character` can stand in a pattern: only itself and its ASCII capital fold to it."""
    if character.isascii():
        return character not in _WIDENED_ASCII
    return "\u4e00" <= character <= "\u9fff" and character not in _ideographs_encoded_twice()


@cache
def _ideographs_encoded_twice() -> frozenset[str]:
    compatibility = (*range(0xF900, 0xFB00), *range(0x2F800, 0x2FA20))
    return frozenset("".join(normalize("NFC", chr(code)) for code in compatibility))
