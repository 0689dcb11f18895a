"""The table `[llm.openai]`: where the server is, how the key gets there, what else the body holds.

Rules:
- No key ever stands here: `api_key_env` names a variable, `api_key_cmd` a command. Neither: no key is sent.
- An address may be plain http only where nobody else listens: this machine or a private network.
- A value that may hold a secret (an address with userinfo or a query) is refused without being shown.
"""

from __future__ import annotations

import math
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

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
_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_HEADER_TEXT = r"^[\x21-\x7e]+$"


class OpenAISettings(BaseModel):
    """How to reach one server.

    Attributes:
        base_url: the address in front of `path`; it normally ends in `/v1`.
        path: where a chat completion is asked for.
        query: further query parameters (Azure: `api-version`); never a key.
        api_key_env: name of the variable that holds the key.
        api_key_cmd: command that prints the key; first the program, then its arguments.
        api_key_header, api_key_prefix: how the key is sent (Azure: `api-key` and an empty prefix).
        organization, project: sent as `OpenAI-Organization` and `OpenAI-Project`.
        max_tokens_field: what the server calls the cap; older compatible servers know only `max_tokens`.
        temperature: 0 to 2; reasoning models refuse any value, so it is left out unless set.
        seed: sent if set; few servers honour it exactly.
        reasoning_effort: sent as it is; which words are known depends on the model.
        strict_schema: True sends a copy of the schema that OpenAI's strict mode takes; False sends the schema as it
            is, not strict, for servers that enforce all of JSON Schema.
        body: further fields of the body, for what one server alone understands.
        connect_timeout_s: limit for making the connection; the whole call has `[llm] timeout_s`.
        max_body_bytes: largest reply that is read, after decompression.
        ca_file: certificates to trust instead of the usual ones (PEM).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    base_url: str = "https://api.openai.com/v1"
    path: str = Field(default="/chat/completions", pattern=r"^/[\x21\x22\x24-\x3e\x40-\x7e]*$")
    query: dict[str, str] = {}
    api_key_env: str | None = Field(default=None, min_length=1)
    api_key_cmd: Annotated[tuple[str, ...] | None, Field(strict=False, min_length=1)] = None
    api_key_header: str = Field(default="Authorization", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
    api_key_prefix: str = Field(default="Bearer ", pattern=r"^[\x20-\x7e]*$")
    organization: str | None = Field(default=None, pattern=_HEADER_TEXT)
    project: str | None = Field(default=None, pattern=_HEADER_TEXT)
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    reasoning_effort: str | None = Field(default=None, min_length=1)
    strict_schema: bool = True
    body: dict[str, object] = {}
    connect_timeout_s: float = Field(default=10, gt=0, allow_inf_nan=False)
    max_body_bytes: int = Field(default=8_388_608, ge=1024)
    ca_file: str | None = None

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError:
            raise ValueError("this is no URL") from None
        if parts.username is not None or parts.password is not None:
            raise ValueError("a user or a password stands in the URL (not shown); use api_key_env or api_key_cmd")
        if parts.query or parts.fragment or "?" in value or "#" in value:
            raise ValueError("a query or a fragment stands in the URL (not shown); use `query`")
        if parts.scheme not in {"http", "https"} or not parts.hostname or not value.isascii() or " " in value:
            raise ValueError("https://HOST/PATH, or http:// on this machine or in a private network")
        if parts.scheme == "http" and not _is_local(parts):
            raise ValueError("http:// sends key and report in the clear to a public host; use https://")
        return value.rstrip("/")

    @field_validator("body")
    @classmethod
    def _check_body(cls, value: dict[str, object]) -> dict[str, object]:
        taken = sorted(_OWN_FIELDS & value.keys())
        if taken:
            raise ValueError(f"casebound sets these fields itself: {', '.join(taken)}")
        if not _is_json(value):
            raise ValueError("a value has no JSON form (a time, or a number that is not finite)")
        return value

    @model_validator(mode="after")
    def _check_key(self) -> OpenAISettings:
        if self.api_key_env is not None and self.api_key_cmd is not None:
            raise ValueError("api_key_env and api_key_cmd exclude each other")
        return self

    @property
    def url(self) -> str:
        """The address of a chat completion, without the query."""
        return self.base_url + self.path


def _is_local(parts: SplitResult) -> bool:
    host = (parts.hostname or "").lower()
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "." not in host or host.endswith(_LOCAL_SUFFIXES)
    return address.is_loopback or address.is_private or address.is_link_local


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | bool)
