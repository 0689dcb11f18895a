"""The table `[llm.codex]`: which program, whose home it has, and which server it talks to.

No key ever stands here: `api_key_env` names a variable, `api_key_cmd` a command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from casebound.llm.http.settings import KeySettings, checked_base_url
from pydantic import Field, field_validator, model_validator

DEFAULT_BASE_URL = "https://api.openai.com/v1"


class CodexSettings(KeySettings):
    """How to run the Codex CLI.

    Attributes:
        program: a name that is looked for on the path, or an absolute path.
        codex_home: `private`: a new, empty one for each call, so that nothing of the user's takes part. `user`: the
            user's own, for accounts that log in; his global instructions and skills then take part too.
        user_codex_home: where the user's own lies; read under `codex_home = "user"` only.
        base_url: the address in front of `/responses`. None: OpenAI's; with a login, the one that Codex chooses for it.
        api_key_env, api_key_cmd: neither, under `codex_home = "user"`: the login that lies there.
        reasoning_effort: sent as it is; None: the server's own default.
    """

    program: str = Field(default="codex", min_length=1)
    codex_home: Literal["private", "user"] = "private"
    user_codex_home: str = "~/.codex"
    base_url: str | None = None
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")

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
    def _check_access(self) -> CodexSettings:
        if self.codex_home == "private" and not self.has_key and self.base_url is None:
            raise ValueError(
                'api_key_env or api_key_cmd, or codex_home = "user" with a login, or a base_url without keys'
            )
        return self

    @property
    def logs_in(self) -> bool:
        """Whether the login in the user's home is what the server sees."""
        return self.codex_home == "user" and not self.has_key
