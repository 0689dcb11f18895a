"""A key that a server echoes reaches nobody; a stand-in for servers without keys damages no reply."""

import base64
import gc
import html
import json
import re
import weakref
from urllib.parse import quote

import pytest
from casebound.llm.http.key import Mask, resolve_key
from casebound.settings import Secret
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "echo",
    ['ab"cd/ef+gh==', 'ab\\"cd\\/ef+gh==', "ab\\u0022cd\\u002Fef\\u002bgh\\u003d\\u003D", "ab%22cd%2Fef%2bgh%3D%3D"],
)
def test_a_key_that_a_server_echoes_is_masked_however_it_is_spelt(echo):
    assert Mask(Secret('ab"cd/ef+gh==')).masked(f"no such key: {echo}.".encode()) == b"no such key: [key]."


SIGNS = "".join(map(chr, range(0x21, 0x7F)))
KEYS = ['ab"cd/ef+gh==', "a&b<c>d'e%f&amp;g", 'C:\\\\x\\"y\\u0022z', "\\" * 40 + "end", "%25%25u0075&#38;", SIGNS]


def in_json(text):
    return json.dumps(text)[1:-1]


def by_number(form):
    return lambda key: "".join(form.format(ord(sign)) for sign in key)


SPELLINGS = {
    "plain": lambda key: key,
    "JSON": in_json,
    "JSON in JSON": lambda key: in_json(in_json(key)),
    "JSON three times": lambda key: in_json(in_json(in_json(key))),
    "JSON by numbers": by_number("\\u{:04x}"),
    "JSON by numbers in JSON": by_number("\\\\u{:04X}"),
    "URL": lambda key: quote(key, safe=""),
    "URL in a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "HTML": html.escape,
    "HTML in HTML": lambda key: html.escape(html.escape(key)),
    "HTML in JSON": lambda key: in_json(html.escape(key)),
    "HTML by numbers": by_number("&#{};"),
    "HTML by padded numbers": by_number("&#{:05};"),
    "HTML by hexadecimal numbers": by_number("&#x{:x};"),
    "HTML by large hexadecimal numbers": by_number("&#X{:04X};"),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_of_any_signs_is_masked_in_every_spelling(key, spelling):
    said = f"no such key: {SPELLINGS[spelling](key)}."
    assert Mask(Secret(key)).masked(said.encode()) == b"no such key: [key]."


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("before", ["", "k", "kk", "user:", "Bearer "])
@pytest.mark.parametrize("alphabet", [b"+/", b"-_"])
def test_a_key_in_base64_is_masked_wherever_it_begins(key, before, alphabet):
    said = base64.b64encode(f"{before}{key}!!".encode(), alphabet)
    masked = Mask(Secret(key)).masked(said)
    start, _, end = masked.partition(b"[key]")
    assert len(start) + len(end) <= len(base64.b64encode(f"{before}!!".encode())) + 4
    assert b"[key]" in masked


@pytest.mark.parametrize("key", [*KEYS, "\\" * 200, "u0075" * 40, "%25" * 60, "&amp;" * 40, "&&&&%%%%uuuu" * 10])
@pytest.mark.parametrize("word", ["\\", "%25", "%5c", "&amp;", "&#38;", "\\u0075", "\\u005c", "u", "&", "%"])
def test_no_key_makes_the_search_endless(key, word):
    said = (word * 5000 + "!").encode()
    assert Mask(Secret(key + "end")).masked(said) == said


@settings(deadline=None)
@given(st.text(SIGNS, min_size=8, max_size=40), st.sampled_from(sorted(SPELLINGS)))
def test_no_key_is_seen_in_any_spelling(key, spelling):
    # A key that ends in the code of a sign can be read in two ways; the rest of the other one may stay.
    assert Mask(Secret(key)).masked(f" {SPELLINGS[spelling](key)} ".encode()).startswith(b" [key]")


@pytest.mark.parametrize("key", [None, Secret("sk-none")])
def test_without_a_real_key_the_bytes_stay_as_they_are(key):
    assert Mask(key).masked(b"no such key: sk-none") == b"no such key: sk-none"


def test_the_pattern_that_finds_a_key_ends_with_its_owner():
    mask = Mask(Secret("a-key-of-nobody"))
    pattern = weakref.ref(mask._spellings)
    assert "a-key" not in repr(mask)
    re.purge()  # the library keeps the patterns that it compiled last
    del mask
    gc.collect()
    assert pattern() is None


def test_settings_that_point_to_no_key_have_none():
    assert resolve_key(env=None, cmd=None, provider="vendor") is None
