"""Where the lines of JSON Lines and the elements of arrays begin and end, whatever the chunks of the stream."""

import io
import json
import tracemalloc

import pytest
from casebound.errors import SettingsError
from casebound.workspace.elements import split_arrays, split_lines
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


class Dribble(io.BytesIO):
    """Gives at most `step` bytes a read."""

    def __init__(self, data, step):
        super().__init__(data)
        self.step = step

    def read(self, size=-1):
        return super().read(min(self.step, size) if size >= 0 else self.step)


def elements(data, *, step=1 << 16, max_bytes=1000):
    return list(split_arrays(Dribble(data, step), max_bytes))


@given(st.lists(VALUES, max_size=6), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_every_element_comes_with_its_own_bytes(values, step, indent, ascii_only):
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = elements(data, step=step, max_bytes=1 << 20)
    assert [number for number, _ in found] == list(range(1, len(values) + 1))
    assert [json.loads(part) for _, part in found] == values
    assert all(part in data and part == part.strip() for _, part in found)


@pytest.mark.parametrize("data", [b"", b" \n", b"[]", b"[ \r\n]", b"[][ ]"])
def test_nothing_is_no_element(data):
    assert elements(data) == []


def test_several_arrays_one_after_another_are_counted_on():
    assert elements(b'[1, "a]"]\n[{"b": [2]}]') == [(1, b"1"), (2, b'"a]"'), (3, b'{"b": [2]}')]


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_an_element_that_is_no_json_does_not_hide_the_next(step):
    found = elements(b'[{"a": NaN}, nonsense, {"b": 1}, , {"c": "x\\\\", "d": "\\""}]', step=step)
    assert [part for _, part in found] == [b'{"a": NaN}', b"nonsense", b'{"b": 1}', b"", b'{"c": "x\\\\", "d": "\\""}']


@pytest.mark.parametrize("step", [3, 1 << 16])
def test_an_element_that_is_too_large_is_told_and_passed_over(step):
    small, large = b'{"a": 1}', b'{"a": "' + b'\\"],' * 400 + b'"}'
    data = b"[" + b" , ".join([small, large, small]) + b"]"
    assert elements(data, step=step) == [(1, small), (2, None), (3, small)]
    assert elements(b"[" + large + b"\n]", max_bytes=len(large)) == [(1, large)]
    assert elements(b"[" + large + b"\n]", max_bytes=len(large) - 1) == [(1, None)]


@pytest.mark.parametrize(
    ("data", "whole", "found"),
    [
        (b'[{"a": 1}, {"b": 2', 1, "the end of the file"),
        (b'[{"a": 1}, {"b": "2]', 1, "the end of the file"),
        (b'[{"a": 1}', 0, "the end of the file"),
        (b'[{"a": 1}] x', 1, "the byte 0x78"),
        (b'[{"a": 1}], [2]', 1, "the byte 0x2c"),
        (b"[}", 0, "the sign }"),
        (b"{}", 0, "the byte 0x7b"),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 16])
def test_an_array_that_does_not_hold_gives_what_stands_before(data, whole, found, step):
    given_out = []
    with pytest.raises(SettingsError) as caught:
        given_out.extend(split_arrays(Dribble(data, step), 1000))
    assert len(given_out) == whole
    assert (caught.value.code, caught.value.found) == ("REPORT_SYNTAX", found)
    assert caught.value.where.startswith("byte ")


def test_nesting_and_space_without_end_take_no_memory():
    class Endless(io.RawIOBase):
        def __init__(self, start, sign, size):
            self.left, self.start, self.sign = size, start, sign

        def read(self, size=-1):
            part, self.start = (self.start or self.sign * size), b""
            self.left -= len(part)
            return part if self.left > 0 else b""

    for start, sign in ((b"[", b"["), (b'["', b"a"), (b"[1", b" "), (b'["', b"\\")):
        tracemalloc.start()
        with pytest.raises(SettingsError):
            list(split_arrays(Endless(start, sign, 8 << 20), 1 << 18))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 << 20


# --- lines ----------------------------------------------------------------------------------------------------------


def lines(data, max_bytes=20):
    return list(split_lines(io.BytesIO(data), max_bytes))


def test_lines_are_numbered_as_an_editor_numbers_them():
    assert lines(b'{"a": 1}\r\n\n  {"b": 2}  \n{"c') == [(1, b'{"a": 1}'), (3, b'{"b": 2}'), (4, b'{"c')]
    assert lines(b"") == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_may_have_exactly_the_limit(end):
    assert lines(b"x" * 20 + end) == [(1, b"x" * 20)]
    assert lines(b"x" * 21 + end) == [(1, None)]


@pytest.mark.parametrize("extra", [1, 2, 3, 1 << 16, (1 << 16) + 1, 200_000])
def test_a_line_that_is_too_large_is_told_and_the_next_one_read(extra):
    assert lines(b"x" * (20 + extra) + b'\n{"b": 2}\n') == [(1, None), (2, b'{"b": 2}')]
    assert lines(b"x" * (20 + extra)) == [(1, None)]
