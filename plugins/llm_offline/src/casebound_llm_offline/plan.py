"""Plan: which names to look up, in which catalogs, within the limit.

Every pair of a name-like span and a catalog gets a value: how name-like the span is, times how well the catalog's type and
locale fit. The best pairs are the plan. A term is a slice of a source, so it is grounded by construction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from casebound_llm_offline.kinds import LABEL, PRIOR, Context, kind_of, labels_of, shape
from casebound_llm_offline.lexicon import AND_WORDS, ARTICLES, COMMON_WORDS, CONNECTORS, CUES_BEFORE, LANGUAGE_WORDS, STOP_WORDS
from casebound_llm_offline.roles import is_giver, role_for
from casebound_llm_offline.spans import Span, spans_of
from casebound_llm_offline.text import HAN, Token, bare, fold, is_latin, is_lower, languages, loose, tokens

Message = dict[str, Any]

_IRREGULAR = re.compile(r"[œæßŒÆẞёЁ’‘ʼ‐‑–—…]")
_PIECE = re.compile(r"[^\sœæßŒÆẞёЁ’‘ʼ‐‑–—…](?:[^œæßŒÆẞёЁ’‘ʼ‐‑–—…]*[^\sœæßŒÆẞёЁ’‘ʼ‐‑–—…])?")
_CUES = frozenset[str]().union(*CUES_BEFORE.values())
SCAN = 200_000  # code points that are searched for names; the searches are spent long before
MOST_SOURCES = 20  # sources that one search cites
LEAST = 0.28  # a pair of less value is not worth a look-up


@dataclass(slots=True)
class Term:
    """A text worth looking up, with the place where it was first seen.

    Attributes:
        text: the term.
        weight: how name-like its best occurrence is.
        order: rank of the first occurrence.
        source: index of the source of the best occurrence; `start` and `end` its place there.
        clues: per entity type, what stands around the occurrences.
        giver: 1 where the text around says that it gives, sends or reports something.
    """

    text: str
    weight: float
    order: int
    source: int
    start: int
    end: int
    title: bool
    clues: dict[str, float] = field(default_factory=dict)
    giver: float = 0.0


def answer(message: Message) -> dict[str, Any]:
    """Return the plan for a user message of stage `plan`: `{"searches": […]}`, never more than `limits.max_searches`."""
    sources = [source for source in message["sources"] if source["text"]]
    catalogs, limit = message["catalogs"], message["limits"]["max_searches"]
    if not catalogs or not message["roles"]:
        return {"searches": []}
    spoken = languages([source["text"] for source in sources], LANGUAGE_WORDS)
    terms = _terms(message, sources, spoken)
    pairs = _ranked(terms, catalogs, spoken, limit)
    leading = _leading([pair[1] for pair in pairs[:limit]], message)
    searches: list[dict[str, Any]] = []
    for _, term, catalog in pairs[:limit]:
        cited = _citations(term, sources)
        searches.append(
            {
                "catalog": catalog["name"],
                "term": term.text,
                "role": role_for(message["roles"], catalog["entity_type"], leading is term, term.giver > 0),
                "source_ids": cited,
                "reason": f"A name-like text of {cited[0]} that may name an entity of type {catalog['entity_type']}.",
            }
        )
    return {"searches": searches}


def _leading(terms: list[Term], message: Message) -> Term | None:
    """Return the term that most likely names the affected subject: of the title, of a settled name, or the first one."""
    known = [loose(name["name"]) for name in message["known_names"] if name["name"]]
    named = [term for term in terms if term.weight >= 0.6]

    def value(term: Term) -> tuple[bool, bool, float, int]:
        inside = any(loose(term.text) in name for name in known)
        return (term.title and " " in term.text, inside, term.title + term.weight - term.giver, -term.order)

    return max(named, key=value, default=None)


def _citations(term: Term, sources: list[dict[str, Any]]) -> list[str]:
    first = sources[term.source]["id"]
    others = [source["id"] for source in sources if source["id"] != first and term.text in source["text"]]
    return sorted([first, *others[: MOST_SOURCES - 1]], key=lambda alias: (alias[0] != "S", alias))


# --- which texts ----------------------------------------------------------------------------------------------------


def _terms(message: Message, sources: list[dict[str, Any]], spoken: dict[str, float]) -> list[Term]:
    """Return the terms, one a folded text, in order of first appearance."""
    known = {loose(name["name"]) for name in message["known_names"] if name["name"]}
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
            settled = any(loose(span.text) in name for name in known)
            for piece in [span] if settled else _variants(text, span, labels):
                _add(found, piece, index, source, known, types)
        for span in _lower(text, labels, left):
            _add(found, span, index, source, known, types)
        left -= len(text)
    return list(found.values())


def _variants(text: str, span: Span, labels: frozenset[str]) -> list[Span]:
    """Return the span without leading words for its type, and weaker spans that find misspelt or inflected names."""
    words = list(tokens(span.text))
    skip = 0
    while skip < len(words) - 1 and bare(words[skip].key) in labels:
        skip += 1
    if skip:
        start = span.start + words[skip].start
        span = Span(start, span.end, text[start : span.end], max(span.weight, 0.8))
        words = list(tokens(span.text))
    spans = [span, *_regular(span)]
    content = [word for word in words if word.key not in CONNECTORS and word.key not in STOP_WORDS]
    if len(content) > 1:
        for word in (content[-1], content[0]):
            start, end = span.start + word.start, span.start + word.end
            spans.append(Span(start, end, text[start:end], span.weight * (0.34 if len(word.text) > 4 else 0.24)))
    spans.extend(_shortened(text, span, words, content))
    return spans


def _regular(span: Span) -> list[Span]:
    """Return the longest part without letters and marks that are written in two ways, where there are any."""
    if not _IRREGULAR.search(span.text):
        return []
    part = max(_PIECE.finditer(span.text), key=lambda match: len(match.group()), default=None)
    if part is None or len(part.group()) < 4:
        return []
    return [Span(span.start + part.start(), span.start + part.end(), part.group(), span.weight * 0.9)]


def _shortened(text: str, span: Span, words: list[Token], content: list[Token]) -> list[Span]:
    """Return the beginning of a name whose end may be inflected or misspelt."""
    last = words[-1] if words else None
    if last is None or HAN.match(last.text):
        return []
    cuts: list[tuple[int, float]] = []
    if len(content) > 1 and len(content[1].text) > 5:
        cuts.append((content[1].start + 4, 0.4))
    if len(last.text) >= 5 and (last.key.endswith(("s", "n", "e")) or not last.text.isascii()):
        certain = len(content) == 1 and len(last.text) > 8 and last.key.endswith(("s", "n"))
        inflected = len(content) == 1 and last.key[-1] in "аеиоуыьйяюієї"
        cuts.append((last.end - 1, 0.85 if inflected else 0.65 if certain else 0.4))
    ends = [(span.start + cut, factor) for cut, factor in cuts if text[span.start + cut - 1] not in "'’-"]
    return [Span(span.start, end, text[span.start : end], span.weight * factor) for end, factor in ends]


def _lower(text: str, labels: frozenset[str], limit: int) -> Iterator[Span]:
    """Yield lower-case names: what follows a word for a type, and the rarer words of a text without upper case."""
    plain = is_lower(text)
    run: list[Token] = []
    trust = 0.0  # how much the words before speak for a name
    for token in tokens(text, limit):
        if HAN.match(token.text):
            continue
        gap = text[run[-1].end : token.start] if run else " "
        inside = bool(run) and plain and trust > 0 and token.key in CONNECTORS and token.key not in AND_WORDS
        stops = (bare(token.key) in STOP_WORDS or bare(token.key) in COMMON_WORDS or token.key in labels) and not inside
        if run and (stops or gap.strip(" :\"") or len(run) > 5):
            yield from _lower_run(text, run, trust)
            run, trust = [], 0.0
        if not stops and not token.upper and (plain or trust or run):
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
        odd = 0.15 if "'" in word.text or "-" in word.text else 0.0
        if len(word.text) >= 5 and not word.key.endswith(("ed", "ing", "ly")):
            yield Span(word.start, word.end, word.text, 0.3 + odd)


def _add(found: dict[str, Term], span: Span, index: int, source: dict[str, Any], known: set[str], types: list[str]) -> None:
    text = span.text
    key = fold(text)
    if loose(text) in known or not 2 <= len(text) <= 80 or not _is_searchable(text):
        return
    title = source["kind"] == "title"
    weight = min(1.0, span.weight + (0.1 if title else 0.0))
    if " " in text and any(loose(text) in name for name in known):
        weight = max(weight, 0.9)  # what a settled name holds may be what the report is about
    term = found.get(key)
    if term is None:
        term = found[key] = Term(text, weight, len(found), index, span.start, span.end, title)
    elif weight > term.weight:
        term.weight = weight
    else:
        term.weight = min(1.0, term.weight + 0.02)
    around = Context(source["text"], span.start, span.end)
    term.giver = max(term.giver, float(is_giver(around)))
    for each in types:
        term.clues[each] = max(term.clues.get(each, 0.0), around.clue(each))
    if 0.4 <= span.weight < 0.6 and " " not in text and max(term.clues.values(), default=0.0) >= 1.0:
        term.weight = max(term.weight, 0.62)  # a sentence's first word, but treated like a name


def _is_searchable(text: str) -> bool:
    return text.isprintable() and text == text.strip() and any(char.isalnum() for char in text)


# --- in which catalogs ----------------------------------------------------------------------------------------------


def _ranked(terms: list[Term], catalogs: list[dict[str, Any]], spoken: dict[str, float], limit: int) -> list[tuple[float, Term, dict[str, Any]]]:
    """Return the pairs worth a look-up, best first; later catalogs of one term count less, so that names come in breadth."""
    pairs = []
    strong = sum(term.weight >= 0.6 for term in terms)
    step = 0.07 if strong * len(catalogs) <= 2 * limit else 0.16
    both = len({bool(catalog["locale"]) for catalog in catalogs}) == 2
    for term in terms:
        label = max(term.clues.values(), default=0.0) >= LABEL * 0.75
        valued = []
        for catalog in catalogs:
            clue = term.clues.get(catalog["entity_type"], 0.0)
            fit = _locale_fit(term.text, bool(catalog["locale"]), spoken) if both else 1.0
            fit *= 1.0 + 0.08 * min(clue, LABEL) + 0.2 * _kind_fit(term.text, catalog["entity_type"])
            if label and clue < LABEL * 0.75:
                fit *= 0.5
            valued.append((term.weight * fit, catalog))
        valued.sort(key=lambda item: -item[0])
        for rank, (value, catalog) in enumerate(valued):
            pairs.append((value * (1.0 - step * min(rank, 4)), term, catalog))
    pairs = [pair for pair in pairs if pair[0] >= LEAST]
    pairs.sort(key=lambda pair: (-round(pair[0], 6), pair[1].order, pair[2]["name"]))
    return pairs


def _kind_fit(text: str, entity_type: str) -> float:
    kind = kind_of(entity_type)
    return shape(text, kind) + PRIOR[kind]


def _locale_fit(text: str, has_locale: bool, spoken: dict[str, float]) -> float:
    """Return how likely a catalog with (or without) locales names things in the language of the text."""
    english = spoken.get("en", 0.0)
    if not text.isascii() and (HAN.search(text) or not is_latin(text)):
        return 1.0 if has_locale else 0.1
    if not spoken:
        return 0.7 if has_locale else 1.0
    if english >= 0.6:
        return (0.15 if text.isascii() else 0.6) if has_locale else 1.0
    if spoken.get("ru", 0.0) + spoken.get("zh", 0.0) > 0.5:
        return 0.3 if has_locale else 1.0
    return 1.0 if has_locale else 0.45

