"""The provider: it asks the rules of the stage, and reports zero tokens, which is measured: there are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply, Usage
from casebound.errors import ProviderError
from pydantic import BaseModel, ConfigDict

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class OfflineSettings(BaseModel):
    """`[llm.offline]`: there is nothing to set."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OfflineProvider:
    """Answers each stage with a pure function of the user message.

    Args:
        settings: none so far.
        rules: one answer a stage, as `casebound_rules` offers them.
    """

    def __init__(self, settings: OfflineSettings, rules: Mapping[str, Answer]) -> None:
        self.settings = settings
        self._rules = dict(rules)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Return the stage's answer as the bytes that `read` understands.

        Raises:
            ProviderError: `LLM_REQUEST`: no rules for this stage, or a user message that is not a JSON object.
        """
        answer = self._rules.get(request.stage)
        if answer is None:
            raise ProviderError(
                "LLM_REQUEST",
                retryable=False,
                where="provider offline",
                found=f"the stage {request.stage}",
                expected="a stage with installed rules",
                allowed=sorted(self._rules),
                hint="install a plugin that offers rules for this stage, or use another provider",
            )
        text = canonical_bytes(answer(_parsed(request))).decode()
        return NativeReply(
            status=200, body=canonical_bytes({"text": text, "usage": {"input_tokens": 0, "output_tokens": 0}})
        )

    def read(self, native: NativeReply) -> ModelReply:
        """Return the text and the zero usage that `send` wrote down.

        Raises:
            ProviderError: `LLM_UNAVAILABLE`: the bytes are not what `send` writes.
        """
        try:
            body = json.loads(native.body)
            usage = Usage(
                input_tokens=body["usage"]["input_tokens"],
                output_tokens=body["usage"]["output_tokens"],
            )
            return ModelReply(text=body["text"], finish_reason="stop", usage=usage)
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise ProviderError(
                "LLM_UNAVAILABLE",
                retryable=False,
                where="provider offline",
                found="native bytes of another provider",
                hint="look at native.bin of this attempt",
            ) from exc

    async def aclose(self) -> None:
        """Do nothing: nothing was opened."""


def _parsed(request: ModelRequest) -> dict[str, Any]:
    try:
        message = json.loads(request.user)
    except (ValueError, RecursionError) as exc:
        raise _no_object(request.stage) from exc
    if not isinstance(message, dict):
        raise _no_object(request.stage)
    return message


def _no_object(stage: str) -> ProviderError:
    return ProviderError(
        "LLM_REQUEST",
        retryable=False,
        where=f"provider offline, stage {stage}",
        found="a user message that is no JSON object",
        expected="exactly one JSON object",
    )
