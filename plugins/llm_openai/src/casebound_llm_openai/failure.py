"""What an error of the server means, and how long it asks to wait. Pure: dates are read against the server's own.

Error bodies differ between servers: `error` may be an object, a text or missing, `code` a text, a number or a number
as a text. None of it is believed beyond choosing a code; the HTTP status decides wherever it says enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError

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
_TRANSIENT = frozenset({"LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE"})
_QUOTA_NAMES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_AUTH_NAMES = frozenset({"invalid_api_key", "authentication_error", "no_db_connection"})
_CONTEXT_NAMES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_BY_NAME = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error"), "LLM_RATE_LIMITED"),
    **dict.fromkeys(("timeout", "request_timeout", "deadline_exceeded"), "LLM_TIMEOUT"),
    **dict.fromkeys(("invalid_request_error", "model_not_found", "unsupported_value"), "LLM_REQUEST"),
    "invalid_json_schema": "LLM_REQUEST",
}
_HINTS = {
    "context": "the request is longer than the model's context: shorten the report, or use another model",
    "redirect": "redirects are never followed: base_url must name the server itself",
    "html": "check base_url: a proxy or a login page seems to answer in place of the server",
}


def server_error(native: NativeReply, body: object, *, inside_success: bool = False) -> ProviderError:
    """Return the error that `native` reports.

    Args:
        native: the reply.
        body: its parsed JSON, or None where it is none.
        inside_success: the error stands in a reply of HTTP 200; then its own code takes the place of the status.
    """
    facts = _facts(body)
    status = _status_of(facts.get("code")) if inside_success else native.status
    code = _code_of(status, _names(facts))
    retryable = code in _TRANSIENT and native.headers.get("x-should-retry", "").lower() != "false"
    return ProviderError(
        code,
        retryable=retryable,
        retry_after=retry_after(native.headers) if retryable else None,
        where="the reply of the model server",
        found=_described(native, facts),
        hint=_hint(native.status, facts, is_json=body is not None),
    )


def unreadable(native: NativeReply, reason: str) -> ProviderError:
    """Return the error for a successful reply whose body is not what was asked for at all."""
    return ProviderError(
        "LLM_UNAVAILABLE",
        retryable=True,
        where="the reply of the model server",
        found=f"{reason}: {_start_of(native)}",
        expected="JSON of a chat completion",
        hint=_HINTS["html"],
    )


def is_content_filter(native: NativeReply, body: object) -> bool:
    """Tell whether an error of the server is a refusal by its content filter (Azure says it with HTTP 400)."""
    return native.status == 400 and "content_filter" in _names(_facts(body))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, at most a day; None where it says nothing usable.

    In this order: `retry-after-ms`, `retry-after` as seconds, `retry-after` as a date (against the reply's `date`),
    `x-ratelimit-reset-*` of what is used up. A past date, zero, a negative or absurd value is no wish at all.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    wish = headers.get("retry-after")
    seconds = _usable(milliseconds / 1000 if milliseconds is not None else None)
    if seconds is None:
        seconds = _usable(_number(wish) if _number(wish) is not None else _until(wish, headers.get("date")))
    return seconds if seconds is not None else _usable(_reset(headers))


def shown(text: str) -> str:
    """Return `text` as one short printable line."""
    line = " ".join(text[: 4 * _MOST_SHOWN].split())
    safe = "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in line)
    return safe if len(safe) <= _MOST_SHOWN else safe[:_MOST_SHOWN] + "…"


def _facts(body: object) -> Mapping[str, object]:
    """Return the error's own object, whatever form it has."""
    if not isinstance(body, Mapping):
        return {}
    error = body.get("error")
    if isinstance(error, Mapping):
        return error
    if isinstance(error, str):
        return {**body, "message": error}
    detail = body.get("detail")
    return {**body, "message": detail} if isinstance(detail, str) else body


def _names(facts: Mapping[str, object]) -> frozenset[str]:
    return frozenset(value.lower() for key in ("code", "type") if isinstance(value := facts.get(key), str))


def _status_of(code: object) -> int | None:
    if isinstance(code, str) and re.fullmatch(r"[0-9]{3}", code):
        code = int(code)
    return code if type(code) is int and 400 <= code <= 599 else None


def _code_of(status: int | None, names: frozenset[str]) -> str:
    if names & _QUOTA_NAMES:
        return "LLM_QUOTA"
    if names & _AUTH_NAMES:
        return "LLM_AUTH"
    if names & _CONTEXT_NAMES:
        return "LLM_REQUEST"
    if status is None:
        known = sorted(_BY_NAME[name] for name in names & _BY_NAME.keys())
        return known[0] if known else "LLM_UNAVAILABLE"
    if status >= 500:
        return "LLM_UNAVAILABLE"
    return _BY_STATUS.get(status, "LLM_REQUEST")


def _described(native: NativeReply, facts: Mapping[str, object]) -> str:
    parts = [f"HTTP {native.status}"]
    for key in ("code", "type", "param"):
        value = facts.get(key)
        if isinstance(value, str | int) and str(value):
            parts.append(f"{key} {shown(str(value))}")
    message = facts.get("message")
    if isinstance(message, str) and message:
        return f"{', '.join(parts)}: {shown(message)}"
    return ", ".join(parts) if facts else f"{parts[0]}: {_start_of(native)}"


def _start_of(native: NativeReply) -> str:
    kind = shown(native.headers.get("content-type", "no content type"))
    start = shown(native.body[:80].decode("utf-8", "replace"))
    return f"{len(native.body)} bytes, {kind}, beginning {start!r}" if native.body else f"an empty body, {kind}"


def _hint(status: int, facts: Mapping[str, object], *, is_json: bool) -> str | None:
    if _names(facts) & _CONTEXT_NAMES:
        return _HINTS["context"]
    if 300 <= status <= 399:
        return _HINTS["redirect"]
    return None if is_json else _HINTS["html"]


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*[+-]?[0-9]{1,20}(\.[0-9]{1,20})?\s*", text, re.ASCII):
        return None
    return float(text)


def _until(date: str | None, now: str | None) -> float | None:
    """Return the seconds between two HTTP dates; without the server's own `date` there is nothing to compare with."""
    if date is None or now is None:
        return None
    try:
        return (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None  # not a date, or one of the two without a zone


def _reset(headers: Mapping[str, str]) -> float | None:
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}"))
        for what in ("requests", "tokens")
        if _number(headers.get(f"x-ratelimit-remaining-{what}")) == 0
    ]
    known = [wait for wait in waits if wait is not None]
    return max(known, default=None)


def _duration(text: str | None) -> float | None:
    """Read a duration as Go writes it: `1h2m3s`, `6m0s`, `1.5s`, `120ms`."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    if text is None or not re.fullmatch(r"([0-9]{1,9}(\.[0-9]{1,9})?(h|ms|m|s))+", text, re.ASCII):
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)", text, re.ASCII)
    return sum(float(number) * units[unit] for number, unit in parts)


def _usable(seconds: float | None) -> float | None:
    if seconds is None or not math.isfinite(seconds) or not 0 < seconds <= _ABSURD_WAIT_S:
        return None
    return min(seconds, LONGEST_WAIT_S)
