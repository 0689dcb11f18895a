"""What both ways of asking have in common: the form of the reply's schema, and telling an error from a reply. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.llm.http.envelope import lenient_json, read_envelope
from casebound.llm.provider import unsendable
from casebound.llm.strict_schema import sending_copy

from casebound_llm_openai.failure import is_refused_prompt, server_error
from casebound_llm_openai.settings import OpenAISettings


def model_of(request: ModelRequest) -> str:
    """Return the model's name; raises `LLM_REQUEST` where the settings name none."""
    if request.model is None:
        raise unsendable("no model", "a name in [llm] model")
    return request.model


def kind_of_format(request: ModelRequest) -> Literal["json_schema", "json_object", "text"]:
    """Return the kind of reply to ask for.

    Raises:
        ProviderError: `LLM_REQUEST`: JSON mode, and the word JSON in neither text. Servers refuse that; the prompt is
            the protocol's, nothing is added to it.
    """
    if request.response_format == "json_object" and "json" not in (request.system + request.user).lower():
        raise unsendable("a prompt without the word JSON, under response_format json_object", "the word JSON in it")
    return request.response_format


def named_schema(request: ModelRequest, settings: OpenAISettings) -> dict[str, object]:
    """Return the name, the strictness and the schema of the reply, as both ways of asking write them.

    Raises:
        ProviderError: `LLM_REQUEST`: the schema has no strict form.
    """
    strict = settings.strict_schema
    hint = 'use response_format = "json_object" in [llm], or strict_schema = false in [llm.openai]'
    return {
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", request.schema_name)[:64] or "reply",
        "strict": strict,
        "schema": sending_copy(request.response_schema, hint=hint) if strict else request.response_schema,
    }


def error_or_refusal(native: NativeReply) -> ModelReply:
    """Return the refusal that an error status stands for.

    Raises:
        ProviderError: it is an error.
    """
    body = lenient_json(native)
    word = is_refused_prompt(body) if native.status == 400 else None
    if word is None:
        raise server_error(native, body)
    return ModelReply(text="", finish_reason="refusal", native_finish_reason=word)


def success_of(native: NativeReply, expected: str) -> Mapping[str, object]:
    """Return the JSON object of a successful reply.

    Raises:
        ProviderError: it holds an error all the same (routers answer so), or is no JSON object.
    """
    envelope = read_envelope(native, expected)
    if envelope.get("object") == "error":
        raise server_error(native, envelope, inside_success=True)
    return envelope
