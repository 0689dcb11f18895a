"""The quick way to canonical JSON gives what the second implementation gives, and refuses what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rfc8785
from casebound.canonical import canonical_bytes, digest_of
from casebound.errors import ContractError
from casebound.pointer import first_difference, resolve_pointer
from casebound.strict_json import JsonError, parse_json
from hypothesis import example, given
from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]))
doubtful = st.sampled_from(
    [",1.5", "[1e9", ":12345678901234567890", '{"1":', ",NaN", ":-Infinity", '\\",\\"1\\":', "\U0001f600"]
)
scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts | doubtful
keys = texts | doubtful | st.sampled_from(["\uffff", "\U00010000", "\ue000", "1", "-2", "true", "null", "1.5"])
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


@given(values)
@example({"\U00010000": 1, "\uffff": 2})
@example({"é": 1, "z": 2})
def test_it_is_what_the_second_implementation_writes(value: Any) -> None:
    data = canonical_bytes(value)
    assert data == rfc8785.dumps(value)
    assert parse_json(data) == value
    assert canonical_bytes(parse_json(data)) == data


bad = st.sampled_from(
    [1.5, 0.0, -0.0, math.inf, math.nan, 2**53, -(2**53), b"x", {1: 2}, {None: 1}, {True: 1}, {1.5: 1}, {1}]
)


@given(st.lists(values, max_size=3), bad)
def test_what_has_no_exact_form_is_refused_with_its_place(before: list[Any], wrong: Any) -> None:
    with pytest.raises(ContractError, match="CONTRACT_JSON") as raised:
        canonical_bytes({"a/b": [*before, wrong]})
    assert raised.value.pointer == f"/a~1b/{len(before)}"


@pytest.mark.parametrize("value", [1.5, 2**53, b"x", {1: 2}, {"a": "\ud800"}, {"\udfff": 1}, "\ud800"])
def test_alone_too(value: object) -> None:
    with pytest.raises(ContractError, match="CONTRACT_JSON"):
        canonical_bytes(value)


def test_what_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ContractError, match="CONTRACT_JSON"):
        canonical_bytes(value)


def test_a_digest_is_over_bytes() -> None:
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("data", [b"NaN", b"[Infinity]", b"1e999", b'{"a":1,"a":1}', b"1 2", b"\xff", b'"\\ud800"'])
def test_what_two_readers_could_read_differently_is_no_json(data: bytes) -> None:
    with pytest.raises(JsonError):
        parse_json(data)


@given(values, values)
def test_the_first_difference_is_one(one: Any, other: Any) -> None:
    pointer = first_difference(one, other)
    if pointer is None:
        assert canonical_bytes(one) == canonical_bytes(other)
        return
    found = []
    for value in (one, other):
        try:
            found.append(canonical_bytes(resolve_pointer(value, pointer)))
        except KeyError:
            found.append(b"")
    assert found[0] != found[1]
