"""Chat Completions on the wire: the body of a request, and what a native reply says. Pure; no I/O, no clock, no key.

Rules:
- What the server did not report is absent: an odd token count is no token count.
- The model's text is handed on exactly; only `casebound` judges it. A lone surrogate, which has no bytes, is handed on
  as the escape that JSON writes for it.
- A reply that uses tools, refuses or was cut off says so, whatever its text looks like.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from casebound.canonical import MAX_SAFE_INTEGER
from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.llm.strict_schema import sending_copy

from casebound_llm_openai.failure import is_content_filter, server_error, unreadable
from casebound_llm_openai.settings import OpenAISettings

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
        body = _lenient_json(native)
        if is_content_filter(native, body):
            return ModelReply(text="", finish_reason="refusal", native_finish_reason="content_filter")
        raise server_error(native, body)
    envelope = _envelope(native)
    if envelope.get("error") or envelope.get("object") == "error":
        raise server_error(native, envelope, inside_success=True)
    choices = envelope.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise server_error(native, choice, inside_success=True)
    message = _mapping(choice.get("message"))
    text, refused = _content(message)
    tools = _tools(message)
    finish = _text_of(choice.get("finish_reason"))
    return ModelReply(
        text=text,
        finish_reason=_finish_reason(finish, refused=refused, tools=tools),
        native_finish_reason=finish,
        usage=_usage(envelope.get("usage")),
        request_id=_text_of(native.headers.get("x-request-id")) or _text_of(envelope.get("id")),
        served_model=_text_of(envelope.get("model")),
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


# --- the envelope ---------------------------------------------------------------------------------------------------


def _envelope(native: NativeReply) -> Mapping[str, object]:
    try:
        value = _json(native.body)
    except UnicodeDecodeError:
        raise unreadable(native, "bytes that are not UTF-8") from None
    except (ValueError, RecursionError) as exc:
        reason = str(exc) if isinstance(exc, _DuplicateKey) else "no JSON"
        raise unreadable(native, reason) from None
    if not isinstance(value, dict):
        raise unreadable(native, "JSON that is no object")
    return value


def _lenient_json(native: NativeReply) -> object:
    try:
        return _json(native.body)
    except (ValueError, RecursionError):
        return None


class _DuplicateKey(ValueError):
    """One key stands twice in an object, so the reply has two meanings."""


def _json(body: bytes) -> object:
    """Parse strictly, after what routers put in front: a byte order mark, blank lines, comment lines (`: WAIT`)."""
    text = body.decode("utf-8-sig")
    text = re.sub(r"\A(?:[ \t\r\n]+|:[^\r\n]*[\r\n])+", "", text)
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _DuplicateKey(f"the key {twice[:40]!a} twice in one object")
    return result


def _no_number(_: str) -> None:
    """NaN and Infinity report nothing; the reply around them, which was paid for, still counts."""
    return


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text_of(value: object) -> str | None:
    return _storable(value) if isinstance(value, str) and value else None


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# --- the answer in it -----------------------------------------------------------------------------------------------


def _content(message: Mapping[str, object]) -> tuple[str, bool]:
    """Return the text, and whether the model refused. Content is a text, null, or a list of parts."""
    refused = bool(_text_of(message.get("refusal")))
    content = message.get("content")
    if isinstance(content, str):
        return _storable(content), refused
    texts: list[str] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            refused = refused or bool(_text_of(part.get("refusal")))
            if part.get("type", "text") in {"text", "output_text"} and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return _storable("".join(texts)), refused


def _tools(message: Mapping[str, object]) -> tuple[str, ...]:
    calls = message.get("tool_calls")
    asked: list[object] = list(calls) if isinstance(calls, list) else []
    names = [_mapping(_mapping(call).get("function")).get("name") for call in asked]
    if message.get("function_call"):
        names.append(_mapping(message["function_call"]).get("name"))
    return tuple(_text_of(name) or "unnamed" for name in names)


def _finish_reason(native: str | None, *, refused: bool, tools: tuple[str, ...]) -> FinishReason:
    known = _FINISH.get(native.lower(), "other") if native else "other"
    if refused or known == "refusal":
        return "refusal"
    if known == "length":
        return "length"
    return "tool_calls" if tools else known


def _usage(usage: object) -> Usage:
    counts = _mapping(usage)
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
        cached_input_tokens=_count(_mapping(counts.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=_count(_mapping(counts.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_SAFE_INTEGER else None
