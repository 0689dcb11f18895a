"""What an error of the server means. Pure.

Error bodies differ between servers: `error` may be an object, a text or missing, `code` a text, a number or a number
as a text. None of it is believed beyond choosing a code; the HTTP status decides wherever it says enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound.llm.http.failure import code_of_status, failure_of, number_of

_QUOTA_NAMES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_AUTH_NAMES = frozenset({"invalid_api_key", "authentication_error", "no_db_connection"})
_CONTEXT_NAMES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_REFUSAL_NAMES = frozenset(
    {"bio_policy", "content_filter", "content_policy_violation", "invalid_prompt", "misalignment_policy_violation"}
)
_BY_NAME = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error"), "LLM_RATE_LIMITED"),
    **dict.fromkeys(("timeout", "request_timeout", "deadline_exceeded"), "LLM_TIMEOUT"),
    **dict.fromkeys(("invalid_request_error", "invalid_json_schema", "unsupported_value"), "LLM_REQUEST"),
    **dict.fromkeys(("data_residency_mismatch", "model_not_found"), "LLM_REQUEST"),
}
_CONTEXT_HINT = "the request is longer than the model's context: shorten the report, or use another model"
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def server_error(native: NativeReply, body: object, *, inside_success: bool = False) -> ProviderError:
    """Return the error that `native` reports.

    Args:
        native: the reply.
        body: its parsed JSON, or None where it is none.
        inside_success: the error stands in a reply of HTTP 200; then its own code takes the place of the status.
    """
    facts = _facts(body)
    status = _status_of(facts.get("code")) if inside_success else native.status
    names = _names(facts)
    return failure_of(
        native,
        _code_of(status, names),
        said=None if body is None else {key: facts.get(key) for key in ("code", "type", "param", "message") if facts},
        wait=_reset(native.headers),
        hint=_CONTEXT_HINT if names & _CONTEXT_NAMES else None,
    )


def is_refused_prompt(body: object) -> str | None:
    """Return the server's own word where its error is a refusal of the prompt, not a failure; None otherwise."""
    return min(_names(_facts(body)) & _REFUSAL_NAMES, default=None)


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
    return code_of_status(status)


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return when what is used up will be there again, by `x-ratelimit-reset-*`."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}"))
        for what in ("requests", "tokens")
        if number_of(headers.get(f"x-ratelimit-remaining-{what}")) == 0
    ]
    known = [wait for wait in waits if wait is not None]
    return max(known, default=None)


def _duration(text: str | None) -> float | None:
    """Read a duration as Go writes it: `1h2m3s`, `6m0s`, `1.5s`, `120ms`."""
    if text is None or not re.fullmatch(r"([0-9]{1,9}(\.[0-9]{1,9})?(h|ms|m|s))+", text, re.ASCII):
        return None
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)", text, re.ASCII)
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
