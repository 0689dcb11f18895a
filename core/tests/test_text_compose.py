"""Composing a text: what the standard library gives, without its quadratic time."""

from __future__ import annotations

import subprocess
import sys
from unicodedata import combining, normalize

from casebound.text import compose
from hypothesis import given
from hypothesis import strategies as st

SIGNS = st.sampled_from(
    "\u0327\u0301\u0323\u0344\u0f73\u0f75\u0f81\u0308\u0345\U0001d165ae\u00e9\u1e69\uac00\u11a8\u212b x"
)


@given(st.lists(st.tuples(st.text(SIGNS, max_size=6), st.integers(1, 40)), max_size=12))
def test_compose_is_nfc(parts):
    text = "".join(part * times for part, times in parts) + "." * 2048
    assert compose(text) == normalize("NFC", text)


def test_every_mark_takes_part_in_a_run():
    marks = [chr(code) for code in range(0x300, 0x110000) if not 0xD800 <= code < 0xE000 and unstarted(chr(code))]
    assert len(marks) > 900
    for mark in marks:
        text = "a" + mark * 40 + "\u0316\u0327" * 20 + "." * 2048
        assert compose(text) == normalize("NFC", text), ascii(mark)


def unstarted(sign: str) -> bool:
    return all(map(combining, normalize("NFD", sign)))


def test_a_megabyte_of_marks_takes_no_quadratic_time():
    code = "from casebound.text import compose; print(len(compose('\\u0327\\u0301\\u0323' * 150_000)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "450000\n"
