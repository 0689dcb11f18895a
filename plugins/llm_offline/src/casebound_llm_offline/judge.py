"""Judging a named place: is it a name at all, of which type, and of one id only?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casebound.research.fold import fold

from casebound_llm_offline.kinds import LABEL, PRIOR, kind_of, shape
from casebound_llm_offline.lexicon import (
    ARTICLES,
    COMMON_WORDS,
    CONNECTORS,
    INDEFINITE,
    LANGUAGE_WORDS,
    LOCATIVE,
    PERSONAL,
    STOP_WORDS,
)
from casebound_llm_offline.machine import machine_weight
from casebound_llm_offline.match import EXACT, PART, TYPO, Text
from casebound_llm_offline.text import HAN, is_lower, languages, tokens

if TYPE_CHECKING:
    from casebound_llm_offline.assess import Found, Key

MARGIN = 0.45  # how much better one type must fit than the next, where several types share a name
DETERMINERS = ARTICLES | INDEFINITE | {"that", "this", "some", "any", "those", "these"}
QUOTES = ("``", '""', "''", "“”", "„“", "„”", "‘’", "«»", "「」", "『』", "【】", "《》", "[]")
VERBAL = ("ed", "ing", "ly")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of one entity.

    Attributes:
        status: `selected` or `ambiguous`.
        name: the name by which it was found.
        reason: one sentence.
        sources: aliases of the sources that name it.
        order: rank of its first place.
    """

    status: str
    name: str
    reason: str
    sources: tuple[str, ...]
    order: int


@dataclass(frozen=True, slots=True)
class Style:
    """How a report writes: whether it writes all nouns in upper case, and which sources have no upper case at all."""

    nouns_upper: bool
    lower_only: frozenset[str]


def judge(found: Iterable[Found], texts: Mapping[str, Text], cited: Collection[Key] = ()) -> dict[Key, Verdict]:
    """Return a verdict for each entity that may be meant; what is absent is not meant.

    Args:
        found: the places of names.
        texts: the sources by alias.
        cited: entities that the report cites by their id: where several bear a name, the cited one is meant.
    """
    style = _style(texts)
    groups: dict[tuple[str, int], list[Found]] = {}
    for each in found:
        groups.setdefault((fold(each.shown), each.level), []).append(each)
    verdicts: dict[Key, Verdict] = {}
    for order, ((_, level), places) in enumerate(sorted(groups.items(), key=lambda item: -item[0][1])):
        for key, verdict in _group(places, level, order, style, cited).items():
            known = verdicts.get(key)
            if known is None or (known.status == "ambiguous" and verdict.status == "selected" and level == EXACT):
                verdicts[key] = verdict
    return _without_short_forms(verdicts)


def _without_short_forms(verdicts: dict[Key, Verdict]) -> dict[Key, Verdict]:
    """Drop a name that ends a selected longer name of its type: the text most likely shortens the longer one."""
    longer = {(key[0], fold(verdict.name)) for key, verdict in verdicts.items() if verdict.status == "selected"}
    return {
        key: verdict
        for key, verdict in verdicts.items()
        if not any(key[0] == kind and name.endswith(" " + fold(verdict.name)) for kind, name in longer)
    }


def _style(texts: Mapping[str, Text]) -> Style:
    spoken = languages([text.shown for text in texts.values()], LANGUAGE_WORDS)
    return Style(spoken.get("de", 0.0) > 0.5, frozenset(alias for alias, text in texts.items() if is_lower(text.shown)))


def _group(places: list[Found], level: int, order: int, style: Style, cited: Collection[Key]) -> dict[Key, Verdict]:
    """Return the verdicts for one text that stands at all `places`."""
    names: dict[Key, str] = {}
    for place in places:
        for key, name in place.names.items():
            names.setdefault(key, name)
    fits = {kind: _fit(kind, places) for kind in sorted({key[0] for key in names})}
    if not any(_is_meant(place, fits, level, style) for place in places):
        return {}
    sources = tuple(dict.fromkeys(place.source for place in places))
    kinds = sorted(fits, key=lambda kind: -fits[kind])
    shared = len(kinds) > 1 and fits[kinds[0]] - fits[kinds[1]] < MARGIN
    best = kinds if shared else kinds[:1]
    keys = [key for key in names if key[0] in best]
    if level == PART and (len(names) > 1 or not all(_stands_alone(place) for place in places)):
        return {}
    chosen = [key for key in keys if key in cited]
    if len(keys) > 1 and len(chosen) == 1:
        return {chosen[0]: Verdict("selected", names[chosen[0]], "The report cites this id.", sources, order)}
    if len(keys) > 1:
        why = "types" if shared else "ids"
        reason = f"Several {why} bear this name and the text does not tell them apart."
        return {key: Verdict("ambiguous", names[key], reason, sources, order) for key in keys}
    return {key: Verdict("selected", names[key], _REASONS[level], sources, order) for key in keys}


_REASONS = {
    EXACT: "The text holds this name in full and no other candidate bears it.",
    2: "The text holds this name but for inflection, accents or marks.",
    TYPO: "The text holds this name misspelt, and no other candidate is near.",
    PART: "The text holds a part of this name, and no other candidate holds it.",
}


def _fit(entity_type: str, places: list[Found]) -> float:
    kind = kind_of(entity_type)
    clue = max(place.around.clue(entity_type) for place in places)
    return clue + shape(places[0].shown, kind) + PRIOR[kind]


def _stands_alone(place: Found) -> bool:
    """Tell whether no neighbouring word in upper case belongs to the name that the text begins."""
    marked = any(char in place.shown for char in "'’-") or " " in place.shown
    return marked and not place.around.upper_beside


def _is_meant(place: Found, fits: dict[str, float], level: int, style: Style) -> bool:
    """Tell whether the place reads like a name and not like a common word or a mere location."""
    if level == EXACT and _is_set_apart(place):
        return True
    label = max(place.around.clue(kind) for kind in fits) >= LABEL * 0.6
    words = [token for token in tokens(place.shown) if token.key not in CONNECTORS and token.key not in ARTICLES]
    if HAN.search(place.shown):
        return _is_han_meant(place, label)
    if not words:
        return False
    before = place.around.before[0] if place.around.before else ""
    scenery = all(kind_of(kind) == "object" for kind in fits)
    if _is_located(place.around.before) and not label and (scenery or len(words) == 1 or level < EXACT):
        return False
    if len(words) > 1 and place.source in style.lower_only and not label:
        cued = max(place.around.clue(kind) for kind in fits) >= 1.0
        return cued or not DETERMINERS & set(place.around.before[:2])
    if len(words) > 1:
        return any(word.upper for word in words) or label
    return _is_single_meant(place, words[0].key, before, label, level, style)


def _is_set_apart(place: Found) -> bool:
    """Tell whether the place has the shape of a machine's name, or quotation marks around it."""
    marks = place.around.left[-1:], place.around.right[:1]
    return machine_weight(place.shown) > 0.0 or (all(marks) and marks[0] + marks[1] in QUOTES)


def _is_located(before: list[str]) -> bool:
    """Tell whether a word for a place, with or without an article, stands right before."""
    return bool(before) and (
        before[0] in LOCATIVE or (before[0] in ARTICLES and before[1:2] != [] and before[1] in LOCATIVE)
    )


def _is_single_meant(place: Found, word: str, before: str, label: bool, level: int, style: Style) -> bool:
    marked = any(char in place.shown for char in "'’-!") or any(char.isdigit() for char in place.shown[1:])
    if label and level == EXACT:
        return len(word) > 2
    if word in STOP_WORDS or word in COMMON_WORDS:
        return marked and place.shown.isupper()
    upper = place.shown[:1].isupper()
    if not upper and not (place.source in style.lower_only and len(word) > 5):
        return False
    if before in PERSONAL or before in INDEFINITE:
        return False
    if level < EXACT:
        return len(word) > 6 or marked
    if style.nouns_upper:
        return len(word) > 8 or marked
    initial = not place.around.before
    return not (initial and word.endswith(VERBAL)) and len(word) > 3


def _is_han_meant(place: Found, label: bool) -> bool:
    return label or len(place.shown) > 2
