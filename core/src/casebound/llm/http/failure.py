"""What an HTTP status means, how long a server asks to wait, and what of its error is shown. Pure; no clock.

Rules:
- The status decides wherever it says enough; what a vendor's own words add is the vendor's plugin to say.
- A date is read against the reply's own `date`, never against a clock here.
- What a server says is shown as one short printable line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from casebound.contracts.model_call import NativeReply
from casebound.errors import TRANSIENT, ProviderError

LONGEST_WAIT_S = 86_400.0
_ABSURD_WAIT_S = 366 * 86_400.0
_MOST_SHOWN = 300

_BY_STATUS = {
    401: "LLM_AUTH",
    402: "LLM_QUOTA",
    403: "LLM_AUTH",
    408: "LLM_TIMEOUT",
    409: "LLM_UNAVAILABLE",
    425: "LLM_UNAVAILABLE",
    429: "LLM_RATE_LIMITED",
}
_REDIRECT_HINT = "redirects are never followed: base_url must name the server itself"
_STRANGER_HINT = "check base_url: a proxy or a login page seems to answer in place of the server"


def code_of_status(status: int) -> str:
    """Return the code that an HTTP status of 300 and above means where nothing else is known."""
    return "LLM_UNAVAILABLE" if status >= 500 else _BY_STATUS.get(status, "LLM_REQUEST")


def failure_of(
    native: NativeReply,
    code: str,
    *,
    said: Mapping[str, object] | None,
    wait: float | None = None,
    hint: str | None = None,
) -> ProviderError:
    """Return the error of `code` that `native` reports; whether it is worth a retry follows from the code.

    Args:
        native: the reply.
        code: a code of the table.
        said: what the server's own error says: `message`, and words or numbers beside it by their names. Empty where
            it says nothing; None where the body is no JSON at all.
        wait: seconds that the server asks for in a way of its own, used where its headers say nothing usable.
        hint: what to do about it, where the vendor's plugin knows better.
    """
    retryable = code in TRANSIENT and native.headers.get("x-should-retry", "").lower() != "false"
    asked = retry_after(native.headers)
    if hint is None and 300 <= native.status <= 399:
        hint = _REDIRECT_HINT
    if hint is None and said is None:
        hint = _STRANGER_HINT
    return ProviderError(
        code,
        retryable=retryable,
        retry_after=(asked if asked is not None else usable_wait(wait)) if retryable else None,
        where="the reply of the model server",
        found=_described(native, said or {}),
        hint=hint,
    )


def unreadable(native: NativeReply, reason: str, expected: str) -> ProviderError:
    """Return the error for a successful reply whose body is not what was asked for at all."""
    return ProviderError(
        "LLM_UNAVAILABLE",
        retryable=True,
        where="the reply of the model server",
        found=f"{reason}: {_start_of(native)}",
        expected=expected,
        hint=_STRANGER_HINT,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers ask to wait, at most a day; None where they say nothing usable.

    In this order: `retry-after-ms`, `retry-after` as seconds, `retry-after` as a date (against the reply's `date`). A
    past date, zero, a negative or absurd value is no wish at all.
    """
    milliseconds = number_of(headers.get("retry-after-ms"))
    seconds = usable_wait(milliseconds / 1000 if milliseconds is not None else None)
    if seconds is not None:
        return seconds
    wish = headers.get("retry-after")
    plain = number_of(wish)
    return usable_wait(plain if plain is not None else _until(wish, headers.get("date")))


def usable_wait(seconds: float | None) -> float | None:
    """Return a wait that can be obeyed, at most a day; None for none, a negative or an absurd one."""
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds <= _ABSURD_WAIT_S:
        return None
    return min(seconds, LONGEST_WAIT_S)


def number_of(text: str | None) -> float | None:
    """Read a plain decimal number of a header; None for anything else."""
    if text is None or not re.fullmatch(r"\s*[+-]?[0-9]{1,20}(\.[0-9]{1,20})?\s*", text, re.ASCII):
        return None
    return float(text)


def shown(text: str) -> str:
    """Return `text` as one short printable line."""
    line = " ".join(text[: 4 * _MOST_SHOWN].split())
    safe = "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in line)
    return safe if len(safe) <= _MOST_SHOWN else safe[:_MOST_SHOWN] + "…"


def _described(native: NativeReply, said: Mapping[str, object]) -> str:
    parts = [f"HTTP {native.status}"]
    for name, value in said.items():
        if name != "message" and isinstance(value, str | int) and str(value):
            parts.append(f"{name} {shown(str(value))}")
    message = said.get("message")
    if isinstance(message, str) and message:
        return f"{', '.join(parts)}: {shown(message)}"
    return ", ".join(parts) if said else f"{parts[0]}: {_start_of(native)}"


def _start_of(native: NativeReply) -> str:
    kind = shown(native.headers.get("content-type", "no content type"))
    start = shown(native.body[:80].decode("utf-8", "replace"))
    return f"{len(native.body)} bytes, {kind}, beginning {start!r}" if native.body else f"an empty body, {kind}"


def _until(date: str | None, now: str | None) -> float | None:
    """Return the seconds between two HTTP dates; without the server's own `date` there is nothing to compare with."""
    if date is None or now is None:
        return None
    try:
        return (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None  # not a date, or one of the two without a zone
