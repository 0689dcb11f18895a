"""Terms: the texts of a report that are worth a look-up, each with how much speaks for it.

A term is a slice of a source, of whole words. A name is also found by one of its words, which helps where the report
misspells it, and as a last resort without an ending that inflects it: such a term is `cut`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from casebound.research.fold import fold

from casebound_llm_offline.kinds import Context, labels_of
from casebound_llm_offline.lexicon import (
    AND_WORDS,
    ARTICLES,
    COMMON_WORDS,
    CONNECTORS,
    CUES_BEFORE,
    GIVING_AFTER,
    STOP_WORDS,
)
from casebound_llm_offline.machine import SURE, is_value, machine_weight
from casebound_llm_offline.roles import is_giver
from casebound_llm_offline.spans import Span, spans_of
from casebound_llm_offline.text import HAN, Token, bare, is_lower, loose, tokens

_IRREGULAR = re.compile(r"[œæßŒÆẞёЁ’‘ʼ‐‑–—…]")
_PIECE = re.compile(r"\w+")
_CUES = frozenset[str]().union(*CUES_BEFORE.values())
SCAN = 200_000  # code points that are searched for names; the searches are spent long before
MOST_PLACES = 6  # places of one term that are looked at


@dataclass(slots=True)
class Term:
    """A text worth looking up, with what its places say about it.

    Attributes:
        text: the term.
        weight: how name-like its best occurrence is.
        order: rank of the first occurrence.
        source: index of the source of the first occurrence.
        title: whether that is the report's title.
        clues: per entity type, what stands around the occurrences.
        seen: at how many places it stands.
        quoted: whether it stands in quotation marks or brackets somewhere.
        settled: types of cited entities whose name holds the term.
        giver: 1 where the text around says that it gives, sends or reports something.
        cut: whether it nowhere stands as whole words.
    """

    text: str
    weight: float
    order: int
    source: int
    title: bool
    clues: dict[str, float] = field(default_factory=dict)
    giver: float = 0.0
    seen: int = 0
    quoted: bool = False
    settled: set[str] = field(default_factory=set)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The name of an entity that the report cites by its id: it needs no look-up, what it holds may.

    Attributes:
        key: the name's loose form; `words` are those of its words.
        entity_type: the entity's type.
    """

    key: str
    words: frozenset[str]
    entity_type: str

    def holds(self, text: str) -> bool:
        """Tell whether the name holds `text`, word for word."""
        return loose(text) in self.key and all(loose(word.text) in self.words for word in tokens(text))


def settled_names(message: dict[str, Any]) -> list[Settled]:
    """Return the names that the database gave for cited ids, where the message tells them: from protocol 4 on."""
    names = [(name["name"], name["type"]) for name in message.get("known_names", ()) if name["name"]]
    return [Settled(loose(name), frozenset(loose(word.text) for word in tokens(name)), kind) for name, kind in names]


def terms_of(message: dict[str, Any], sources: list[dict[str, Any]], spoken: dict[str, float]) -> list[Term]:
    """Return the terms, one a folded text, in order of first appearance."""
    settled = settled_names(message)
    types = sorted({catalog["entity_type"] for catalog in message["catalogs"]})
    labels = frozenset[str]().union(*(labels_of(each) for each in types))
    first_upper = spoken.get("en", 0.0) < 0.6
    found: dict[str, Term] = {}
    left = SCAN
    for index, source in enumerate(sources):
        if left <= 0:
            break
        text = source["text"]
        for span in spans_of(text, left, first_upper):
            known = any(name.holds(span.text) for name in settled)
            for piece in [span] if known else _variants(text, span, labels):
                _add(found, piece, index, source, settled, types)
        for span in _lower(text, labels, left):
            _add(found, span, index, source, settled, types)
        left -= len(text)
    return list(found.values())


def _variants(text: str, span: Span, labels: frozenset[str]) -> list[Span]:
    """Return the span without leading words for its type, and weaker spans that find misspelt or inflected names."""
    if span.text.partition(":")[0].lower() in labels and machine_weight(span.text) > 0.0:
        return []  # `host:db01`: what follows is a span of its own
    words = list(tokens(span.text))
    skip = 0
    while skip < len(words) - 1 and bare(words[skip].key) in labels:
        skip += 1
    if skip:
        start = span.start + words[skip].start
        span = Span(start, span.end, text[start : span.end], max(span.weight, 0.8))
        words = list(tokens(span.text))
    if machine_weight(span.text) >= SURE:
        return [span]
    spans = [span, *_regular(span, words)]
    content = [word for word in words if word.key not in CONNECTORS and word.key not in STOP_WORDS]
    if len(content) > 1:
        for word in (content[-1], content[0]):
            start, end = span.start + word.start, span.start + word.end
            spans.append(
                Span(start, end, text[start:end], span.weight * (0.34 if len(word.text) > 4 else 0.24), cut=span.quoted)
            )
    spans.extend(_uninflected(text, span, words, content))
    return spans


def _regular(span: Span, words: list[Token]) -> list[Span]:
    """Return the longest parts without letters and marks that are written in two ways, where there are any."""
    if not _IRREGULAR.search(span.text):
        return []
    return [*_longest(span, words, cut=False), *_longest(span, list(_PIECE.finditer(span.text)), cut=True)]


def _longest(span: Span, pieces: list[Token] | list[re.Match[str]], cut: bool) -> list[Span]:
    """Return the longest stretch of neighbouring pieces that are written in one way only."""
    best = (0, 0)
    start = None
    for piece in pieces:
        left, right = (piece.start, piece.end) if isinstance(piece, Token) else piece.span()
        if _IRREGULAR.search(span.text, left, right):
            start = None
            continue
        if start is None or _IRREGULAR.search(span.text, start, right):
            start = left
        best = max(best, (start, right), key=lambda place: place[1] - place[0])
    left, right = best
    if right - left < 4:
        return []
    return [Span(span.start + left, span.start + right, span.text[left:right], span.weight * 0.9, cut=cut)]


def _uninflected(text: str, span: Span, words: list[Token], content: list[Token]) -> list[Span]:
    """Return a name without the last letter of its last word, where that may be an inflection."""
    last = words[-1] if words else None
    if last is None or HAN.match(last.text) or last.end != len(span.text) or machine_weight(last.text) >= SURE:
        return []
    if len(last.text) < 5 or not (last.key.endswith(("s", "n", "e")) or not last.text.isascii()):
        return []
    certain = len(content) == 1 and len(last.text) > 8 and last.key.endswith(("s", "n"))
    inflected = len(content) == 1 and last.key[-1] in "аеиоуыьйяюієї"
    factor = 0.85 if inflected else 0.65 if certain else 0.4
    end = span.end - 1
    if text[end - 1] in "'’-":
        return []
    return [Span(span.start, end, text[span.start : end], span.weight * factor, cut=True)]


def _lower(text: str, labels: frozenset[str], limit: int) -> Iterator[Span]:
    """Yield lower-case names: what follows a word for a type, and the rarer words of a text without upper case."""
    plain = is_lower(text)
    run: list[Token] = []
    trust = 0.0  # how much the words before speak for a name
    for token in tokens(text, limit):
        if HAN.match(token.text) or machine_weight(token.text) >= SURE:
            if run:
                yield from _lower_run(text, run, trust)
            run, trust = [], 0.0
            continue
        gap = text[run[-1].end : token.start] if run else " "
        inside = bool(run) and plain and trust > 0 and token.key in CONNECTORS and token.key not in AND_WORDS
        stops = (bare(token.key) in STOP_WORDS or bare(token.key) in COMMON_WORDS or token.key in labels) and not inside
        stops = stops or (plain and token.key in GIVING_AFTER)
        if run and (stops or gap.strip(' :"') or len(run) > 5):
            yield from _lower_run(text, run, trust)
            run, trust = [], 0.0
        if not stops and not token.upper and (run or ((plain or trust) and not is_value(token.text))):
            run.append(token)
        elif token.key in labels:
            trust = 0.8 if plain or text[token.end : token.end + 1] == ":" else 0.4
        elif plain and token.key in _CUES:
            trust = 0.5
        elif token.key not in ARTICLES:
            trust = 0.0
    if run:
        yield from _lower_run(text, run, trust)


def _lower_run(text: str, run: list[Token], labelled: float) -> Iterator[Span]:
    while len(run) > 1 and run[-1].key in CONNECTORS:
        run.pop()
    start, end = run[0].start, run[-1].end
    whole = (labelled or 0.4) if len(run) > 1 else labelled * 0.8 or 0.2
    yield Span(start, end, text[start:end], whole)
    if labelled and len(run) > 2:
        yield Span(start, run[1].end, text[start : run[1].end], labelled * 0.8)
    for word in run:
        odd = 0.15 if "'" in word.text or machine_weight(word.text) > 0.0 else 0.0
        if len(word.text) >= 5 and not word.key.endswith(("ed", "ing", "ly")):
            yield Span(word.start, word.end, word.text, 0.3 + odd)


def _add(
    found: dict[str, Term], span: Span, index: int, source: dict[str, Any], settled: list[Settled], types: list[str]
) -> None:
    text = span.text
    key = fold(text)
    if any(name.key == loose(text) for name in settled) or not 2 <= len(text) <= 80 or not _is_searchable(text):
        return
    title = source["kind"] == "title"
    weight = min(1.0, span.weight + (0.1 if title else 0.0))
    inside = [name for name in settled if " " in text and name.holds(text)]
    if inside:
        weight = max(weight, 0.9)  # what a settled name holds may be what the report is about
    elif source["kind"] == "project_description":
        weight *= 0.6  # the report itself comes first
    term = found.get(key)
    if term is None:
        term = found[key] = Term(text, weight, len(found), index, title, cut=span.cut)
    if term.cut and not span.cut:  # from here on it is known by the place where it is whole
        term.text, term.source, term.weight, term.title, term.cut = text, index, weight, title, False
    term.seen += 1
    term.quoted |= span.quoted
    term.settled.update(name.entity_type for name in inside)
    if term.seen > MOST_PLACES:
        return
    term.weight = weight if weight > term.weight else min(1.0, term.weight + 0.02)
    around = Context(source["text"], span.start, span.end)
    if machine_weight(text) <= 0.0:  # `web-front-1 gives 502`
        term.giver = max(term.giver, float(is_giver(around)))
    for each in types:
        term.clues[each] = max(term.clues.get(each, 0.0), around.clue(each))
    if 0.4 <= span.weight < 0.6 and " " not in text and max(term.clues.values(), default=0.0) >= 1.0:
        term.weight = max(term.weight, 0.62)  # a sentence's first word, but treated like a name


def _is_searchable(text: str) -> bool:
    return text.isprintable() and text == text.strip() and "://" not in text and not is_value(text)
