"""Names of machines and services: `db01.example.net`, `web-front-1`, `nightly_backup`, `svc/billing`, `PAY-2041`.

Such a name is one word, whatever marks stand in it: no part of it is a name of its own. What only measures or dates
(numbers, versions, times, dates, addresses of pages) names nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from casebound_llm_offline.lexicon import (
    CALENDAR_WORDS,
    COMMON_WORDS,
    COMPOUND_WORDS,
    KIND_LABELS,
    NUMBERED_WORDS,
    STOP_WORDS,
)

LONGEST = 80
FAINT = 0.3  # may be a name, may be a word of the language: after everything better
SURE = 0.5  # of this weight and more, a name holds no other one

_MONTHS = rf"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sept?|o[ck]t|nov|de[cz]|{'|'.join(sorted(CALENDAR_WORDS))})\.?"
_VALUE = re.compile(
    r"(?:v|ver|vers|version|release|r|build|rev)?[.\s]?\d+(?:[.,'’_-]\d+)*[a-z]?"
    r"(?:[-.+_~]?(?:rc|alpha|beta|dev|post|pre|preview|snapshot|final|ga|lts|hotfix|build|p|b|a|r)[-.]?\d*)*"
    r"|[+#~$€£¥-]?\d+(?:[.,'’x×:/-]\d+)*\s?(?:%|[^\W\d_]{1,3}|[€$£¥°]c?)?"
    r"|[$€£¥]\s?\d[\d.,]*[km]?"
    r"|\d{1,2}[:.h]\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:am|pm|a\.m\.?|p\.m\.?|uhr|h|z|utc|gmt|cet|cest)?"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[t\s]\s?\d.*)?"
    rf"|\d{{1,4}}(?:st|nd|rd|th|\.)?[-/.\s]?{_MONTHS}(?:[-/.,\s]+\d{{1,4}})?|{_MONTHS}[-/.,\s]+\d{{1,4}}(?:[-/.,\s]+\d{{4}})?",
    re.IGNORECASE,
)
URL = r"(?:[A-Za-z][A-Za-z0-9+.-]{1,15}://|[Ww][Ww][Ww]\.)[!-~]+"
_LINK = re.compile(rf"\S*{URL}\S*|mailto:\S+", re.IGNORECASE)
_MARK = re.compile(r"[._/:@‐-]+")
_TITLE = re.compile(r"[^\W\d_]\w*\.[^\W\d_]\w*")
_FILE = re.compile(r"[/\\][^/\\]*\.[^\W\d_]{1,5}")


def is_value(text: str) -> bool:
    """Tell whether the text is a number, version, time, date, price or address of a page and nothing else."""
    if not any(char.isalpha() for char in text):
        return True
    if "://" in text or text[:4].lower() == "www.":
        return _LINK.fullmatch(text) is not None or not _LINK.sub("", text).strip(" ()[]<>.,;:")
    if len(text) <= LONGEST and _VALUE.fullmatch(text):
        return True
    words = text.lower().split()
    dated = [word.strip(".,") in CALENDAR_WORDS for word in words]
    return any(dated) and all(known or _VALUE.fullmatch(word) for known, word in zip(dated, words, strict=True))


@lru_cache(maxsize=8192)
def machine_weight(text: str) -> float:
    """Return how much the shape of a word speaks for a machine's name, 0 where it is a word like others."""
    if not 3 <= len(text) <= LONGEST or text.isalpha() or is_value(text) or "'" in text or "’" in text:
        return 0.0
    parts = [part for part in _MARK.split(text) if part]
    marks = {char for char in text.strip("_") if char in "._/:@-‐"}
    keys = [part.lower() for part in parts]
    if marks & {":", "/"} and not _is_compound(text, keys, marks):
        return 0.0
    if ":" in marks and keys[-1].isdigit():
        return FAINT  # `cache:6379`, but `error:502` as well
    if "_" in marks or "@" in marks:
        return _beyond_path(text, 0.85 if "_" in marks else 0.5)
    if any(char.isdigit() for char in text):
        return _beyond_path(text, _numbered(text, parts, keys, marks))
    if "." in marks:
        return _beyond_path(text, _dotted(text, parts, keys))
    if marks & {":", "/"}:
        return _beyond_path(text, 0.6 if "/" in marks or "::" in text else 0.55)
    return _hyphenated(text, keys) if marks else 0.0


def _is_compound(text: str, keys: list[str], marks: set[str]) -> bool:
    """Tell whether a slash or colon stands inside a name, not between two words (`and/or`, `Red/Blue`, `note:see`)."""
    if "::" in text:
        return True
    labels = frozenset[str]().union(*KIND_LABELS.values())
    if ":" in marks and (keys[0] in COMMON_WORDS or keys[0] in labels or keys[0] in NUMBERED_WORDS):
        return False
    plain = [key for key in keys if key.isalpha()]
    if any(key in STOP_WORDS or key in CALENDAR_WORDS for key in plain):
        return False
    if ":" in marks and keys[-1].isdigit() and machine_weight(text[: -len(keys[-1]) - 1]) > 0.0:
        return False  # a port or line after the name
    if any(char.isdigit() or char in "_.@" for char in text):
        return not keys[0].isdigit()
    return text.islower() and all(len(key) > 1 for key in keys) and not all(key in COMMON_WORDS for key in keys)


def _numbered(text: str, parts: list[str], keys: list[str], marks: set[str]) -> float:
    if not marks:
        letters = re.match(r"[^\W\d_]*", text)
        head = letters.group().lower() if letters else ""
        turns = len(re.findall(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)", text))
        if not head or head in NUMBERED_WORDS or head in STOP_WORDS or (len(head) < 2 and turns < 2):
            return 0.0
        return 0.6 if len(text) > 3 else SURE
    if parts[0].isdigit() and all(part.isdigit() or part.isalpha() for part in parts) and text == text.lower():
        return 0.0 if marks <= {"-", "‐"} else FAINT  # `25-man`, `2-hour-long`
    if len(parts) == 2 and keys[0] in NUMBERED_WORDS:
        return 0.0
    return 0.9 if "." in marks else 0.85


def _dotted(text: str, parts: list[str], keys: list[str]) -> float:
    if max(len(part) for part in parts) < 3:
        return 0.0  # `e.g`, `z.B`
    if len(parts) == 2 and _TITLE.fullmatch(text) and parts[1][0].isupper():
        return 0.0  # a blank is missing after a sentence
    if len(parts) == 2 and keys[1] in STOP_WORDS and keys[1] not in {"de", "es", "la", "me"}:
        return 0.0
    return 0.9 if len(parts) > 2 else 0.6


def _hyphenated(text: str, keys: list[str]) -> float:
    """Return the weight of lower-case words with hyphens, which ordinary words have too."""
    if not text.islower() or any(key in STOP_WORDS or len(key) < 2 for key in keys):
        return 0.0
    if any(key in COMPOUND_WORDS for key in keys) or (len(keys) == 2 and keys[1].endswith(("ed", "ing", "ly"))):
        return 0.0
    return 0.6 if len(keys) > 2 else FAINT


def _beyond_path(text: str, weight: float) -> float:
    return min(weight, FAINT) if text.count("/") > 2 or ("/" in text and _FILE.search(text)) else weight
