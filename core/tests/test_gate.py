"""The gate of a run, and the tally of its calls."""

from __future__ import annotations

import asyncio

import pytest
from casebound.contracts.model_call import Usage
from casebound.errors import REFUSALS, ProviderError
from casebound.gate import Gate, Stopped
from casebound.llm.permit import UNLIMITED
from casebound.llm.tally import Tally
from hypothesis import given
from hypothesis import strategies as st


@given(most=st.integers(0, 20), asked=st.integers(0, 40))
def test_exactly_as_many_calls_go_through_as_are_permitted(most, asked):
    gate, refused = Gate(most), []
    for _ in range(asked):
        try:
            gate.enter()
        except Stopped as stopped:
            refused.append(stopped.reason)
    assert gate.passed == min(most, asked)
    assert refused == ["max_dispatches"] * (asked - gate.passed)
    assert gate.reason == ("max_dispatches" if asked > most else None)


def test_a_closed_gate_keeps_its_first_reason():
    gate = Gate()
    gate.check()
    gate.close("interrupted")
    gate.close("BUDGET_REACHED")
    with pytest.raises(Stopped, match="interrupted"):
        gate.check()
    with pytest.raises(Stopped, match="interrupted"):
        gate.enter()
    assert gate.passed == 0


def test_who_waits_in_front_of_a_gate_is_woken_when_it_closes():
    ended = []

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def scenario():
        gate = Gate()
        waiting = asyncio.ensure_future(gate.unless_closed(wait()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.close("interrupted")
        with pytest.raises(Stopped, match="interrupted"):
            await waiting
        with pytest.raises(Stopped):
            await gate.unless_closed(wait())

    asyncio.run(scenario())
    assert ended[0]


def test_what_was_waited_for_and_came_is_returned_even_if_the_gate_closes_then():
    async def scenario():
        gate = Gate()
        gate.close("interrupted")
        came = asyncio.get_running_loop().create_future()
        came.set_result("here")
        assert await gate.unless_closed(came) == "here"

        async def fail():
            raise LookupError("of its own")

        with pytest.raises(LookupError, match="of its own"):
            await Gate().unless_closed(fail())

    asyncio.run(scenario())


def test_cancelling_who_waits_cancels_what_he_waits_for():
    async def scenario():
        event, gate = asyncio.Event(), Gate()
        inner = asyncio.ensure_future(event.wait())
        waiting = asyncio.ensure_future(gate.unless_closed(inner))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert inner.cancelled()

    asyncio.run(scenario())


# --- the tally --------------------------------------------------------------------------------------------------------

USAGES = st.none() | st.builds(
    Usage, input_tokens=st.none() | st.integers(0, 9), output_tokens=st.none() | st.integers(0, 9)
)


def departed(permit):
    """Let the call depart, which with nobody to wait for takes no loop."""
    with pytest.raises(StopIteration):
        permit.depart().send(None)
    return permit


@given(st.lists(USAGES))
def test_tokens_are_summed_as_reported_and_calls_that_did_not_report_are_counted(usages):
    tally = Tally()
    for usage in usages:
        with tally.counted(UNLIMITED) as permit:
            assert (tally.begun, tally.in_flight) == (1, 0)
            departed(permit)
            assert (tally.begun, tally.in_flight) == (1, 1)
            permit.over()
            assert (tally.begun, tally.in_flight) == (0, 0)
            if usage is not None:
                permit.used(usage)
    assert tally.sent == len(usages)
    for name in ("input_tokens", "output_tokens"):
        counts = [None if usage is None else getattr(usage, name) for usage in usages]
        assert getattr(tally, name) == sum(count or 0 for count in counts)
    silent = [usage for usage in usages if usage is None or None in (usage.input_tokens, usage.output_tokens)]
    assert tally.unreported_calls == len(silent)


@pytest.mark.parametrize("code", REFUSALS)
def test_a_call_that_was_refused_took_no_tokens_and_has_nothing_to_report(code):
    tally = Tally()
    with tally.counted(UNLIMITED) as permit:
        departed(permit).failed(ProviderError(code, retryable=False))
    assert (tally.sent, tally.input_tokens, tally.output_tokens, tally.unreported_calls) == (1, 0, 0, 0)
    with tally.counted(UNLIMITED) as permit:
        departed(permit).failed(ProviderError("LLM_UNAVAILABLE", retryable=True))
    assert tally.unreported_calls == 1


def test_a_call_that_never_said_that_it_is_over_is_no_longer_in_flight_afterwards():
    tally = Tally()

    def cancelled():
        with tally.counted(UNLIMITED) as permit:
            departed(permit)
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        cancelled()
    assert (tally.sent, tally.in_flight, tally.unreported_calls) == (1, 0, 1)


def test_a_call_that_never_departed_was_not_sent():
    tally = Tally()
    with pytest.raises(asyncio.CancelledError), tally.counted(UNLIMITED):
        raise asyncio.CancelledError
    assert (tally.begun, tally.sent, tally.unreported_calls) == (0, 0, 0)
