"""Deterministic answers for stage `entity_link`: what wording alone can show, and nothing beyond it.

Rules:
- A statement counts only in a sentence of a mention that names both sides, and only where that sentence is not hedged
  (a guess, a question, an assistant's remark).
- It says "same" by a word for a rename or an alias, "different" by a word that keeps two things apart.
- Nothing said, or both: the evidence is insufficient. Equal names, types or ids never decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from casebound_entity_link.protocol_v1 import SUGGESTION

Message = dict[str, Any]

_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.](?=\S)[^.!?。！？\n]*)*[.!?。！？]?")
_SAME = re.compile(
    r"\b(?:renamed|rename of|alias|aka|also known as|formerly|previously called|now called|same (?:object|instance))\b"
    r"|改名|更名|原名|别名|曾用名",
    re.IGNORECASE,
)
_APART = re.compile(
    r"\b(?:separate|separately|distinct|unrelated|independent|not the same|different from|differs from)\b"
    r"|不是同一|不同的|独立部署",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:assistant|maybe|perhaps|probably|possibly|likely|might|may be|could be|seems?|guess|assume[ds]?|i think"
    r"|unsure|not sure|unclear|unknown|whether)\b|[?？]|可能|也许|大概|猜测|助手|不确定|是否",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|never|no longer|isn't|wasn't)\b|不是|并非|没有", re.IGNORECASE)


def answer(message: Message) -> dict[str, Any]:
    """Return the suggestion for a user message of stage `entity_link`."""
    said = {"same_object": _stating(message, _SAME), "different_objects": _stating(message, _APART)}
    (assessment, cited), *others = [each for each in said.items() if each[1]] or [("insufficient_evidence", [])]
    if others:
        assessment, cited = "insufficient_evidence", [mention for found in said.values() for mention in found]
    return {
        "version": SUGGESTION,
        "assessment": assessment,
        "rationale": _RATIONALES["contradicting" if others else assessment],
        "left": _cite(message["left"], cited),
        "right": _cite(message["right"], cited),
    }


_RATIONALES = {
    "same_object": "A cited mention states a rename or an alias between the two names. Found by wording alone.",
    "different_objects": "A cited mention states that the two named objects are apart. Found by wording alone.",
    "insufficient_evidence": "No selected mention states, in words that rules can read, how the two names relate.",
    "contradicting": "Selected mentions state both that the two correspond and that they are apart.",
}


def _stating(message: Message, words: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return side and id of every mention with a sentence that names both sides, holds `words` and is not hedged."""
    names = [message[side]["name"].strip().lower() for side in ("left", "right")]
    if not all(names):
        return []
    return [
        (side, mention["mentionId"])
        for side in ("left", "right")
        for mention in message[side]["mentions"]
        if any(_states(sentence, names, words) for sentence in _sentences(mention["text"]))
    ]


def _states(sentence: str, names: list[str], words: re.Pattern[str]) -> bool:
    said = words.search(sentence)
    denied = words is _SAME and _NEGATED.search(sentence)
    return bool(said and not denied and not _HEDGED.search(sentence) and _names_both(sentence.lower(), names))


def _names_both(sentence: str, names: list[str]) -> bool:
    """Tell whether both names stand in the sentence, at places that do not overlap."""
    first, second = sorted(names, key=len, reverse=True)
    at = sentence.find(first)
    return at >= 0 and second in sentence[:at] + "\0" + sentence[at + len(first) :]


def _sentences(text: str) -> Iterator[str]:
    yield from (match.group() for match in _SENTENCE.finditer(text))


def _cite(side: Message, cited: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the side's citation: the deciding mentions that are its own, else its first one."""
    known = [mention["mentionId"] for mention in side["mentions"]]
    own = [mention for _, mention in cited if mention in known] or known[:1]
    return {"entityId": side["entityId"], "mentionIds": list(dict.fromkeys(own))}
