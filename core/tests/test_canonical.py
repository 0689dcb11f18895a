"""Canonical JSON equals RFC 8785; strict JSON refuses whatever two readers may read differently."""

import json
import tracemalloc
from datetime import UTC, date, datetime, time

import pytest
import rfc8785
from casebound.canonical import MAX_SAFE_INTEGER, RunningDigest, canonical_bytes, digest_of, file_name_of, sent_bytes
from casebound.errors import ContractError
from casebound.pointer import json_pointer, resolve_pointer
from casebound.strict_json import JsonError, parse_json
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@given(VALUES)
def test_canonical_bytes_are_those_of_the_reference_implementation(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


def test_the_bytes_have_no_room_to_grow():
    """They are kept for as long as their case is under way, and there are many."""
    value = {"text": "x" * 5000}
    tracemalloc.start()
    try:
        kept = [canonical_bytes(value) for _ in range(100)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.2 * sum(map(len, kept))


@given(VALUES)
def test_canonical_form_is_a_fixed_point(value):
    data = canonical_bytes(value)
    assert parse_json(data) == value
    assert canonical_bytes(parse_json(data)) == data


@given(st.dictionaries(st.sampled_from(["\ue000", "\uffff", "\U00010000", "\U0001f600", "z", "\ud7ff"]), st.none()))
def test_keys_are_ordered_by_utf16_unit(value):
    """Beyond U+DFFF the order of code points and of UTF-16 units differ: the quick way must not be taken there."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": [1.5]}, "/a/0"),
        ({"a": {"b": MAX_SAFE_INTEGER + 1}}, "/a/b"),
        ({"a": float("nan")}, "/a"),
        ({1: "x"}, ""),
        ([b"x"], "/0"),
        ({"a": {1, 2}}, "/a"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_pointer(value, pointer):
    with pytest.raises(ContractError) as caught:
        canonical_bytes(value)
    assert (caught.value.code, caught.value.pointer) == ("CONTRACT_JSON", pointer)


def test_a_key_may_be_of_a_kind_of_text():
    class Word(str): ...

    assert canonical_bytes({Word("b"): 1, "a": {Word("\U00010000"): 2}}) == '{"a":{"\U00010000":2},"b":1}'.encode()


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_what_nests_deep_has_its_canonical_form_and_what_has_no_end_is_refused(wrap):
    value: object = 1
    for _ in range(800):
        value = wrap(value)
    assert canonical_bytes(value) == json.dumps(value, separators=(",", ":")).encode()
    endless: list[object] = []
    endless.append(wrap(endless))
    with pytest.raises(ContractError) as caught:
        canonical_bytes(endless)
    assert "nesting" in str(caught.value)


@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], {"\ud800": 1}])
def test_a_lone_surrogate_is_refused(value):
    with pytest.raises(ContractError):
        canonical_bytes(value)


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (b'{"a": 1, "a": 2}', "/a"),
        (b'[{"x": [{"b/~": 1, "b/~": 1}]}]', "/0/x/0/b~1~0"),
        (b'{"a": {"q": 1, "q": {"q": 1, "q": 2}}}', "/a/q"),
        (b'{"a": NaN}', "/a"),
        (b'{"a": -Infinity}', "/a"),
        (b"1e999", ""),
        (b'"\\ud800"', ""),
        (b'{"a": ["\\ud83d\\ude00", "\\udc00"]}', "/a/1"),
        (b'{"\\ud800": 1}', "/\\ud800"),
        (b'{"\\ud800": {"a": 1, "a": 1}}', "/\\ud800/a"),
        (b"[" * 100_000, ""),
        (b"1" * 5_000, ""),
        (b"{} {}", ""),
        (b"{}\n```", ""),
        (b"\xef\xbb\xbf{}", ""),
        (b'"\xff"', ""),
        (b"", ""),
        (b"{'a': 1}", ""),
    ],
)
def test_strict_json_refuses_what_readers_may_read_differently(data, pointer):
    with pytest.raises(JsonError) as caught:
        parse_json(data)
    assert caught.value.pointer == pointer


@given(VALUES)
def test_strict_json_reads_what_json_writes(value):
    assert parse_json(json.dumps(value).encode()) == value


@given(
    st.recursive(
        SCALARS | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    )
)
def test_what_is_sent_parses_to_what_it_was_with_its_keys_in_order(value):
    value = {"a": value}
    data = sent_bytes(value)
    assert json.dumps(json.loads(data)) == json.dumps(value)


def test_what_is_sent_has_no_needless_space():
    assert sent_bytes({"b": [1, {"c": "x, y"}], "a": None}) == b'{"b":[1,{"c":"x, y"}],"a":null}'


@pytest.mark.parametrize("value", [{"a": 2**80}, {"a": [None, -(2**64)]}])
def test_what_is_sent_may_hold_any_integer(value):
    assert json.loads(sent_bytes(value)) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("around", [lambda n: n, lambda n: [n], lambda n: [1, n], lambda n: {"a": n}])
def test_no_number_is_sent_that_json_does_not_have(number, around):
    with pytest.raises(ValueError, match="not JSON compliant"):
        sent_bytes({"a": around(number)})


@pytest.mark.parametrize("value", [datetime(2026, 12, 1, tzinfo=UTC), date(2026, 12, 1), time(8)])
def test_nothing_is_sent_as_text_that_is_none(value):
    with pytest.raises(TypeError):
        sent_bytes({"a": [value]})


def test_no_lone_surrogate_is_sent():
    with pytest.raises(UnicodeEncodeError):
        sent_bytes({"a": "\ud800"})


def test_a_digest_names_its_algorithm_and_is_over_bytes():
    assert digest_of(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    running = RunningDigest()
    for part in (b"ab", b"", b"c"):
        running.update(part)
    assert running.digest() == digest_of(b"abc")
    assert file_name_of(digest_of(b"")).startswith("sha256-e3b0c442")


@given(VALUES)
def test_every_part_is_found_again_by_its_pointer(value):
    def parts(item, path):
        yield path, item
        children = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        for key, child in children:
            yield from parts(child, (*path, key))

    for path, part in parts(value, ()):
        assert resolve_pointer(value, json_pointer(path)) == part


def test_a_pointer_to_nothing_is_a_key_error():
    for pointer in ("/a", "/0", "/x/0"):
        with pytest.raises(KeyError):
            resolve_pointer({"x": []}, pointer)
