"""Name-like spans of a text: candidates for a look-up, each with how name-like it is.

A span is a slice of its source, never changed. What makes one: runs of words in upper case with their connecting words,
quoted and bracketed text, parts of runs, upper-case words with the word that follows (for languages that write only the
first word of a name in upper case), names that machines have, and stretches of Han script between function characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from casebound_llm_offline.lexicon import (
    AND_WORDS,
    ARTICLES,
    COMMON_WORDS,
    CONNECTORS,
    HAN_BREAKS,
    HAN_LABELS,
    INDEFINITE,
    LOCATIVE,
    PERSONAL,
    POSSESSIVE,
    STOP_WORDS,
)
from casebound_llm_offline.machine import FAINT, SURE, is_value, machine_weight
from casebound_llm_offline.text import HAN, Token, bare, tokens

MAX_NAME = 60
MAX_WORDS = 10
QUOTED = re.compile(
    r"\"([^\"\n]{2,60})\"|“([^”\n]{2,60})”|„([^“”\n]{2,60})[“”]|«\s?([^»\n]{2,60}?)\s?»|\[([^\]\n]{2,60})\]"
    r"|「([^」\n]{2,60})」|『([^』\n]{2,60})』|【([^】\n]{2,60})】|《([^》\n]{2,60})》|`([^`\n]{2,60})`"
    r"|(?<![\w'])'([^'\n]{2,60})'(?![\w'])|(?<!\w)‘([^’\n]{2,60})’(?!\w)"
)
_INNER_GAP = frozenset(" \u00a0\"“”«»'")
_GENITIVE = "的"
_OWNED = re.compile(r"['’]s?$")
_BEFORE_PATH = frozenset("/\\~-@")
_AFTER_PATH = frozenset("/\\")
_HAN_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff·]{2,}")


@dataclass(frozen=True, slots=True)
class Span:
    """A name-like slice of a source.

    Attributes:
        start, end: its place in the source, half open.
        text: the slice.
        weight: how name-like it is, 0 to 1.
        quoted: whether it stands in quotation marks or brackets.
        cut: whether it is not whole words of the text: a last resort, for names that are written otherwise there.
    """

    start: int
    end: int
    text: str
    weight: float
    quoted: bool = False
    cut: bool = False


def spans_of(text: str, limit: int, first_upper: bool = False) -> Iterator[Span]:
    """Yield the name-like spans of the first `limit` code points.

    Args:
        text: a source's text.
        limit: how much of it is looked at.
        first_upper: whether names may go on in lower case after their first word (most languages but English).
    """
    yield from _quoted(text, limit)
    words: list[Token] = []
    for token in tokens(text, limit):
        if HAN.match(token.text):
            yield from _han(text, token)
            continue
        yield from _machine(text, token)
        if words and not _joins(text, words[-1], token):
            yield from _runs(text, words, first_upper)
            words = []
        words.append(token)
        if len(words) > 400:
            yield from _runs(text, words, first_upper)
            words = []
    yield from _runs(text, words, first_upper)


def _joins(text: str, left: Token, right: Token) -> bool:
    gap = text[left.end : right.start]
    return len(gap) <= 3 and all(char in _INNER_GAP for char in gap)


def _quoted(text: str, limit: int) -> Iterator[Span]:
    for match in QUOTED.finditer(text, 0, min(limit, len(text))):
        group = match.lastindex or 0
        inner = match.group(group)
        if inner.strip() and not is_value(inner.strip()):
            named = inner[0].isupper() or HAN.match(inner) or machine_weight(inner) > FAINT
            weight = 0.95 if named else 0.8 if text[match.start()] == "`" else 0.6
            yield Span(match.start(group), match.end(group), inner, weight, True)


def _machine(text: str, token: Token) -> Iterator[Span]:
    """Yield the name of a machine, and what it names after a word with a colon (`host:db01`)."""
    start = token.end - len(bare(token.key)) if len(token.key) == len(token.text) else token.start
    name = _OWNED.sub("", text[start : token.end])
    weight = machine_weight(name)
    if weight <= 0.0:
        return
    if text[start - 1 : start] in _BEFORE_PATH or text[start + len(name) : start + len(name) + 1] in _AFTER_PATH:
        weight = min(weight, FAINT)
    yield Span(start, start + len(name), name, weight)
    tail = name.rpartition(":")[2]
    if tail != name and machine_weight(tail) > FAINT:
        yield Span(start + len(name) - len(tail), start + len(name), tail, weight * 0.95)


# --- scripts with upper case ----------------------------------------------------------------------------------------


def _runs(text: str, words: list[Token], first_upper: bool) -> Iterator[Span]:
    """Yield the spans of a clause: words that nothing but spaces and quotes separates."""
    index = 0
    while index < len(words):
        if not words[index].upper:
            index += 1
            continue
        end = _run_end(words, index)
        yield from _run_spans(text, words, index, end)
        if first_upper:
            yield from _continued(text, words, index, end)
        index = end


def _run_end(words: list[Token], start: int) -> int:
    """Return the index after the run that starts here: upper-case words, joined by at most three connecting words."""
    end = start + 1
    while end < len(words) and end - start < MAX_WORDS:
        ahead = end
        while ahead < len(words) and ahead - end < 3 and words[ahead].key in CONNECTORS and not words[ahead].upper:
            ahead += 1
        coded = (
            machine_weight(words[end - 1].text) >= SURE
            or machine_weight(words[min(ahead, len(words) - 1)].text) >= SURE
        )
        if ahead == len(words) or (coded and ahead > end):
            break
        if not (
            words[ahead].upper or (words[ahead].text[0].isdigit() and words[ahead].text.isalnum() and ahead == end)
        ):
            break
        end = ahead + 1
    return end


def _run_spans(text: str, words: list[Token], start: int, end: int) -> Iterator[Span]:
    begin = start
    while begin < end and words[begin].initial and _is_opening(words[begin], end - begin):
        begin += 1
    while begin < end and words[begin].key in CONNECTORS and not words[begin].upper:
        begin += 1
    while end > begin and _is_trailing(words[end - 1]):
        end -= 1
    if begin == end:
        return
    yield _span(text, words, begin, end, _weight(words, begin, end))
    for left, right, factor in _parts(words, begin, end):
        yield _span(text, words, left, right, _weight(words, left, right) * factor)


def _is_trailing(token: Token) -> bool:
    """Tell whether a run's last word starts the next clause instead (`… the Lake I saw`)."""
    return len(token.text) == 1 and token.key in STOP_WORDS


def _is_opening(token: Token, left: int) -> bool:
    """Tell whether a sentence's first word is no part of the name that follows it."""
    if token.key in ARTICLES:
        return left > 2
    return token.key in STOP_WORDS or token.key in POSSESSIVE


def _seam(words: list[Token], begin: int, end: int) -> int | None:
    """Return where a run rather holds two names: an article or a word for "and" right after a name that is complete."""
    for index in range(begin + 1, end):
        if words[index].key in AND_WORDS:
            return index
        if words[index].key in ARTICLES and words[index - 1].key not in CONNECTORS and not words[index].initial:
            several = sum(1 for word in words[begin:index] if word.key not in CONNECTORS) > 1
            if several or words[index].upper or (begin and words[begin - 1].key in LOCATIVE):
                return index
    return None


def _parts(words: list[Token], begin: int, end: int) -> Iterator[tuple[int, int, float]]:
    """Yield the parts of a run that may be names, each with how likely that is."""
    seam = _seam(words, begin, end)
    if seam is not None:
        right = seam if words[seam].upper else seam + 1
        while right < end - 1 and words[right].key in CONNECTORS and not words[right].upper:
            right += 1
        yield begin, seam, 1.0
        if right < end:
            yield right, end, 1.0
        return
    if words[begin].initial and end - begin > 1 and words[begin + 1].key not in CONNECTORS:
        yield begin + 1, end, 0.72
    index = begin + 1
    while index < end:
        if words[index].key not in CONNECTORS and words[index].key not in ARTICLES:
            index += 1
            continue
        right = index
        while right < end - 1 and words[right].key in CONNECTORS and not words[right].upper:
            right += 1
        yield right, end, 0.7 if end - right > 1 or len(words[right].text) > 8 else 0.4
        yield begin, index, 0.5 if index - begin > 1 else 0.35
        index = right + 1


def _continued(text: str, words: list[Token], start: int, end: int) -> Iterator[Span]:
    """Yield a run with the lower-case words that follow it, for names whose later words are written so."""
    begin = start
    while begin < end and words[begin].initial and _is_opening(words[begin], 3):
        begin += 1
    if begin == end or end == len(words) or words[begin].key in COMMON_WORDS:
        return
    if end - begin == 1 and machine_weight(words[begin].text) >= SURE:
        return
    weight = 0.62 if words[begin].initial else 0.8
    vague = words[begin].key in STOP_WORDS or len(words[begin].text) < 5
    stop = end
    for _ in range(4):
        while stop < len(words) and words[stop].key in CONNECTORS and not words[stop].upper and stop - end < 4:
            stop += 1
            weight *= 0.85
        if (
            stop >= len(words)
            or not words[stop].text[0].isalpha()
            or machine_weight(words[stop].text) >= SURE
            or words[stop].end - words[begin].start > MAX_NAME
        ):
            return
        if words[stop].key in STOP_WORDS and not words[stop].upper:
            weight *= 0.7
        weight = min(0.8, weight * 1.15) if words[stop].upper else weight
        stop += 1
        yield _span(text, words, begin, stop, weight)
        weight *= 0.85 if vague else 0.7


def _weight(words: list[Token], begin: int, end: int) -> float:
    size = sum(1 for index in range(begin, end) if words[index].key not in CONNECTORS)
    first = words[begin]
    before = words[begin - 1].key if begin else ""
    if size >= 2:
        weight = 0.4 if _seam(words, begin, end) is not None else 0.95
        weight -= 0.05 * max(0, size - 5)
        return weight - (0.1 if first.initial and first.key in STOP_WORDS else 0.0)
    return _single_weight(first, before)


def _single_weight(word: Token, before: str) -> float:
    weight = 0.3 if word.initial else 0.75
    if word.key in COMMON_WORDS or word.key in STOP_WORDS or (word.text.isupper() and len(word.text) <= 4):
        return weight * 0.2
    if any(char in word.text for char in "'’-"):
        weight = max(weight, 0.6) + 0.1
    if before in LOCATIVE:
        weight *= 0.4
    if before in PERSONAL or before in INDEFINITE:
        weight *= 0.5
    if word.initial and len(word.text) >= 6 and not word.key.endswith(("ed", "ing", "ly")):
        weight += 0.15
    return weight


def _span(text: str, words: list[Token], begin: int, end: int, weight: float) -> Span:
    """Return the slice from word to word, with the marks that belong to it."""
    start, stop = words[begin].start, words[end - 1].end
    if start and text[start - 1] in "¡¿":
        start -= 1
    tail = re.match(r"[!?]+", text[stop : stop + 3])
    after = text[stop + 1 : stop + 3]
    if start and text[start - 1] == '"' and text[start:stop].count('"') == 1:
        start -= 1
    if tail and after[:1].isspace() and after[1:2].islower():  # a mark inside a sentence belongs to the name
        stop += tail.end()
        weight = min(1.0, weight + 0.35)
    return Span(start, stop, text[start:stop], weight)


# --- scripts without spaces -----------------------------------------------------------------------------------------


def _han(text: str, token: Token) -> Iterator[Span]:
    """Yield stretches of Han script: what function characters and label words leave of a clause."""
    for match in _HAN_RUN.finditer(text, token.start, token.end):
        chunk, start = match.group(), match.start()
        for label in HAN_LABELS:
            at = chunk.find(label)
            if at >= 0 and len(chunk) - at - len(label) >= 2:
                yield from _han_pieces(text, start + at + len(label), match.end(), 0.85)
        yield from _han_pieces(text, start, match.end(), 0.6)


def _han_pieces(text: str, start: int, end: int, weight: float) -> Iterator[Span]:
    left = start
    for index in range(start, end + 1):
        if index < end and text[index] not in HAN_BREAKS:
            continue
        yield from _han_piece(text, left, index, weight)
        left = index + 1


def _han_piece(text: str, start: int, end: int, weight: float) -> Iterator[Span]:
    """Yield a stretch, and what the genitive particle separates in it."""
    yield from _han_ends(text, start, end, weight)
    cuts = [start - 1, *(index for index in range(start, end) if text[index] == _GENITIVE), end]
    if len(cuts) > 2:
        for left, right in pairwise(cuts):
            yield from _han_ends(text, left + 1, right, weight - 0.05)


def _han_ends(text: str, start: int, end: int, weight: float) -> Iterator[Span]:
    """Yield a short stretch whole, and the ends of a long one, where a name may begin or stop."""
    size = end - start
    if 2 <= size <= 14:
        yield Span(start, end, text[start:end], weight - (0.15 if size == 2 else 0.0))
    if size >= 5 and _GENITIVE not in text[start:end]:
        head = 3 if size < 7 else 4
        yield Span(start, start + head, text[start : start + head], weight - 0.1, cut=True)
        yield Span(end - head, end, text[end - head : end], weight - 0.2, cut=True)
