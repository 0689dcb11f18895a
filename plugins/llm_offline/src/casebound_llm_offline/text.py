"""Text as the rules see it: loose keys for comparison, and tokens.

The fold is that of the look-up, `casebound.research.fold`, so that what is equal here is equal there. The name of a
machine (`machine.py`) is one token, and the address of a page is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from casebound.research.fold import fold

from casebound_llm_offline.machine import LONGEST, SURE, URL, machine_weight

MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094f\u200c\u200d"
TOKEN = re.compile(rf"[^\W_](?:[^\W_]|[{MARKS}]|['’\-‐·](?=[^\W_])|(?<=\d)[.,](?=\d))*")
_INNER = r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_CORE = re.compile(rf"{_INNER}+(?:[.\-‐]{_INNER}+)*")
_FULL = re.compile(rf"(?P<url>{URL})|{_CORE.pattern}(?:(?:/|::?|@){_CORE.pattern})*")
_UNIT = re.compile(rf"{_CORE.pattern}(?:[/@]{_CORE.pattern})*")
_OWNED = re.compile(r"['’]s?(?!\w)")
HAN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
CASED = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]")
SENTENCE_END = frozenset(".!?…:;。！？：；•|")
_ELIDED = frozenset(("l", "d", "j", "n", "s", "c", "m", "t", "qu", "jusqu", "lorsqu", "dell", "all"))
_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae", "ß": "ss", "ё": "е", "ø": "o", "ł": "l"})


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
    for start, end in _places(text, len(text) if limit is None else min(limit, len(text))):
        gap = text[last : min(start, last + 40)]
        initial = last == 0 or "\n" in gap or any(char in SENTENCE_END for char in gap)
        word = text[start:end]
        yield Token(start, end, word, fold(word), word[0].isupper() or word[0].istitle(), initial)
        last = end


def _places(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Yield where words stand: names of machines whole, the parts of other compounds one by one."""
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end -= 1  # the limit cuts no word
    at = 0
    full_until = core_until = 0  # how far the compound that is not one name reaches
    while word := TOKEN.search(text, at, end):
        begin = max(at, word.start() - (text[word.start() - 1 : word.start()] == "_"))
        other = _CORE.search(text, *word.span()) if HAN.match(word.group()) else None
        if other and machine_weight((_CORE.match(text, other.start(), end) or other).group()) > 0.0:
            yield word.start(), other.start()  # `主机db01.example.net`
            at = other.start()
            continue
        compound = None
        if begin >= core_until:
            compound = (_CORE if begin < full_until else _FULL).match(text, begin, end)
        if compound is None:
            yield word.span()
            at = word.end()
            continue
        if compound.re is _FULL and compound["url"]:
            at = compound.end()
            continue
        left, right = _unmarked(text, *compound.span())
        whole = right > word.end() or HAN.match(text, right, word.end())
        if whole and machine_weight(text[left:right]) > 0.0:
            yield left, right
            owned = _OWNED.match(text, right, end)
            at = owned.end() if owned else compound.end()
        elif compound.re is _FULL and compound.end() > word.end():
            full_until = compound.end()
            core = _CORE.match(text, begin, end)
            if core and core.end() == compound.end():
                core_until = full_until
        else:
            core_until = compound.end()
            yield word.span()
            at = word.end()


def unit_at(text: str, at: int) -> tuple[int, int]:
    """Return the place of the machine's name around `at` that holds no other name; empty where there is none."""
    low = max(0, at - LONGEST)
    for match in _UNIT.finditer(text, low, at + LONGEST):
        if match.start() > at:
            break
        left, right = _unmarked(text, *match.span())
        if right > at and machine_weight(text[left:right]) >= SURE:
            return left, right
    return at, at


def _unmarked(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place without underscores that stand around it as marks of emphasis."""
    while end > start and text[end - 1] == "_":
        end -= 1
        start += text[start] == "_" and start < end
    return start, end


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
