"""Chat Completions on the wire: the body of a request, and what a native reply says. Pure; no I/O, no clock, no key.

Rules:
- What the server did not report is absent: an odd token count is no token count.
- The model's text is handed on exactly; only `casebound` judges it. A lone surrogate, which has no bytes, is handed on
  as the escape that JSON writes for it.
- A reply that uses tools, refuses or was cut off says so, whatever its text looks like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.llm.http.envelope import count_of, lenient_json, mapping, read_envelope, storable, text_of
from casebound.llm.strict_schema import sending_copy

from casebound_llm_openai.failure import is_content_filter, server_error
from casebound_llm_openai.settings import OpenAISettings

_EXPECTED = "JSON of a chat completion"
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
    if request.model is None:
        raise _unsendable("no model", "a name in [llm] model")
    body: dict[str, object] = {
        "model": request.model,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
        settings.max_tokens_field: request.max_output_tokens,
    }
    form = _response_format(request, settings)
    if form is not None:
        body["response_format"] = form
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
        body = lenient_json(native)
        if is_content_filter(native, body):
            return ModelReply(text="", finish_reason="refusal", native_finish_reason="content_filter")
        raise server_error(native, body)
    envelope = read_envelope(native, _EXPECTED)
    if envelope.get("error") or envelope.get("object") == "error":
        raise server_error(native, envelope, inside_success=True)
    choices = envelope.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
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


# --- the request ----------------------------------------------------------------------------------------------------


def _response_format(request: ModelRequest, settings: OpenAISettings) -> dict[str, object] | None:
    if request.response_format == "text":
        return None
    if request.response_format == "json_object":
        # Servers refuse this mode unless the prompt names the form; the prompt is the protocol's, nothing is added.
        if "json" not in (request.system + request.user).lower():
            raise _unsendable(
                "a prompt without the word JSON, under response_format json_object", "the word JSON in it"
            )
        return {"type": "json_object"}
    strict = settings.strict_schema
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", request.schema_name)[:64] or "reply",
            "strict": strict,
            "schema": sending_copy(request.response_schema) if strict else request.response_schema,
        },
    }


def _unsendable(found: str, expected: str) -> ProviderError:
    where = "the request, before anything was sent"
    return ProviderError("LLM_REQUEST", retryable=False, found=found, expected=expected, where=where)


# --- the answer in it -----------------------------------------------------------------------------------------------


def _content(message: Mapping[str, object]) -> tuple[str, bool]:
    """Return the text, and whether the model refused. Content is a text, null, or a list of parts."""
    refused = bool(text_of(message.get("refusal")))
    content = message.get("content")
    if isinstance(content, str):
        return storable(content), refused
    texts: list[str] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            refused = refused or bool(text_of(part.get("refusal")))
            if part.get("type", "text") in {"text", "output_text"} and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return storable("".join(texts)), refused


def _tools(message: Mapping[str, object]) -> tuple[str, ...]:
    calls = message.get("tool_calls")
    asked: list[object] = list(calls) if isinstance(calls, list) else []
    names = [mapping(mapping(call).get("function")).get("name") for call in asked]
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
