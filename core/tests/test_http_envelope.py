"""The JSON around a model's text is read strictly, and only what it reports is believed."""

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError
from casebound.llm.http.envelope import count_of, lenient_json, mapping, read_envelope, sequence, text_of
from hypothesis import given
from hypothesis import strategies as st


def read(body):
    return read_envelope(NativeReply(status=200, body=body), "JSON of a chat")


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n \n", b": PROCESSING\n\n: PROCESSING\r\n"])
def test_what_routers_put_before_the_json_is_skipped(before):
    assert read(before + b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no JSON"),
        (b"\xff{}", "not UTF-8"),
        (b"{} {}", "no JSON"),
        (b"[1]", "no object"),
        (b'{"a":1,"a":2}', "the key 'a' twice"),
        (b"[" * 100_000, "no JSON"),
        (b"9" * 5_000, "no JSON"),
    ],
)
def test_anything_but_one_object_is_no_reply(body, says):
    with pytest.raises(ProviderError, match=says) as caught:
        read(body)
    assert (caught.value.code, caught.value.expected) == ("LLM_UNAVAILABLE", "JSON of a chat")
    assert caught.value.__cause__ is None


def test_a_number_that_is_none_does_not_cost_the_reply():
    assert read(b'{"a":NaN,"b":-Infinity,"c":1}') == {"a": None, "b": None, "c": 1}


def test_the_body_of_an_error_may_be_anything():
    assert lenient_json(NativeReply(status=500, body=b'{"a":1}')) == {"a": 1}
    assert lenient_json(NativeReply(status=500, body=b"<html>")) is None


def test_only_what_has_its_shape_is_believed():
    assert [count_of(value) for value in (0, 7, 10**12, -1, 1.0, True, "7", None)] == [0, 7, 10**12, *[None] * 5]
    assert [count_of(value) for value in (10**12 + 1, 2**53 - 1)] == [None, None]
    assert [text_of(value) for value in ("x", "", 7, None, "\ud83d")] == ["x", None, None, None, "\\ud83d"]
    assert [mapping(value) for value in ({"a": 1}, [1], None)] == [{"a": 1}, {}, {}]
    assert [list(sequence(value)) for value in ([1], "ab", {"a": 1}, None)] == [[1], [], [], []]


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_our_error(body):
    try:
        found = type(read(body)).__name__
    except ProviderError as error:
        found = error.code
    assert found in {"dict", "LLM_UNAVAILABLE"}
