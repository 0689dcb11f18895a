"""What the author of a provider states for the suite, and the tables that the suite works through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from casebound.contracts.model_call import FinishReason, ResponseFormat, Usage
from casebound.testing.loopback import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider can do; what is False skips visibly.

    Attributes:
        http: it speaks HTTP to an address that the fixture sets to `loopback.url`.
        key: it sends the key `CANARY`, which the fixture hands to it.
        usage: its server reports token counts.
        response_formats: the formats that it can ask for.
    """

    http: bool = True
    key: bool = True
    usage: bool = True
    response_formats: frozenset[ResponseFormat] = frozenset({"json_schema", "json_object", "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request's body means, whatever the vendor's words for it.

    Attributes:
        model, system, user, max_output_tokens: as they stand in the body; a model that stands in the path is read from
            there by the author.
        response_format: the mode that the body asks for.
        schema: the schema that it carries; None: none.
        rest: every field that none of these was read from.
    """

    model: str | None
    system: str
    user: str
    max_output_tokens: int
    response_format: ResponseFormat
    schema: Mapping[str, object] | None
    rest: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """What the vendor's server says, in the vendor's own shape; None: it has no such thing.

    Attributes:
        text: the model's text in `success`.
        success: an ordinary reply, with token counts where `capabilities.usage` says so.
        without_usage: the same without token counts.
        nonsense_usage: the same with counts that are no counts (negative, a float, a text).
        refusal: the model refuses.
        cut_off: the text ends at the token limit.
        tool_call: the model asks for a tool that nobody offered.
        no_text: a reply without any text.
        error_in_success: an error inside HTTP 200.
        quota: the account is used up, so that waiting does not help.
        usage: exactly what `success` reports, cached and reasoning tokens among it.
        request_id, served_model: exactly what `success` reports.
        endings: further replies by their name, each with the finish reason that it has.
        empties: further replies without any text or choice, by their name.
        errors: further errors in the vendor's own words, by their name, each with its code.
        unsendable_schema: a schema that the provider cannot send, and so refuses before the call.
        error_body: a body for any status of 400 and above, whose message is `no`; the suite chooses the status, and may
            put another message there.
    """

    text: str
    success: Response
    without_usage: Response | None = None
    nonsense_usage: Response | None = None
    refusal: Response | None = None
    cut_off: Response | None = None
    tool_call: Response | None = None
    no_text: Response | None = None
    error_in_success: Response | None = None
    quota: Response | None = None
    usage: Usage | None = None
    request_id: str | None = None
    served_model: str | None = None
    endings: Mapping[str, tuple[Response, FinishReason]] = field(default_factory=dict)
    empties: Mapping[str, Response] = field(default_factory=dict)
    errors: Mapping[str, tuple[Response, str]] = field(default_factory=dict)
    unsendable_schema: Mapping[str, object] | None = None
    error_body: bytes = b'{"error":{"message":"no"}}'

    def all(self) -> Iterator[Response]:
        """Yield every reply that is stated, and `error_body` with a status that says nothing about it."""
        single = (getattr(self, each.name) for each in fields(self))
        yield from (reply for reply in single if isinstance(reply, Response))
        yield from (reply for reply, _ in (*self.endings.values(), *self.errors.values()))
        yield from self.empties.values()
        yield Response(status=400, body=self.error_body)


CODE_OF_STATUS = {
    400: "LLM_REQUEST",
    401: "LLM_AUTH",
    403: "LLM_AUTH",
    404: "LLM_REQUEST",
    408: "LLM_TIMEOUT",
    409: "LLM_UNAVAILABLE",
    413: "LLM_REQUEST",
    422: "LLM_REQUEST",
    429: "LLM_RATE_LIMITED",
    500: "LLM_UNAVAILABLE",
    502: "LLM_UNAVAILABLE",
    503: "LLM_UNAVAILABLE",
    504: "LLM_UNAVAILABLE",
    524: "LLM_UNAVAILABLE",
    529: "LLM_UNAVAILABLE",
}

RETRY_AFTER_FORMS = {
    "seconds": ({"retry-after": "7"}, 7.0),
    "fraction": ({"retry-after": "1.5"}, 1.5),
    "date": ({"retry-after": "Sun, 01 Nov 2026 08:00:30 GMT", "date": "Sun, 01 Nov 2026 08:00:00 GMT"}, 30.0),
    "past date": ({"retry-after": "Sun, 01 Nov 2026 07:00:00 GMT", "date": "Sun, 01 Nov 2026 08:00:00 GMT"}, None),
    "negative": ({"retry-after": "-5"}, None),
    "words": ({"retry-after": "soon"}, None),
    "empty": ({"retry-after": ""}, None),
    "absurd": ({"retry-after": "99999999999999"}, None),
    "not a number": ({"retry-after": "nan"}, None),
    "nothing": ({}, None),
}

DAMAGED_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda body: body[: len(body) // 2],
    "html": lambda _: b"<!DOCTYPE html><html><body>Log in</body></html>",
    "invalid utf-8": lambda body: body.replace(b"{", b'{"\xff\xfe":1,', 1),
    "a list": lambda body: b"[" + body + b"]",
    "a number": lambda _: b"7",
    "null": lambda _: b"null",
    "too deep": lambda _: b"[" * 100_000,
    "a long number": lambda _: b"9" * 5_000,
    "another object": lambda _: b'{"hello":"world"}',
}
