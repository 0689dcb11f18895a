"""The table `[llm.openai]`: which server and which of its ways of asking, and what else the body holds.

No key ever stands here; `casebound.llm.http.settings` says how a server and its key are found.
"""

from __future__ import annotations

from typing import Literal

from casebound.llm.http.settings import HttpSettings, JsonTable
from pydantic import Field, model_validator

Api = Literal["chat", "responses"]
_PATHS: dict[Api, str] = {"chat": "/chat/completions", "responses": "/responses"}
_OWN_FIELDS: dict[Api, frozenset[str]] = {
    "chat": frozenset(
        {
            "function_call",
            "functions",
            "max_completion_tokens",
            "max_tokens",
            "messages",
            "model",
            "n",
            "reasoning_effort",
            "response_format",
            "seed",
            "stream",
            "temperature",
            "tool_choice",
            "tools",
        }
    ),
    "responses": frozenset(
        {
            "background",
            "conversation",
            "input",
            "instructions",
            "max_output_tokens",
            "model",
            "previous_response_id",
            "prompt",
            "reasoning",
            "store",
            "stream",
            "temperature",
            "text",
            "tool_choice",
            "tools",
        }
    ),
}
_HEADER_TEXT = r"^[\x21-\x7e]+$"


class OpenAISettings(HttpSettings):
    """How to reach one server, and what to ask of it.

    Attributes:
        base_url: the address in front of `path`; it normally ends in `/v1`.
        api: `chat` asks for a chat completion, which every compatible server knows; `responses` for a response.
        path: where it is asked for; None: where OpenAI has it.
        query: further query parameters (Azure: `api-version`); never a key.
        api_key_header, api_key_prefix: how the key is sent (Azure: `api-key` and an empty prefix).
        organization, project: sent as `OpenAI-Organization` and `OpenAI-Project`.
        max_tokens_field: what a chat server calls the cap; older compatible servers know only `max_tokens`. None:
            `max_completion_tokens`. Responses call it `max_output_tokens` everywhere.
        temperature: 0 to 2; reasoning models refuse any value, so it is left out unless set.
        seed: sent if set; few servers honour it exactly, and responses know none.
        reasoning_effort: sent as it is; which words are known depends on the model.
        strict_schema: True sends a copy of the schema that OpenAI's strict mode takes; False sends the schema as it
            is, not strict, for servers that enforce all of JSON Schema.
        body: further fields of the body, for what one server alone understands.
    """

    base_url: str = "https://api.openai.com/v1"
    api: Api = "chat"
    path: str | None = Field(default=None, pattern=r"^/[\x21\x22\x24-\x3e\x40-\x7e]*$")
    query: dict[str, str] = Field(default_factory=dict)
    api_key_header: str = Field(default="Authorization", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    api_key_prefix: str = Field(default="Bearer ", pattern=r"^[\x20-\x7e]*$")
    organization: str | None = Field(default=None, pattern=_HEADER_TEXT)
    project: str | None = Field(default=None, pattern=_HEADER_TEXT)
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] | None = None
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    strict_schema: bool = True
    body: JsonTable = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_api(self) -> OpenAISettings:
        taken = sorted(_OWN_FIELDS[self.api] & self.body.keys())
        if taken:
            raise ValueError(f"casebound sets these fields of `body` itself: {', '.join(taken)}")
        chat_only = [name for name in ("max_tokens_field", "seed") if getattr(self, name) is not None]
        if self.api == "responses" and chat_only:
            raise ValueError(f'a response has no such field (api = "chat" has): {", ".join(chat_only)}')
        return self

    @property
    def endpoint(self) -> str:
        """The path that is asked."""
        return self.path if self.path is not None else _PATHS[self.api]
