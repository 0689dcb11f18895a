"""Whose turn it is: a pure function of the frozen policy and of what is on disk, with a bound on what may be sent."""

from __future__ import annotations

from itertools import pairwise

import pytest
from casebound.contracts.interpretation import Answerer, StagePolicy
from casebound.contracts.model_call import Outcome
from casebound.contracts.plan import FrozenProtocol, Offered
from casebound.errors import TRANSIENT
from casebound.llm.attempts import Attempt
from casebound.llm.course import Course, derive_turns
from hypothesis import given
from hypothesis import strategies as st

OWNER = Offered(distribution="casebound-x", version="1")
DIGEST = "sha256:" + "0" * 64
MOVING = ("LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE", "LLM_QUOTA")
CODES = (*TRANSIENT, "LLM_QUOTA", "LLM_AUTH", "LLM_REQUEST")


def answerer(model, cap=1000, factor="2"):
    return Answerer(
        provider="p",
        offered_by=OWNER,
        resolver="model",
        model=model,
        response_format="text",
        timeout_s=9,
        max_output_tokens=cap,
        incomplete_cap_factor=factor,
    )


def policy(retries=1, fallbacks=("second", "third"), codes=MOVING, unknown="retry", caps=(1000, 300, 70)):
    first, *others = (answerer(model, cap) for model, cap in zip(("first", *fallbacks), caps, strict=False))
    return StagePolicy(
        **dict(first),
        stage="plan",
        unknown_calls=unknown,
        max_invalid_responses=3,
        max_retries=retries,
        fallbacks=tuple(others),
        fallback_codes=codes,
        protocol=FrozenProtocol(stage="plan", version=4, prompt_id="plan-v4", offered_by=OWNER),
        rules=(),
    )


def outcome(word):
    """Return the outcome that a word means: a code of the provider's, `unknown`, `accepted`, or a code of a reply."""
    kind = "provider_error" if word in CODES else word if word in ("unknown", "accepted") else "invalid"
    code = {"unknown": "LLM_CALL_UNKNOWN", "accepted": None}.get(word, word)
    return Outcome(kind=kind, code=code, request=DIGEST, native=None, at="2026-11-01T08:00:00.000Z")


def attempts(*words):
    return [Attempt(number, outcome(word)) for number, word in enumerate(words, start=1)]


def course(policy, *words, resumed=()):
    return [(turn.place, turn.follows) for turn in derive_turns(policy, attempts(*words), frozenset(resumed))][1:]


T, Q, BAD = "LLM_TIMEOUT", "LLM_QUOTA", "LLM_OUTPUT_JSON"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # A transient failure spends a retry first; the fallbacks inherit what is left of them.
        ([T, T, T, T], [(0, "wait"), (1, "ask"), (2, "ask"), (2, "stop")]),
        ([Q, T, T, T], [(1, "ask"), (1, "wait"), (2, "ask"), (2, "stop")]),
        ([Q, Q, T, T], [(1, "ask"), (2, "ask"), (2, "wait"), (2, "stop")]),
        # What a retry does not mend moves on at once, or stops at once; the last one's failure decides.
        ([Q, Q, Q], [(1, "ask"), (2, "ask"), (2, "stop")]),
        (["LLM_AUTH"], [(0, "stop")]),
        ([Q, "LLM_AUTH"], [(1, "ask"), (1, "stop")]),
        # A reply that does not hold moves nothing, and gives nobody a new count.
        ([BAD, Q, BAD, T, BAD, T], [(0, "ask"), (1, "ask"), (1, "ask"), (1, "wait"), (1, "ask"), (2, "ask")]),
        # A call of which nobody knows spends a retry, and is no reason to move on.
        (["unknown", "unknown"], [(0, "ask"), (0, "stop")]),
        ([T, "unknown"], [(0, "wait"), (0, "stop")]),
        (["unknown", T, T], [(0, "ask"), (1, "ask"), (2, "ask")]),
    ],
)
def test_who_is_asked_after_what(words, expected):
    assert course(policy(), *words) == expected


def test_without_retries_it_moves_on_at_once():
    assert course(policy(retries=0), T, T, T) == [(1, "ask"), (2, "ask"), (2, "stop")]


def test_only_the_listed_codes_move_a_stage_on():
    assert course(policy(retries=0, codes=(Q,)), T) == [(0, "stop")]
    assert course(policy(codes=("LLM_AUTH", "LLM_REQUEST")), "LLM_AUTH", "LLM_REQUEST", Q) == [
        (1, "ask"),
        (2, "ask"),
        (2, "stop"),
    ]


def test_an_unknown_call_stops_every_answerer_under_hold():
    assert course(policy(unknown="hold"), Q, "unknown") == [(1, "ask"), (1, "stop")]


def test_without_fallbacks_it_is_as_it_was():
    alone = policy(retries=2, fallbacks=(), codes=())
    assert course(alone, T, T, T) == [(0, "wait"), (0, "wait"), (0, "stop")]
    assert course(alone, Q) == [(0, "stop")]


def test_a_resumption_begins_a_new_count_with_the_first():
    words = [Q, Q, Q, T, T, Q]
    assert course(policy(), *words, resumed=[3])[2:] == [(0, "ask"), (0, "wait"), (1, "ask"), (2, "ask")]
    failures = Course(policy(), attempts(*words), frozenset([3])).failures()
    assert [(place, one.code) for place, one in failures] == [(0, T), (0, T), (1, Q)]


def test_a_cap_grows_by_ones_own_cut_replies_only():
    """Fault 10: what somebody else may say at most is no measure of what this one may."""
    cut = "LLM_INCOMPLETE_OUTPUT"
    said = [cut, Q, cut, cut, Q]
    caps = [Course(policy(), attempts(*said[:number]), ()).max_output_tokens for number in range(6)]
    assert caps == [1000, 2000, 300, 600, 1200, 70]
    assert Course(policy(retries=0, codes=()), attempts(cut, T), {2}).max_output_tokens == 2000


def test_whose_reply_was_accepted_is_told():
    assert Course(policy(), attempts(Q, "accepted"), ()).accepted == 1
    assert Course(policy(), attempts("accepted"), ()).accepted == 0
    assert Course(policy(), attempts(BAD, Q), ()).accepted is None


POLICIES = st.builds(
    policy,
    retries=st.integers(0, 4),
    fallbacks=st.sampled_from([(), ("second",), ("second", "third")]),
    codes=st.sets(st.sampled_from(CODES)).map(lambda codes: tuple(sorted(codes))),
    unknown=st.sampled_from(["retry", "hold"]),
)
WORDS = st.lists(st.sampled_from([*CODES, "unknown", BAD]), max_size=30)


@given(POLICIES, WORDS)
def test_failures_never_exceed_the_declared_policy(policy, words):
    """Fault 18: retries and fallbacks add up; they never multiply."""
    sent = failures = 0
    while sent < len(words) and derive_turns(policy, attempts(*words[:sent]), ())[-1].follows != "stop":
        failures += words[sent] != BAD
        sent += 1
    assert failures <= policy.max_retries + len(policy.answerers)


@given(POLICIES, WORDS, st.sets(st.integers(1, 30)))
def test_what_was_derived_of_a_beginning_never_changes(policy, words, resumed):
    whole = derive_turns(policy, attempts(*words), resumed)
    for length in range(len(words) + 1):
        known = {number for number in resumed if number <= length}
        assert derive_turns(policy, attempts(*words[:length]), known) == whole[: length + 1]


@given(POLICIES, WORDS, st.sets(st.integers(1, 30)))
def test_between_two_resumptions_the_order_only_goes_forward(policy, words, resumed):
    turns = derive_turns(policy, attempts(*words), resumed)
    for number, (turn, later) in enumerate(pairwise(turns), start=1):
        step = later.place - turn.place
        assert step in (0, 1) or (number in resumed and later.place == 0)
        assert number in resumed or later.retries <= turn.retries
        assert 0 <= later.place < len(policy.answerers)
