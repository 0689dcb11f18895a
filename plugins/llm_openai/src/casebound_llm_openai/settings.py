"""The table `[llm.openai]`: which server and which of its ways of asking, and what else the body holds.

No key ever stands here; `casebound.llm.http.settings` says how a server and its key are found.
"""

from __future__ import annotations

from typing import Literal

from casebound.llm.http.settings import HttpSettings, is_json
from pydantic import Field, field_validator

_OWN_FIELDS = frozenset(
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
)
_HEADER_TEXT = r"^[\x21-\x7e]+$"


class OpenAISettings(HttpSettings):
    """How to reach one server, and what to ask of it.

    Attributes:
        base_url: the address in front of `path`; it normally ends in `/v1`.
        path: where a chat completion is asked for.
        query: further query parameters (Azure: `api-version`); never a key.
        api_key_header, api_key_prefix: how the key is sent (Azure: `api-key` and an empty prefix).
        organization, project: sent as `OpenAI-Organization` and `OpenAI-Project`.
        max_tokens_field: what the server calls the cap; older compatible servers know only `max_tokens`.
        temperature: 0 to 2; reasoning models refuse any value, so it is left out unless set.
        seed: sent if set; few servers honour it exactly.
        reasoning_effort: sent as it is; which words are known depends on the model.
        strict_schema: True sends a copy of the schema that OpenAI's strict mode takes; False sends the schema as it
            is, not strict, for servers that enforce all of JSON Schema.
        body: further fields of the body, for what one server alone understands.
    """

    base_url: str = "https://api.openai.com/v1"
    path: str = Field(default="/chat/completions", pattern=r"^/[\x21\x22\x24-\x3e\x40-\x7e]*$")
    query: dict[str, str] = Field(default_factory=dict)
    api_key_header: str = Field(default="Authorization", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    api_key_prefix: str = Field(default="Bearer ", pattern=r"^[\x20-\x7e]*$")
    organization: str | None = Field(default=None, pattern=_HEADER_TEXT)
    project: str | None = Field(default=None, pattern=_HEADER_TEXT)
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    strict_schema: bool = True
    body: dict[str, object] = Field(default_factory=dict)

    @field_validator("body")
    @classmethod
    def _check_body(cls, value: dict[str, object]) -> dict[str, object]:
        taken = sorted(_OWN_FIELDS & value.keys())
        if taken:
            raise ValueError(f"casebound sets these fields itself: {', '.join(taken)}")
        if not is_json(value):
            raise ValueError("a value has no JSON form (a time, or a number that is not finite)")
        return value
