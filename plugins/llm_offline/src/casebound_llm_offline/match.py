"""Where a candidate's name stands in a text, and how surely.

Levels, best first:
- `EXACT`: the whole name, letter case aside, between word boundaries;
- `LIKE`: the same words but for accents, marks, inflection and connecting words;
- `TYPO`: the same words, some of them misspelt;
- `PART`: the text names only the beginning of the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from casebound.research.fold import fold
from casebound.text import compose

from casebound_llm_offline.lexicon import ARTICLES, CONNECTORS
from casebound_llm_offline.machine import SURE, machine_weight
from casebound_llm_offline.text import HAN, Token, loose, tokens, unit_at

_DIGITS = re.compile(r"\d+")
_CODED = re.compile(r"(?:[._/:@]|::)(?=\w)")
EXACT, LIKE, TYPO, PART = 3, 2, 1, 0
MOST_PLACES = 40
WINDOW = 70


class Text:
    """A source's text, folded once.

    Attributes:
        folded: what the look-up compares.
        shown: the text in the same places with its letter case, where folding keeps the places.
    """

    def __init__(self, text: str) -> None:
        self.folded = fold(text)
        composed = compose(text)
        self.shown = composed if len(composed) == len(self.folded) else self.folded


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name stands: half-open in `Text.folded`, and how surely it does."""

    start: int
    end: int
    level: int


def places_of(text: Text, name: str, term: str) -> list[Place]:
    """Return where `name`, found by looking for `term`, stands in `text`: best and less sure places alike."""
    wanted = fold(name).strip()
    exact = [
        Place(at, at + len(wanted), EXACT)
        for at in _finds(text.folded, wanted)
        if _is_whole(text.folded, at, len(wanted)) and not _is_inside(text.shown, at, len(wanted))
    ]
    if not wanted:
        return []
    size = len(fold(term))
    places = set(exact)
    for at in _finds(text.folded, fold(term)):
        place = None if _is_inside(text.shown, at, size) else _aligned(text.folded, wanted, at, size)
        if place and not any(place.start < other.end and other.start < place.end for other in exact):
            places.add(place)
    least = PART if not exact else TYPO
    return sorted((place for place in places if place.level >= least), key=lambda place: (place.start, place.end))


def _finds(text: str, part: str) -> Iterator[int]:
    at = text.find(part) if part else -1
    count = 0
    while at >= 0 and count < MOST_PLACES:
        yield at
        count += 1
        at = text.find(part, at + 1)


def _is_whole(text: str, start: int, size: int) -> bool:
    end = start + size
    left = start and _is_one_word(text[start - 1], text[start])
    right = end < len(text) and _is_one_word(text[end - 1], text[end])
    return not left and not right


def _is_one_word(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not HAN.match(left) and not HAN.match(right)


def _is_inside(text: str, start: int, size: int) -> bool:
    """Tell whether the place begins or ends inside the name of a machine, which holds no other name."""
    begin, stop = unit_at(text, start)
    if begin < start < stop or start + size < stop:
        return True
    begin, stop = unit_at(text, start + size - 1)
    return begin < start or stop > start + size


def _aligned(text: str, name: str, at: int, size: int) -> Place | None:
    """Return the best place where the words of `name` stand around the term that was found at `at`."""
    words = [word for word in tokens(name) if _counts(word)]
    if not words or HAN.search(name):
        return None
    low = max(0, at - WINDOW)
    around = [word for word in tokens(text[low : at + size + WINDOW]) if _counts(word)]
    best: Place | None = None
    for first in range(len(around)):
        place = _compare(words, around, first, low)
        if place and place.start < at + size and place.end > at and (best is None or place.level > best.level):
            best = place
    return best or _part(words, around, low, at, size)


def _counts(word: Token) -> bool:
    return word.key not in CONNECTORS and word.key not in ARTICLES


def _compare(words: list[Token], around: list[Token], first: int, low: int) -> Place | None:
    if first + len(words) > len(around):
        return None
    level = LIKE
    for word, seen in zip(words, around[first:], strict=False):
        level = min(level, likeness(word.key, seen.key))
        if level < TYPO:
            return None
    last = around[first + len(words) - 1]
    if last.end - around[first].start > 1.6 * sum(len(word.text) + 1 for word in words) + 8:
        return None
    return Place(low + around[first].start, low + last.end, level)


def _part(words: list[Token], around: list[Token], low: int, at: int, size: int) -> Place | None:
    """Return the term's words where they are whole words that begin the name."""
    seen = [word for word in around if low + word.start < at + size and low + word.end > at]
    if not seen or len(seen) >= len(words):
        return None
    head = all(likeness(word.key, other.key) >= LIKE for word, other in zip(words, seen, strict=False))
    coded = any(machine_weight(word.text) >= SURE for word in seen)
    return Place(low + seen[0].start, low + seen[-1].end, PART) if head and not coded else None


@lru_cache(maxsize=8192)
def likeness(left: str, right: str) -> int:
    """Return `LIKE` for the same word, inflected or accented otherwise, `TYPO` for a misspelling, else -1.

    What machines and numbers are called differs by one sign from what others are called: there only the same is alike.
    """
    if left == right:
        return LIKE
    if _DIGITS.findall(left) != _DIGITS.findall(right) or _CODED.search(left) or _CODED.search(right):
        return -1
    parts = left.split("-"), right.split("-")
    if len(parts[0]) == len(parts[1]) > 1:
        return min(likeness(one, two) for one, two in zip(*parts, strict=True))
    one, two = loose(left), loose(right)
    if one == two and one:
        return LIKE
    short, long = sorted((one, two), key=len)
    common = next((index for index, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) >= 4 and _is_inflection(short[common:], long[common:], common, short.isascii()):
        return LIKE
    allowed = 2 if len(short) >= 8 else 1 if len(short) >= 5 else 0
    if (
        allowed
        and common
        and len(long) - len(short) <= allowed + 1
        and distance(short, long) <= allowed + (len(long) > 9)
    ):
        return TYPO
    return -1


def _is_inflection(short: str, long: str, common: int, ascii_only: bool) -> bool:
    """Tell whether two words that part after `common` letters differ in their endings only."""
    if ascii_only:
        return not short and long in {"s", "es", "n", "en", "e", "er", "em", "ens"}
    return common >= 3 and len(short) <= 2 and len(long) <= 3


def distance(left: str, right: str, most: int = 4) -> int:
    """Return how many letters must be changed, added or removed; anything above `most` may be reported as `most`."""
    if abs(len(left) - len(right)) >= most or max(len(left), len(right)) > 40:
        return most
    row = list(range(len(right) + 1))
    for count, one in enumerate(left, 1):
        last, row[0] = row[0], count
        for index, two in enumerate(right, 1):
            last, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, last + (one != two))
    return min(row[-1], most)
