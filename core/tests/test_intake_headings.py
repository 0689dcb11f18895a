from itertools import groupby

import pytest
from casebound.intake.headings import MAX_HEADING, builtin_words, derive_builtin_headings, heading_key
from casebound.testing.text import ugly_texts
from hypothesis import given

LANGUAGES = {"en", "de", "fr", "es", "ru", "zh"}


def test_every_kind_has_words_in_all_six_languages():
    found = {}
    for kind, language, word in builtin_words():
        assert word
        found.setdefault(kind, set()).add(language)
    assert found == dict.fromkeys(
        ("observation", "expectation", "reproduction", "environment", "reference", "text"), LANGUAGES
    )


def test_no_heading_has_two_kinds_and_none_an_empty_key():
    by_key = sorted((heading_key(word), kind) for kind, _, word in builtin_words())
    kinds = {key: {kind for _, kind in group} for key, group in groupby(by_key, key=lambda pair: pair[0])}
    assert "" not in kinds
    assert {key: found for key, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Current Behaviour:", "observation"),
        ("**Description**", "observation"),
        ("What happened?", "observation"),
        ("\U0001f41b Describe the bug", "observation"),
        ("1. Actual results", "observation"),
        ("Expected behavior (required)", "expectation"),
        ("What did you expect to happen?", "expectation"),
        ("Steps to reproduce the problem:", "reproduction"),
        ("Branch(es):", "environment"),
        ("Operating system", "environment"),
        ("Source (if any)", "reference"),
        ("Additional context", "text"),
        ("Tatsa\u0308chliches Verhalten", "observation"),
        ("ERWARTETES VERHALTEN", "expectation"),
        ("Schritte zum Reproduzieren", "reproduction"),
        ("Résultat attendu\u00a0:", "expectation"),
        ("Étapes pour reproduire", "reproduction"),
        ("Qu\u2019attendiez-vous\u00a0?", "expectation"),
        ("Comportamiento esperado", "expectation"),
        ("\u00bfQué ocurre?", "observation"),
        (
            "Ожидаемое поведение",
            "expectation",
        ),
        (
            "Шаги воспроизведения:",
            "reproduction",
        ),
        ("实际行为\uff1a", "observation"),
        ("预期结果", "expectation"),
        ("重现步骤\uff08必填\uff09", "reproduction"),
    ],
)
def test_headings_of_real_templates_are_known(heading, kind):
    assert derive_builtin_headings()[heading_key(heading)] == kind


@pytest.mark.parametrize(
    "heading", ["Host 5", "", "***", "(optional)", "x" * 200, "expectedbehavior", "host description"]
)
def test_other_headings_are_not(heading):
    assert heading_key(heading) not in derive_builtin_headings()


def test_headings_are_compared_without_case_in_every_script():
    assert heading_key("GRÖSSE") == heading_key("größe")
    assert heading_key("ΟΣ") == heading_key("ος")


def test_the_table_is_a_fresh_value_each_time():
    derive_builtin_headings().clear()
    assert derive_builtin_headings()


@given(ugly_texts())
def test_every_text_has_a_key_and_long_ones_the_empty_key(text):
    key = heading_key(text)
    assert key == "" if len(text) > MAX_HEADING else key == key.strip()
