"""The fakes keep to what they are told."""

import asyncio
from datetime import UTC, datetime

import pytest
from casebound.clock import Clock
from casebound.contracts.model_call import ModelReply, NativeReply, Usage
from casebound.errors import ProviderError
from casebound.llm.provider import Provider
from casebound.testing.scripted import (
    FixedClock,
    RaisingProvider,
    ScriptedProvider,
    model_request,
    native_error,
    native_reply,
)


def request(stage="plan", attempt=1):
    return model_request(stage=stage, attempt=attempt)


def ask(provider, stage="plan"):
    return provider.read(asyncio.run(provider.send(request(stage))))


def test_answers_come_in_order_by_stage_and_are_counted():
    provider = ScriptedProvider({"plan": [{"b": 1, "a": "é"}, "not json"], "assessment": ["x"]})
    assert ask(provider).text == '{"a":"é","b":1}'
    assert ask(provider, "assessment").text == "x"
    assert ask(provider).text == "not json"
    assert [call.stage for call in provider.calls] == ["plan", "assessment", "plan"]
    assert provider.left() == {"plan": 0, "assessment": 0}


def test_an_exhausted_or_unknown_stage_fails_loudly():
    provider = ScriptedProvider({"plan": ["x"]})
    ask(provider)
    with pytest.raises(AssertionError, match="call 2, stage plan"):
        ask(provider)
    with pytest.raises(AssertionError, match="stage interpretation"):
        ask(provider, "interpretation")


def test_an_error_without_bytes_is_raised_by_send_and_one_with_bytes_by_read():
    nothing_came = ProviderError("LLM_TIMEOUT", retryable=True)
    provider = ScriptedProvider(
        {"plan": [nothing_came, native_error("LLM_RATE_LIMITED", retryable=True, retry_after_s=7)]}
    )
    with pytest.raises(ProviderError) as sent:
        asyncio.run(provider.send(request()))
    assert sent.value is nothing_came
    native = asyncio.run(provider.send(request()))
    with pytest.raises(ProviderError) as read:
        provider.read(native)
    assert (read.value.code, read.value.retryable, read.value.retry_after) == ("LLM_RATE_LIMITED", True, 7)


def test_usage_finish_reason_and_tools_are_kept_and_absent_usage_stays_absent():
    full = native_reply("t", finish_reason="length", usage=Usage(input_tokens=3, output_tokens=0), tools=["shell"])
    reply = ModelReply(text="r", finish_reason="refusal", native_finish_reason="SAFETY", served_model="m")
    provider = ScriptedProvider({"plan": [full, reply, "bare"]})
    read = ask(provider)
    assert (read.finish_reason, read.usage.input_tokens, read.usage.output_tokens, read.tools) == (
        "length",
        3,
        0,
        ("shell",),
    )
    assert ask(provider) == reply
    assert ask(provider).usage == Usage()


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"\xff", b'{"text":1}', b'{"text":"x"}', b'{"text":"x","finish_reason":"?"}']
)
def test_strange_bytes_are_a_provider_error(body):
    with pytest.raises(ProviderError, match="LLM_UNAVAILABLE"):
        ScriptedProvider({}).read(NativeReply(status=200, body=body))


def test_the_raising_provider_lets_nothing_through():
    provider = RaisingProvider()
    with pytest.raises(AssertionError, match="stage plan, attempt 1"):
        asyncio.run(provider.send(request()))
    with pytest.raises(AssertionError, match="was read"):
        provider.read(native_reply("x"))
    asyncio.run(provider.aclose())


def test_the_fakes_are_what_they_stand_for():
    assert isinstance(ScriptedProvider({}), Provider)
    assert isinstance(RaisingProvider(), Provider)
    clock: Clock = FixedClock()
    assert clock.now() == clock.now()


def test_the_clock_moves_only_by_hand():
    clock = FixedClock()
    start = clock.now()
    clock.advance(90)
    assert ((clock.now() - start).total_seconds(), clock.monotonic()) == (90, 90)
    clock.set_now(datetime(2020, 1, 1, tzinfo=UTC))
    assert (clock.now(), clock.monotonic()) == (datetime(2020, 1, 1, tzinfo=UTC), 90)
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)
