"""The provider: stages go to their rules, bytes come back as text, nothing is counted that was not used."""

from __future__ import annotations

import asyncio
import importlib
import json

import casebound_llm_offline as plugin
import pytest
from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.scripted import model_request
from casebound_llm_offline.provider import OfflineProvider, OfflineSettings
from pydantic import ValidationError


def request(stage: str = "plan", user: str = "{}") -> ModelRequest:
    return model_request(stage=stage, user=user, provider="offline", model=None)


def send(provider: OfflineProvider, asked: ModelRequest) -> NativeReply:
    return asyncio.run(provider.send(asked))


def test_the_stage_decides_which_rules_answer():
    provider = OfflineProvider(
        OfflineSettings(),
        {"plan": lambda user: {"searches": [user["x"]]}, "assessment": lambda user: {"resolutions": []}},
    )
    native = send(provider, request("plan", '{"x": "ä"}'))
    assert json.loads(provider.read(native).text) == {"searches": ["ä"]}
    assert json.loads(provider.read(send(provider, request("assessment"))).text) == {"resolutions": []}


def test_zero_tokens_are_reported_because_none_were_used():
    provider = OfflineProvider(OfflineSettings(), {"plan": lambda user: {}})
    reply = provider.read(send(provider, request()))
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (0, 0)
    assert (reply.finish_reason, reply.served_model, reply.tools) == ("stop", None, ())


def test_reading_again_gives_the_same_reply():
    provider = OfflineProvider(OfflineSettings(), {"plan": lambda user: {"searches": []}})
    native = send(provider, request())
    assert provider.read(native) == provider.read(native)


def test_a_stage_without_rules_names_itself_and_the_stages_that_have_some():
    provider = OfflineProvider(OfflineSettings(), {"plan": lambda user: {}, "assessment": lambda user: {}})
    with pytest.raises(ProviderError) as caught:
        send(provider, request("entity_link"))
    assert caught.value.code == "LLM_REQUEST"
    assert not caught.value.retryable
    assert "entity_link" in str(caught.value)
    assert caught.value.allowed == ("assessment", "plan")


@pytest.mark.parametrize("user", ["", "[]", "no json", '"text"'])
def test_a_user_message_that_is_no_object_is_refused(user):
    provider = OfflineProvider(OfflineSettings(), {"plan": lambda user: {}})
    with pytest.raises(ProviderError) as caught:
        send(provider, request(user=user))
    assert caught.value.code == "LLM_REQUEST"


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{}", b"[]", b'{"text": 1, "usage": {"input_tokens": 0, "output_tokens": 0}}']
)
def test_bytes_of_another_provider_are_our_error_not_a_library_one(body):
    provider = OfflineProvider(OfflineSettings(), {})
    with pytest.raises(ProviderError) as caught:
        provider.read(NativeReply(status=200, body=body))
    assert caught.value.code == "LLM_UNAVAILABLE"


def test_there_is_nothing_to_set():
    with pytest.raises(ValidationError):
        OfflineSettings.model_validate({"temperature": 1})


def test_what_the_hooks_name_can_be_imported():
    (spec,) = plugin.casebound_providers()
    rules = {rule.stage: _named(rule.answer) for rule in plugin.casebound_rules()}
    assert (spec.name, spec.resolver) == ("offline", "rules")
    assert sorted(rules) == ["assessment", "interpretation", "plan"]
    provider = _named(spec.factory)(_named(spec.settings)(), rules)
    assert isinstance(provider, Provider)
    asyncio.run(provider.aclose())


def _named(path: str):
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
