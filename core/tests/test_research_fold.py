"""What a match is, over all of Unicode."""

import re
import sys
from unicodedata import combining, normalize

import pytest
from casebound.errors import SettingsError
from casebound.research.fold import check_term, fold, has_one_spelling, matches, prefilter_pattern
from casebound.testing.conformance.catalog_rows import TEXTS, tables
from hypothesis import example, given

ALL = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]


def like(pattern, name):
    """LIKE as every database has it at least: `%`, and ASCII letters without case."""
    pieces = (re.escape(piece) for piece in pattern.split("%"))
    return re.fullmatch(".*".join(pieces), name, re.IGNORECASE | re.ASCII | re.DOTALL) is not None


@given(TEXTS)
def test_fold_is_idempotent_and_composed(text):
    assert fold(fold(text)) == fold(text)
    assert normalize("NFC", fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("term", "name", "same"),
    [
        ("node", "The NODE", True),
        ("ЖУК", "жук", True),
        ("İ", "i", False),
        ("İ", "İ", True),
        ("ẞ", "ß", True),
        ("ss", "ß", False),
        ("Σ", "ς", False),
        ("e\u0301", "É", True),
        ("e", "é", False),
        ("Ａ", "ａ", True),
        ("Ａ", "a", False),
        ("\u212a", "K", True),
        ("J\u030c", "\u01f0", True),
    ],
)
def test_named_examples(term, name, same):
    assert matches(term, name) is same


def test_only_a_sign_and_its_ascii_capital_fold_to_a_sign_that_stays_in_the_pattern():
    for spelling in ALL:
        folded = spelling.lower() if spelling.isascii() else fold(spelling)
        for sign in folded:
            if has_one_spelling(sign):
                assert spelling == sign or (spelling.isascii() and spelling.lower() == sign), f"U+{ord(spelling):04X}"


def test_no_mark_after_a_composed_letter_brings_a_sign_that_stays_to_light():
    composed = [sign for sign in ALL if normalize("NFD", sign) != sign and not "\uac00" <= sign <= "\ud7a3"]
    one_a_class = {combining(sign): sign for sign in ALL if combining(sign)}
    marks = {*one_a_class.values(), *map(chr, range(0x300, 0x346))}
    for letter in composed:
        for mark in marks:
            hidden = [
                sign for sign in fold(letter + mark) if has_one_spelling(sign) and sign not in letter.lower() + mark
            ]
            assert not hidden, (letter, mark)


def test_marks_never_stay():
    assert not [sign for sign in ALL if combining(sign) and has_one_spelling(sign)]


def test_most_signs_that_names_are_made_of_stay():
    assert [chr(code) for code in range(128) if not has_one_spelling(chr(code))] == ["%", ";", "\\", "_", "`", "k"]
    ideographs = [chr(code) for code in range(0x4E00, 0xA000)]
    assert 500 < sum(not has_one_spelling(sign) for sign in ideographs) < 1200


@given(tables())
@example(([], "x"))
def test_the_pattern_never_misses(drawn):
    rows, term = drawn
    pattern = prefilter_pattern(term)
    for row in rows:
        if matches(term, row.name):
            assert like(pattern, row.name)
            assert like(prefilter_pattern(term, ideographs=False), row.name)


@pytest.mark.parametrize(
    ("term", "pattern"),
    [
        ("Wild Boar", "%wild boar%"),
        ("50%_/x", "%50%/x%"),
        ("100 %", "%100 %"),
        ("Élan Vital", "%lan vital%"),
        ("Düsterer Kern", "%d%sterer %ern%"),
        ("中国节点", "%中国节点%"),
        ("豈有此理", "%有此%"),
        ("Жук", "%"),
        ("%", "%"),
        ("\\", "%"),
    ],
)
def test_patterns_by_example(term, pattern):
    assert prefilter_pattern(term) == pattern


def test_a_pattern_is_ascii_where_the_server_wants_it_and_never_long():
    assert prefilter_pattern("节点 a", ideographs=False) == "% a%"
    assert len(prefilter_pattern("ab" * 5000)) <= 202


@pytest.mark.parametrize(("term", "named"), [("a\0", "U+0000"), ("\udfff", "U+DFFF"), ("", "empty")])
def test_terms_that_cannot_be_asked_for(term, named):
    with pytest.raises(SettingsError) as refused:
        check_term(term)
    assert refused.value.code == "CATALOG_TERM"
    assert named in refused.value.found
    check_term(" ")
