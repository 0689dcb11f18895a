"""What a failure of Codex means. Pure. Codex tells failures in sentences only, so words are all there is to go by.

Rules:
- A sentence that nobody knows is `LLM_UNAVAILABLE`: it is tried again a few times, and then blocks.
- Codex never passes on how long a server asks to wait.
- A sentence may repeat what a server said, of any length: only its beginning is weighed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from casebound.contracts.model_call import FinishReason, NativeReply
from casebound.errors import TRANSIENT, ProviderError
from casebound.llm.http.failure import code_of_status, shown

MOST_WEIGHED = 2000

_STATUS = re.compile(r"(?:unexpected|last) status:? (?P<status>[1-5][0-9]{2})\b")
_SETTINGS_HINT = "the arguments do not suit this version of Codex, or a setting in [llm.codex]: see docs/guide/codex.md"


class _Meaning(NamedTuple):
    """What one kind of sentence means."""

    pattern: re.Pattern[str]
    code: str
    hint: str | None = None


def _means(pattern: str, code: str, hint: str | None = None) -> _Meaning:
    return _Meaning(re.compile(pattern, re.IGNORECASE), code, hint)


_MEANINGS = (
    _means(r"^Missing environment variable", "LLM_AUTH", "set api_key_env or api_key_cmd in [llm.codex]"),
    _means(r"^Quota exceeded|hit your usage limit", "LLM_QUOTA"),
    _means(r"^rate limit exceeded", "LLM_RATE_LIMITED"),
    _means(
        r"ran out of room in the model's context window",
        "LLM_REQUEST",
        "the request is longer than the model's context: shorten the report, or use another model",
    ),
    _means(r"^\s{0,20}\{[^{}]{0,400}\"error\"", "LLM_REQUEST"),  # a refused request comes as the server's own JSON
    _means(
        r"model \S{1,200} does not exist|do(?:es)? not have access|is not supported", "LLM_REQUEST", "check [llm] model"
    ),
    _means(r"token could not be refreshed|sign in again|log in again", "LLM_AUTH", "log in again with `codex login`"),
    _means(r"idle timeout waiting for SSE", "LLM_TIMEOUT"),
)
_CUT_OFF = re.compile(r"Incomplete response returned, reason: (?P<reason>\w+)")


def finish_of(message: str) -> tuple[FinishReason, str] | None:
    """Return why a reply is not whole, with the server's own word; None where `message` tells of something else."""
    cut = _CUT_OFF.search(message, 0, MOST_WEIGHED)
    if cut is None:
        return None
    reasons: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refusal"}
    return reasons.get(cut["reason"], "other"), cut["reason"]


def turn_failed(message: str) -> ProviderError:
    """Return the error that a failed turn reports."""
    status = _STATUS.search(message, 0, MOST_WEIGHED)
    if status is not None:
        return _error(code_of_status(int(status["status"])), message)
    for meaning in _MEANINGS:
        if meaning.pattern.search(message, 0, MOST_WEIGHED):
            return _error(meaning.code, message, meaning.hint)
    return _error("LLM_UNAVAILABLE", message)


def ended_without_a_turn(native: NativeReply) -> ProviderError:
    """Return the error for events that neither complete nor fail: Codex refused to begin, or was ended by a signal."""
    status, said = native.headers.get("exit-status", "unknown"), native.headers.get("stderr", "")
    found = f"exit status {status} before the turn ended" + (f": {_last_line(said)}" if said else "")
    if re.fullmatch(r"[1-9][0-9]*", status):
        return _error("LLM_REQUEST", found, _SETTINGS_HINT)
    return _error("LLM_UNAVAILABLE", found)


def unreadable(reason: str) -> ProviderError:
    """Return the error for standard output that is not what Codex writes."""
    return _error("LLM_UNAVAILABLE", reason, "check program in [llm.codex]")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def _error(code: str, found: str, hint: str | None = None) -> ProviderError:
    return ProviderError(
        code, retryable=code in TRANSIENT, where="the events of codex exec", found=shown(found), hint=hint
    )
