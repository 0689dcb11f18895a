"""The table `[llm.codex]`: which program, whose home it has, and which server it talks to.

No key ever stands here: `api_key_env` names a variable, `api_key_cmd` a command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from casebound.llm.http.settings import checked_base_url
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class CodexSettings(BaseModel):
    """How to run the Codex CLI.

    Attributes:
        program: a name that is looked for on the path, or an absolute path.
        codex_home: `private`: a new, empty one for each call, so that nothing of the user's takes part. `user`: the
            user's own, for accounts that log in; his global instructions and skills then take part too.
        user_codex_home: where the user's own lies; read under `codex_home = "user"` only.
        base_url: the address in front of `/responses`. None: OpenAI's; with a login, the one that Codex chooses for it.
        api_key_env: name of the variable that holds the key.
        api_key_cmd: command that prints the key; first the program, then its arguments. Neither, under
            `codex_home = "user"`: the login that lies there.
        reasoning_effort: sent as it is; None: the server's own default.
        max_body_bytes: most bytes of events that are read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    program: str = Field(default="codex", min_length=1)
    codex_home: Literal["private", "user"] = "private"
    user_codex_home: str = "~/.codex"
    base_url: str | None = None
    api_key_env: str | None = Field(default=None, min_length=1)
    api_key_cmd: Annotated[tuple[str, ...] | None, Field(strict=False, min_length=1)] = None
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")
    max_body_bytes: int = Field(default=8_388_608, ge=1024)

    @field_validator("program")
    @classmethod
    def _check_program(cls, value: str) -> str:
        if "/" in value and not Path(value).expanduser().is_absolute():
            raise ValueError("a name without a slash, or an absolute path")
        return value

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str | None) -> str | None:
        return None if value is None else checked_base_url(value)

    @model_validator(mode="after")
    def _check_key(self) -> CodexSettings:
        if self.api_key_env is not None and self.api_key_cmd is not None:
            raise ValueError("api_key_env and api_key_cmd exclude each other")
        if self.codex_home == "private" and not self.has_key and self.base_url is None:
            raise ValueError(
                'api_key_env or api_key_cmd, or codex_home = "user" with a login, or a base_url without keys'
            )
        return self

    @property
    def has_key(self) -> bool:
        """Whether a key is sent."""
        return self.api_key_env is not None or self.api_key_cmd is not None

    @property
    def logs_in(self) -> bool:
        """Whether the login in the user's home is what the server sees."""
        return self.codex_home == "user" and not self.has_key
