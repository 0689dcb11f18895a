"""`generateContent` on the wire: where and what is asked, and what a native reply says. Pure; no I/O, no clock, no key.

Rules:
- What the server did not report is absent: tokens of which one part is not known are not known, except that a part
  without its key adds nothing to the other part.
- The model's text is handed on exactly, without its thoughts; only `casebound` judges it.
- A server says nothing of how a reply ended only where it has not ended: that counts as cut off, and so does a word
  that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from casebound.contracts.model_call import FinishReason, ModelReply, ModelRequest, NativeReply, Usage
from casebound.llm.http.envelope import count_of, lenient_json, mapping, read_envelope, sequence, storable, text_of
from casebound.llm.provider import unsendable

from casebound_llm_gemini.failure import error_in, server_error
from casebound_llm_gemini.openapi import openapi_copy
from casebound_llm_gemini.schema import json_schema_copy
from casebound_llm_gemini.settings import GeminiSettings

_REFUSED = (
    "BLOCKLIST",
    "IMAGE_OTHER",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_SAFETY",
    "LANGUAGE",
    "MODEL_ARMOR",
    "NO_IMAGE",
    "PROHIBITED_CONTENT",
    "RECITATION",
    "SAFETY",
    "SPII",
)
_TOOLS = ("MALFORMED_FUNCTION_CALL", "MISSING_THOUGHT_SIGNATURE", "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL")
_FINISH: dict[str, FinishReason] = {
    **dict.fromkeys(_REFUSED, "refusal"),
    **dict.fromkeys(_TOOLS, "tool_calls"),
    "MALFORMED_RESPONSE": "other",
    "STOP": "stop",
}
_COLLECTIONS = ("models", "tunedModels")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]*(/[A-Za-z0-9][A-Za-z0-9_.@-]*)*", re.ASCII)


def request_path(request: ModelRequest, settings: GeminiSettings) -> str:
    """Return the path that is posted to, behind `base_url`; the model stands in it, with or without `models/`.

    Raises:
        ProviderError: `LLM_REQUEST`: no model, or a name that no path can hold.
    """
    model = request.model or ""
    if not _MODEL.fullmatch(model):
        found = f"the model {model[:80]!a}" if model else "no model"
        raise unsendable(found, "a name in [llm] model, of letters, digits and . _ - @ /")
    named = model if model.partition("/")[0] in _COLLECTIONS else f"models/{model}"
    return f"/{settings.api_version}/{named}:generateContent"


def request_body(request: ModelRequest, settings: GeminiSettings) -> dict[str, object]:
    """Return the JSON body that asks `request`.

    Raises:
        ProviderError: `LLM_REQUEST`: the schema does not fit this wire format; nothing was sent.
    """
    body: dict[str, object] = {
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": [{"role": "user", "parts": [{"text": request.user}]}],
        "generationConfig": _generation(request, settings),
    }
    if settings.safety:
        body["safetySettings"] = [
            {"category": category, "threshold": threshold} for category, threshold in settings.safety.items()
        ]
    return {**body, **settings.body}


def read_reply(native: NativeReply) -> ModelReply:
    """Return what `native` says.

    Raises:
        ProviderError: it is an error of the server, or no reply of `generateContent` at all.
    """
    body = lenient_json(native)
    if not 200 <= native.status <= 299:
        raise server_error(native, body)
    if error_in(body) is not None:
        raise server_error(native, body, inside_success=True)
    envelope = body if isinstance(body, dict) else read_envelope(native, "JSON of a generateContent reply")
    candidates = sequence(envelope.get("candidates"))
    candidate = mapping(candidates[0]) if candidates else {}
    text, tools = _content(mapping(candidate.get("content")))
    word, finish = _ending(candidate, mapping(envelope.get("promptFeedback")), answered=bool(candidates))
    return ModelReply(
        text=text,
        finish_reason="tool_calls" if tools and finish == "stop" else finish,
        native_finish_reason=word,
        usage=_usage(mapping(envelope.get("usageMetadata"))),
        request_id=text_of(envelope.get("responseId")) or text_of(native.headers.get("x-request-id")),
        served_model=text_of(envelope.get("modelVersion")),
        tools=tools,
    )


# --- the request ----------------------------------------------------------------------------------------------------


def _generation(request: ModelRequest, settings: GeminiSettings) -> dict[str, object]:
    config: dict[str, object] = {"maxOutputTokens": request.max_output_tokens}
    if request.response_format != "text":
        config["responseMimeType"] = "application/json"
    if request.response_format == "json_schema":
        copy = json_schema_copy if settings.schema_field == "responseJsonSchema" else openapi_copy
        config[settings.schema_field] = copy(request.response_schema)
    for name in ("temperature", "seed"):
        value = getattr(settings, name)
        if value is not None:
            config[name] = value
    thinking = _thinking(settings)
    if thinking:
        config["thinkingConfig"] = thinking
    return {**config, **settings.generation}


def _thinking(settings: GeminiSettings) -> dict[str, object]:
    config: dict[str, object] = {}
    if settings.thinking_budget is not None:
        config["thinkingBudget"] = settings.thinking_budget
    if settings.thinking_level is not None:
        config["thinkingLevel"] = settings.thinking_level
    if settings.include_thoughts:
        config["includeThoughts"] = True
    return config


# --- the answer -----------------------------------------------------------------------------------------------------


def _content(content: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    """Return the text of all parts in order, and the tools that were asked for; one JSON may stand in several parts."""
    texts: list[str] = []
    tools: list[str] = []
    for part in map(mapping, sequence(content.get("parts"))):
        if part.get("functionCall"):
            tools.append(text_of(mapping(part["functionCall"]).get("name")) or "unnamed")
        elif part.get("executableCode") or part.get("codeExecutionResult"):
            tools.append("code_execution")
        text = part.get("text")
        if isinstance(text, str) and not part.get("thought"):
            texts.append(text)
    return storable("".join(texts)), tuple(tools)


def _ending(
    candidate: Mapping[str, object], feedback: Mapping[str, object], *, answered: bool
) -> tuple[str | None, FinishReason]:
    """Return the server's own word for how the reply ended, and ours."""
    if not answered:
        blocked = text_of(feedback.get("blockReason"))
        return blocked, "refusal" if blocked else "other"
    word = text_of(candidate.get("finishReason"))
    return word, _FINISH.get((word or "").upper(), "length")


def _usage(counts: Mapping[str, object]) -> Usage:
    return Usage(
        input_tokens=count_of(counts.get("promptTokenCount")),
        output_tokens=_output_tokens(counts),
        cached_input_tokens=count_of(counts.get("cachedContentTokenCount")),
        reasoning_tokens=count_of(counts.get("thoughtsTokenCount")),
    )


def _output_tokens(counts: Mapping[str, object]) -> int | None:
    """Return what was generated; thoughts, which Gemini counts beside the candidates, are part of it."""
    reported = [counts[name] for name in ("candidatesTokenCount", "thoughtsTokenCount") if name in counts]
    known = [count for count in map(count_of, reported) if count is not None]
    return count_of(sum(known)) if known and len(known) == len(reported) else None
