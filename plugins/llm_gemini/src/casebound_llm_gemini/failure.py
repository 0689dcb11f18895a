"""What an error of the server means, and how long it asks to wait. Pure.

Errors come as `{"error": {code, message, status, details}}`, sometimes inside a list; gateways send other forms. The
HTTP status decides wherever it says enough; of the details, three things are believed: a bad key (which has HTTP 400),
a quota that does not come back soon, and the wait that `RetryInfo` asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound.llm.http.envelope import mapping, sequence, text_of
from casebound.llm.http.failure import code_of_status, failure_of

_STATUS_OF_WORD = {
    "ABORTED": 409,
    "ALREADY_EXISTS": 400,
    "CANCELLED": 503,
    "DATA_LOSS": 500,
    "DEADLINE_EXCEEDED": 504,
    "FAILED_PRECONDITION": 400,
    "INTERNAL": 500,
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "OUT_OF_RANGE": 400,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "UNAUTHENTICATED": 401,
    "UNAVAILABLE": 503,
    "UNIMPLEMENTED": 400,
    "UNKNOWN": 500,
}
_CANCELLED = 499
_HINTS = {
    "too many states": 'the schema is too large for the server: set response_format = "json_object" in [llm]',
    '"responseJsonSchema"': 'the server does not know this field: set schema_field = "responseSchema" in [llm.gemini]',
}


def error_in(body: object) -> Mapping[str, object] | None:
    """Return the body that reports an error, out of a list where it stands in one; None where there is none."""
    items = sequence(body)
    whole = mapping(items[0]) if items else mapping(body)
    return whole if whole.get("error") else None


def server_error(native: NativeReply, body: object, *, inside_success: bool = False) -> ProviderError:
    """Return the error that `native` reports.

    Args:
        native: the reply.
        body: its parsed JSON, or None where it is none.
        inside_success: the error stands in a reply of HTTP 200; then its own code takes the place of the status.
    """
    whole = error_in(body) or mapping(body)
    error = whole.get("error")
    facts = mapping(error) if isinstance(error, dict) else {"message": error or whole.get("detail")}
    details = [mapping(detail) for detail in sequence(facts.get("details"))]
    status = _status_in(facts) if inside_success else native.status
    code = _code(status, facts, details)
    words = {**facts, "reason": _reason(details)}
    said = {name: words[name] for name in ("code", "status", "reason", "message") if words.get(name) is not None}
    hint = next((hint for text, hint in _HINTS.items() if text in str(said.get("message"))), None)
    return failure_of(native, code, said=None if body is None else said, wait=_wait(details), hint=hint)


def _status_in(facts: Mapping[str, object]) -> int:
    word, code = text_of(facts.get("status")), facts.get("code")
    if isinstance(code, str) and re.fullmatch(r"[0-9]{3}", code):
        code = int(code)
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    return _STATUS_OF_WORD.get(word or "", 500)


def _code(status: int, facts: Mapping[str, object], details: list[Mapping[str, object]]) -> str:
    if (_reason(details) or "").startswith("API_KEY_"):
        return "LLM_AUTH"
    if status == 429 and any(map(_is_lasting, _violations(details))):
        return "LLM_QUOTA"
    if status >= 500 and facts.get("status") == "DEADLINE_EXCEEDED":
        return "LLM_TIMEOUT"
    return "LLM_UNAVAILABLE" if status == _CANCELLED else code_of_status(status)


def _reason(details: list[Mapping[str, object]]) -> str | None:
    return next((text_of(detail.get("reason")) for detail in _of_kind(details, "ErrorInfo")), None)


def _violations(details: list[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    for detail in _of_kind(details, "QuotaFailure"):
        yield from map(mapping, sequence(detail.get("violations")))


def _is_lasting(violation: Mapping[str, object]) -> bool:
    """Tell whether waiting a little does not help: a quota of the day, or one that allows nothing at all."""
    return "PerDay" in (text_of(violation.get("quotaId")) or "") or violation.get("quotaValue") in ("0", 0)


def _wait(details: list[Mapping[str, object]]) -> float | None:
    for detail in _of_kind(details, "RetryInfo"):
        found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)s", text_of(detail.get("retryDelay")) or "", re.ASCII)
        if found:
            return float(found[1])
    return None


def _of_kind(details: list[Mapping[str, object]], kind: str) -> Iterator[Mapping[str, object]]:
    return (detail for detail in details if (text_of(detail.get("@type")) or "").endswith(f"google.rpc.{kind}"))
