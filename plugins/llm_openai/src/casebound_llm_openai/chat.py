"""Chat Completions on the wire: the body of a request, and what a native reply says. Pure; no I/O, no clock, no key.

Rules:
- The model's text is handed on exactly; only `casebound` judges it.
- A reply that uses tools, refuses or was cut off says so, whatever its text looks like.
"""

from __future__ import annotations

from collections.abc import Mapping

from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.llm.http.envelope import count_of, mapping, sequence, storable, text_of

from casebound_llm_openai.failure import server_error
from casebound_llm_openai.settings import OpenAISettings
from casebound_llm_openai.wire import error_or_refusal, kind_of_format, model_of, named_schema, success_of

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "tool_calls": "tool_calls",
    "tool_call": "tool_calls",
    "function_call": "tool_calls",
}


def request_body(request: ModelRequest, settings: OpenAISettings) -> dict[str, object]:
    """Return the JSON body that asks `request`.

    Raises:
        ProviderError: `LLM_REQUEST`: the request cannot be put into this wire format; nothing was sent.
    """
    body: dict[str, object] = {
        "model": model_of(request),
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
        settings.max_tokens_field or "max_completion_tokens": request.max_output_tokens,
    }
    kind = kind_of_format(request)
    if kind == "json_object":
        body["response_format"] = {"type": kind}
    elif kind == "json_schema":
        body["response_format"] = {"type": kind, kind: named_schema(request, settings)}
    for name in ("temperature", "seed", "reasoning_effort"):
        value = getattr(settings, name)
        if value is not None:
            body[name] = value
    return {**body, **settings.body}


def read_reply(native: NativeReply) -> ModelReply:
    """Return what `native` says.

    Raises:
        ProviderError: it is an error of the server, or no chat completion at all.
    """
    if not 200 <= native.status <= 299:
        return error_or_refusal(native)
    envelope = success_of(native, "JSON of a chat completion")
    if envelope.get("error"):
        raise server_error(native, envelope, inside_success=True)
    choices = sequence(envelope.get("choices"))
    choice = mapping(choices[0]) if choices else {}
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise server_error(native, choice, inside_success=True)
    message = mapping(choice.get("message"))
    text, refused = _content(message)
    tools = _tools(message)
    finish = text_of(choice.get("finish_reason"))
    return ModelReply(
        text=text,
        finish_reason=_finish_reason(finish, refused=refused, tools=tools),
        native_finish_reason=finish,
        usage=_usage(envelope.get("usage")),
        request_id=text_of(native.headers.get("x-request-id")) or text_of(envelope.get("id")),
        served_model=text_of(envelope.get("model")),
        tools=tools,
    )


def _content(message: Mapping[str, object]) -> tuple[str, bool]:
    """Return the text, and whether the model refused. Content is a text, null, or a list of parts."""
    refused = bool(text_of(message.get("refusal")))
    content = message.get("content")
    if isinstance(content, str):
        return storable(content), refused
    texts: list[str] = []
    for part in sequence(content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            refused = refused or bool(text_of(part.get("refusal")))
            if text_of(part.get("type", "text")) in {"text", "output_text"} and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return storable("".join(texts)), refused


def _tools(message: Mapping[str, object]) -> tuple[str, ...]:
    names = [mapping(mapping(call).get("function")).get("name") for call in sequence(message.get("tool_calls"))]
    if message.get("function_call"):
        names.append(mapping(message["function_call"]).get("name"))
    return tuple(text_of(name) or "unnamed" for name in names)


def _finish_reason(native: str | None, *, refused: bool, tools: tuple[str, ...]) -> FinishReason:
    known = _FINISH.get(native.lower(), "other") if native else "other"
    if refused or known == "refusal":
        return "refusal"
    if known == "length":
        return "length"
    return "tool_calls" if tools else known


def _usage(usage: object) -> Usage:
    counts = mapping(usage)
    return Usage(
        input_tokens=count_of(counts.get("prompt_tokens")),
        output_tokens=count_of(counts.get("completion_tokens")),
        cached_input_tokens=count_of(mapping(counts.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count_of(mapping(counts.get("completion_tokens_details")).get("reasoning_tokens")),
    )
