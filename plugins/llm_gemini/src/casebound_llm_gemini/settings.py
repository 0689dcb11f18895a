"""The table `[llm.gemini]`: where the server is, how the key gets there, what else the body holds.

Which keys reach a server, and which addresses are refused: `casebound.llm.http.settings`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from casebound.llm.http.settings import HttpSettings, JsonTable
from pydantic import Field, field_validator, model_validator

_OWN_FIELDS = frozenset(
    {
        "cachedContent",
        "contents",
        "generationConfig",
        "model",
        "safetySettings",
        "systemInstruction",
        "toolConfig",
        "tools",
    }
)
_OWN_GENERATION_FIELDS = frozenset(
    {
        "candidateCount",
        "maxOutputTokens",
        "responseFormat",
        "responseJsonSchema",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "temperature",
        "thinkingConfig",
    }
)
_Word = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]


class GeminiSettings(HttpSettings):
    """How to ask one server.

    Attributes:
        base_url: the address in front of the version.
        api_version: `v1beta` has newer fields, and gateways often know no other; `v1` is the stable one.
        schema_field: which field carries the reply's schema; `responseSchema` is the older form, for servers and models
            that do not know `responseJsonSchema`.
        temperature: 0 to 2; for newer models its default is advised, so it is left out unless set.
        seed: sent if set.
        thinking_budget: tokens for thinking: 0 none, -1 as many as the model likes. They count as output tokens.
        thinking_level: the same in words (`LOW`), for models that take words; which depends on the model.
        include_thoughts: have summaries of the thoughts sent along; they stay in the native reply only.
        safety: threshold of each harm category, as in `HARM_CATEGORY_HARASSMENT = "BLOCK_ONLY_HIGH"`.
        generation: further fields of `generationConfig`.
        body: further fields of the body.
    """

    base_url: str = "https://generativelanguage.googleapis.com"
    api_version: str = Field(default="v1beta", pattern=r"^v[0-9][a-z0-9]*$")
    schema_field: Literal["responseJsonSchema", "responseSchema"] = "responseJsonSchema"
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    thinking_budget: int | None = Field(default=None, ge=-1, lt=2**31)
    thinking_level: _Word | None = None
    include_thoughts: bool = False
    safety: dict[_Word, _Word] = Field(default_factory=dict)
    generation: JsonTable = Field(default_factory=dict)
    body: JsonTable = Field(default_factory=dict)

    @field_validator("generation")
    @classmethod
    def _check_generation(cls, value: dict[str, object]) -> dict[str, object]:
        return _checked(value, _OWN_GENERATION_FIELDS)

    @field_validator("body")
    @classmethod
    def _check_body(cls, value: dict[str, object]) -> dict[str, object]:
        return _checked(value, _OWN_FIELDS)

    @model_validator(mode="after")
    def _check_thinking(self) -> GeminiSettings:
        if self.thinking_budget is not None and self.thinking_level is not None:
            raise ValueError("thinking_budget and thinking_level exclude each other")
        return self


def _checked(value: dict[str, object], own: frozenset[str]) -> dict[str, object]:
    # A server reads both spellings, so the other one would set the field as well.
    taken = sorted(name for name in value if _camel(name) in own)
    if taken:
        raise ValueError(f"casebound sets these fields itself: {', '.join(taken)}")
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
