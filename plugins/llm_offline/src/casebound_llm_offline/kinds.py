"""What the words around a name, and its shape, say about the kind of thing that is named.

An entity type is the operator's word. Where it is one of the words that people use for a kind of thing (`lexicon`), the
words of that kind in other languages count too; any other type is known by its own name only.
"""

from __future__ import annotations

import re
from functools import lru_cache

from casebound.research.fold import fold

from casebound_llm_offline.lexicon import (
    AND_WORDS,
    CONNECTORS,
    CUES_AFTER,
    CUES_BEFORE,
    KIND_LABELS,
    OPENING_CUES,
    STOP_WORDS,
)
from casebound_llm_offline.text import HAN, SENTENCE_END, Token, bare, tokens

LABEL = 4.0
WINDOW = 48
PRIOR = {"agent": 0.3, "task": 0.25, "thing": 0.1, "object": 0.0, None: 0.2}  # which kind reports name most


@lru_cache(maxsize=256)
def kind_of(entity_type: str) -> str | None:
    """Return the kind of an entity type: `agent`, `task`, `thing`, `object`, or None where no word tells."""
    words = _type_words(entity_type)
    for kind, labels in KIND_LABELS.items():
        if words & labels:
            return kind
    return None


@lru_cache(maxsize=256)
def labels_of(entity_type: str) -> frozenset[str]:
    """Return the words that name this entity type in a text."""
    kind = kind_of(entity_type)
    own = _type_words(entity_type)
    return own | {word + "s" for word in own} | (KIND_LABELS[kind] if kind else frozenset())


def _type_words(entity_type: str) -> frozenset[str]:
    low = fold(entity_type)
    return frozenset([low, *re.split(r"[\W_]+", low)]) - {""}


class Context:
    """The words around one occurrence of a name, taken once and asked for each entity type.

    Attributes:
        upper_beside: whether the very next word on either side starts in upper case and is no function word.
        before, after: folded words of the same sentence, nearest first.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.left = text[max(0, start - WINDOW) : start]
        self.right = text[end : end + WINDOW]
        before = _last_clause(self.left)
        left = list(tokens(before))[-5:]
        right = list(tokens(_first_clause(self.right)))[:5]
        self.before = [bare(token.key) for token in left][::-1]
        self.after = [bare(token.key) for token in right]
        self.upper_beside = _is_beside(left[-1:], before[-1:]) or _is_beside(right[:1], self.right[:1])
        self.line_start = not self.left.strip() or self.left.rstrip(" \t*-#>").endswith("\n")

    def clue(self, entity_type: str) -> float:
        """Return how much the surroundings speak for `entity_type`; `LABEL` and more is a word for the type itself."""
        return max(self._label(labels_of(entity_type)), 0.0) + self._cues(kind_of(entity_type))

    def _label(self, labels: frozenset[str]) -> float:
        score = 0.0
        for place, word in enumerate(self.before[:3]):
            if word in labels:
                score = max(score, (LABEL, LABEL * 0.75, 1.5)[place])
        if self.after and self.after[0] in labels:
            score = max(score, LABEL * 0.6)
        near = self.left[-5:].rstrip('“"「【《『 ：:')
        if any(near.endswith(label) for label in labels if HAN.match(label)):
            score = LABEL
        return score

    def _cues(self, kind: str | None) -> float:
        if kind is None:
            return 0.0
        score = 0.0
        for place, word in enumerate(self.before[:3]):
            if word in CUES_BEFORE[kind]:
                score = max(score, 1.5 - 0.4 * place)
        if kind == "task" and len(self.before) == 1 and self.before[0] in OPENING_CUES:
            score = 1.5
        after = next((1.0 for word in self.after[:4] if word in CUES_AFTER[kind]), 0.0)
        if HAN.search(self.left[-3:] + self.right[:4]):
            left, right = self.left[-4:], self.right[:5]
            score = max(score, 1.5 * any(word in left for word in CUES_BEFORE[kind] if HAN.match(word)))
            after = max(after, 1.0 * any(word in right for word in CUES_AFTER[kind] if HAN.match(word)))
        return score + after


def _is_beside(words: list[Token], gap: str) -> bool:
    return any(gap.isspace() and word.upper and word.key not in STOP_WORDS for word in words)


def _last_clause(text: str) -> str:
    for index in range(len(text) - 1, -1, -1):
        if text[index] == "\n" or (text[index] in SENTENCE_END - {":", "："} and text[index + 1 : index + 2].isspace()):
            return text[index + 1 :]
    return text


def _first_clause(text: str) -> str:
    for index, char in enumerate(text):
        if char == "\n" or (char in SENTENCE_END and text[index + 1 : index + 2].isspace()):
            return text[:index]
    return text


def shape(name: str, kind: str | None) -> float:
    """Return how well a name's shape fits a kind, -0.6 to 0.6: tasks read like titles, agents like proper names."""
    words = [token.key for token in tokens(name)]
    joined = sum(1 for word in words if word in CONNECTORS and word not in AND_WORDS)
    title = bool(re.search(r"[!?…]|\.\.\.|: ", name)) or (joined > 0 and len(words) > 3)
    title = title or (len(words) > 2 and (words[0].endswith("ing") or words[0] in CONNECTORS))
    if kind == "task":
        return 0.6 if title else -0.2
    if kind == "agent":
        return -0.4 if title else 0.3
    if kind == "thing":
        return -0.3 if title else 0.1
    return -0.3 if title else 0.0
