"""The Responses API on the wire: the body of a request, and what a native reply says. Pure; no I/O, no clock, no key.

Rules:
- `store` is always false: what is left out is kept by the provider.
- Both texts go into `input`: JSON mode looks there, and only there, for the word JSON.
- There is no `output_text` on the wire. The answer is what all messages say, in order, without those that the server
  itself calls commentary.
- Whatever stands in `output` beside messages and reasoning is the use of a tool, and none was offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.llm.http.envelope import count_of, mapping, sequence, storable, text_of

from casebound_llm_openai.failure import is_refused_prompt, server_error
from casebound_llm_openai.settings import OpenAISettings
from casebound_llm_openai.wire import error_or_refusal, kind_of_format, model_of, named_schema, success_of

_FINISH: dict[str, FinishReason] = {
    "completed": "stop",
    "max_output_tokens": "length",
    "content_filter": "refusal",
    # A call that is not in the background ends; a state on the way is a text without its end.
    "cancelled": "length",
    "in_progress": "length",
    "queued": "length",
}


def request_body(request: ModelRequest, settings: OpenAISettings) -> dict[str, object]:
    """Return the JSON body that asks `request`.

    Raises:
        ProviderError: `LLM_REQUEST`: the request cannot be put into this wire format; nothing was sent.
    """
    body: dict[str, object] = {
        "model": model_of(request),
        "input": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
        "max_output_tokens": request.max_output_tokens,
        "store": False,
    }
    kind = kind_of_format(request)
    if kind != "text":
        body["text"] = {"format": _format(kind, request, settings)}
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.reasoning_effort is not None:
        body["reasoning"] = {"effort": settings.reasoning_effort}
    return {**body, **settings.body}


def read_reply(native: NativeReply) -> ModelReply:
    """Return what `native` says.

    Raises:
        ProviderError: it is an error of the server (also one that it tells with HTTP 200), or no response at all.
    """
    if not 200 <= native.status <= 299:
        return error_or_refusal(native)
    envelope = success_of(native, "JSON of a response")
    failed = bool(envelope.get("error")) or envelope.get("status") == "failed"
    refused_prompt = is_refused_prompt(envelope) if failed else None
    if failed and refused_prompt is None:
        raise server_error(native, envelope, inside_success=True)
    items = [mapping(item) for item in sequence(envelope.get("output"))]
    parts = [part for item in items if _is_answer(item) for part in map(mapping, sequence(item.get("content")))]
    refused = refused_prompt is not None or any(text_of(part.get("refusal")) for part in parts)
    tools = _tools(items)
    finish = refused_prompt or _ending(envelope)
    return ModelReply(
        text=storable("".join(_texts(parts))),
        finish_reason="refusal" if refused else _finish_reason(finish, tools),
        native_finish_reason=finish,
        usage=_usage(envelope.get("usage")),
        request_id=text_of(native.headers.get("x-request-id")) or text_of(envelope.get("id")),
        served_model=text_of(envelope.get("model")),
        tools=tools,
    )


def _format(
    kind: Literal["json_schema", "json_object"], request: ModelRequest, settings: OpenAISettings
) -> dict[str, object]:
    return {"type": kind} if kind == "json_object" else {"type": kind, **named_schema(request, settings)}


def _is_answer(item: Mapping[str, object]) -> bool:
    return item.get("type") == "message" and item.get("phase") != "commentary"


def _texts(parts: Sequence[Mapping[str, object]]) -> list[str]:
    found = [part.get("text") for part in parts if part.get("type") == "output_text"]
    return [text for text in found if isinstance(text, str)]


def _tools(items: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    used = [item for item in items if text_of(item.get("type")) not in {None, "message", "reasoning"}]
    return tuple(text_of(item.get("name")) or text_of(item.get("type")) or "unnamed" for item in used)


def _ending(envelope: Mapping[str, object]) -> str | None:
    """Return why the text ends: the status, or for an incomplete response its reason."""
    reason = text_of(mapping(envelope.get("incomplete_details")).get("reason"))
    status = text_of(envelope.get("status"))
    return reason if status == "incomplete" and reason else status


def _finish_reason(ending: str | None, tools: tuple[str, ...]) -> FinishReason:
    known = _FINISH.get(ending, "other") if ending else "other"
    return "tool_calls" if tools and known in {"stop", "other"} else known


def _usage(usage: object) -> Usage:
    counts = mapping(usage)
    return Usage(
        input_tokens=count_of(counts.get("input_tokens")),
        output_tokens=count_of(counts.get("output_tokens")),
        cached_input_tokens=count_of(mapping(counts.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count_of(mapping(counts.get("output_tokens_details")).get("reasoning_tokens")),
    )
