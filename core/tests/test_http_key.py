"""A key that a server echoes reaches nobody; a stand-in for servers without keys damages no reply."""

import gc
import re
import weakref

import pytest
from casebound.llm.http.key import Mask, resolve_key
from casebound.settings import Secret


@pytest.mark.parametrize(
    "echo",
    ['ab"cd/ef+gh==', 'ab\\"cd\\/ef+gh==', "ab\\u0022cd\\u002Fef\\u002bgh\\u003d\\u003D", "ab%22cd%2Fef%2bgh%3D%3D"],
)
def test_a_key_that_a_server_echoes_is_masked_however_it_is_spelt(echo):
    assert Mask(Secret('ab"cd/ef+gh==')).masked(f"no such key: {echo}.".encode()) == b"no such key: [key]."


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
