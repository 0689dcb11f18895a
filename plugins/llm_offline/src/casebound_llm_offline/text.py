"""Text as the rules see it: the fold of the look-up, loose keys for comparison, and tokens.

`fold` is the project's own rule (NFC, one-to-one lower case, NFC), so that what is equal here is equal in a look-up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from casebound.text import compose

MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094f\u200c\u200d"
TOKEN = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}]|['’\-‐·](?=[^\W_])|(?<=\d)[.,](?=\d))*")
HAN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
CASED = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]")
SENTENCE_END = frozenset(".!?…:;。！？：；•|")
_ELIDED = frozenset(("l", "d", "j", "n", "s", "c", "m", "t", "qu", "jusqu", "lorsqu", "dell", "all"))
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ß": "ss", "ё": "е", "ø": "o", "ł": "l"})


def fold(text: str) -> str:
    """Return what a literal look-up compares: NFC, lower case where that is one code point, NFC again."""
    composed = compose(text)
    if composed.isascii():
        return composed.lower()
    return compose("".join(low if len(low := char.lower()) == 1 else char for char in composed))


def loose(text: str) -> str:
    """Return `text` folded, without accents, ligatures, apostrophes and hyphens: for judging, never for looking up."""
    low = fold(text)
    if not low.isascii():
        low = unicodedata.normalize("NFKD", low.translate(_LIGATURES))
    return "".join(char for char in low if char.isalnum())


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text.

    Attributes:
        start, end: its place, half open, in code points.
        text: as written; `key` is its fold.
        upper: whether it starts in upper case.
        initial: whether it starts a sentence or line.
    """

    start: int
    end: int
    text: str
    key: str
    upper: bool
    initial: bool


def tokens(text: str, limit: int | None = None) -> Iterator[Token]:
    """Yield the words of the first `limit` code points of `text`, in order; each is looked at once."""
    last = 0
    initial = True
    for match in TOKEN.finditer(text, 0, len(text) if limit is None else min(limit, len(text))):
        start, end = match.span()
        gap = text[last : min(start, last + 40)]
        initial = last == 0 or "\n" in gap or any(char in SENTENCE_END for char in gap)
        word = match.group()
        yield Token(start, end, word, fold(word), word[0].isupper() or word[0].istitle(), initial)
        last = end


def bare(key: str) -> str:
    """Return a folded word without an elided article or pronoun before it (`l'objet` → `objet`)."""
    head, mark, rest = key.replace("’", "'").partition("'")
    return rest if mark and head in _ELIDED and len(rest) > 1 else key


def languages(texts: list[str], words: dict[str, frozenset[str]], limit: int = 20000) -> dict[str, float]:
    """Return each language's share of the function words, `zh` for Han script; empty where nothing shows."""
    counts = dict.fromkeys((*words, "zh"), 0)
    left = limit
    for text in texts:
        for token in tokens(text, left):
            for language, listed in words.items():
                counts[language] += token.key in listed
            counts["zh"] += bool(HAN.match(token.text)) * 3
        left -= len(text)
        if left <= 0:
            break
    total = sum(counts.values())
    return {language: count / total for language, count in counts.items() if count} if total else {}


def is_latin(text: str) -> bool:
    """Tell whether the text holds letters that have case, all of them of the Latin script."""
    letters = [char for char in text if char.isalpha()]
    latin = all(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in letters)
    return bool(CASED.search(text)) and latin


def is_lower(text: str, sample: int = 4000) -> bool:
    """Tell whether the text has cased letters but next to none in upper case, so that case says nothing about names."""
    part = text[:sample]
    letters = sum(char.isalpha() for char in part)
    return letters > 20 and not HAN.search(part) and sum(char.isupper() for char in part) * 80 < letters
