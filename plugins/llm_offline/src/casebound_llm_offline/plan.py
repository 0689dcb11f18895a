"""Plan: which names to look up, in which catalogs, within the limit.

Every pair of a term and a catalog gets a value: how name-like the term is, times how well the catalog's type and locale
fit. The best pairs are the plan. A term is a slice of a source, so it is grounded by construction; one that is cut
inside a word comes after all others, and only where the limit is generous.
"""

from __future__ import annotations

from typing import Any

from casebound_llm_offline.kinds import LABEL, PRIOR, kind_of, shape
from casebound_llm_offline.lexicon import LANGUAGE_WORDS
from casebound_llm_offline.roles import role_for
from casebound_llm_offline.terms import Term, terms_of
from casebound_llm_offline.text import HAN, is_latin, languages

Message = dict[str, Any]

MOST_SOURCES = 20  # sources that one search cites
GENEROUS = 12  # with fewer searches, only whole words are looked up
LEAST = 0.28  # a pair of less value is not worth a look-up


def answer(message: Message) -> dict[str, Any]:
    """Return the plan for a user message of stage `plan`, with at most `limits.max_searches` searches."""
    sources = [source for source in message["sources"] if source["text"]]
    catalogs, limit = message["catalogs"], message["limits"]["max_searches"]
    if not catalogs or not message["roles"]:
        return {"searches": []}
    spoken = languages([source["text"] for source in sources], LANGUAGE_WORDS)
    terms = [term for term in terms_of(message, sources, spoken) if limit >= GENEROUS or not term.cut]
    pairs = _ranked(terms, catalogs, spoken, limit)
    leading = _leading([pair[1] for pair in pairs[:limit]])
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


def _leading(terms: list[Term]) -> Term | None:
    """Return the term that most likely names the subject: one of the title, of a settled name, or the first one."""
    named = [term for term in terms if term.weight >= 0.6]

    def value(term: Term) -> tuple[bool, bool, float, int]:
        inside = bool(term.settled)
        return (" " in term.text and (term.title or inside), inside, term.title + term.weight - term.giver, -term.order)

    return max(named, key=value, default=None)


def _citations(term: Term, sources: list[dict[str, Any]]) -> list[str]:
    first = sources[term.source]["id"]
    others = [source["id"] for source in sources if source["id"] != first and term.text in source["text"]]
    return sorted([first, *others[: MOST_SOURCES - 1]], key=lambda alias: (alias[0] != "S", alias))


# --- in which catalogs ----------------------------------------------------------------------------------------------


def _ranked(
    terms: list[Term], catalogs: list[dict[str, Any]], spoken: dict[str, float], limit: int
) -> list[tuple[float, Term, dict[str, Any]]]:
    """Return the pairs worth a look-up, best first; later catalogs of a term count less: names come in breadth."""
    pairs = []
    strong = sum(term.weight >= 0.6 for term in terms)
    step = 0.07 if strong * len(catalogs) <= 2 * limit else 0.16
    both = len({bool(catalog["locale"]) for catalog in catalogs}) == 2
    for term in terms:
        label = max(term.clues.values(), default=0.0) >= LABEL * 0.75
        valued = []
        for catalog in catalogs:
            clue = term.clues.get(catalog["entity_type"], 0.0)
            fit = _locale_fit(term, bool(catalog["locale"]), spoken) if both else 1.0
            fit *= 1.0 + 0.08 * min(clue, LABEL) + 0.2 * _kind_fit(term.text, catalog["entity_type"])
            if catalog["entity_type"] in term.settled:
                fit *= 0.3
            if label and clue < LABEL * 0.75:
                fit *= 0.5
            valued.append((term.weight * fit, catalog))
        valued.sort(key=lambda item: -item[0])
        for rank, (value, catalog) in enumerate(valued):
            pairs.append((value * (1.0 - step * min(rank, 4)), term, catalog))
    pairs = [pair for pair in pairs if pair[0] >= LEAST]
    pairs.sort(key=lambda pair: (pair[1].cut, -round(pair[0], 6), pair[1].order, pair[2]["name"]))
    return pairs


def _kind_fit(text: str, entity_type: str) -> float:
    kind = kind_of(entity_type)
    return shape(text, kind) + PRIOR[kind]


def _locale_fit(term: Term, has_locale: bool, spoken: dict[str, float]) -> float:
    """Return how likely a catalog with (or without) locales names things in the language of the text."""
    text, english = term.text, spoken.get("en", 0.0)
    if not text.isascii() and (HAN.search(text) or not is_latin(text)):
        return 1.0 if has_locale else 0.1
    if not spoken:
        return 0.7 if has_locale else 1.0
    if english >= 0.6:
        return (0.15 if text.isascii() and not term.quoted else 0.6) if has_locale else 1.0
    if spoken.get("ru", 0.0) + spoken.get("zh", 0.0) > 0.5:
        return 0.3 if has_locale else 1.0
    return 1.0 if has_locale else 0.45
