from contextlib import suppress

import pytest
from casebound.contracts.case import Expectation, Report
from casebound.errors import SettingsError
from casebound.intake import builtin
from casebound.intake.readers import json as json_reader
from casebound.intake.readers import markdown, text
from casebound.testing.text import ugly_lines, ugly_texts
from hypothesis import given


def refusal(read, content):
    with pytest.raises(SettingsError) as caught:
        read(content)
    assert caught.value.code == "REPORT_SYNTAX"
    return caught.value


def test_the_builtin_readers_are_offered_through_the_hook():
    assert [(reader.name, reader.suffixes[0]) for reader in builtin.casebound_readers()] == [
        ("markdown", ".md"),
        ("text", ".txt"),
        ("json", ".json"),
        ("record", ".jsonl"),
        ("github", ".github.json"),
    ]


# --- Markdown -------------------------------------------------------------------------------------------------------


def test_front_matter_gives_id_and_title_and_the_rest_is_the_body():
    report = markdown.read('---\nid: ops#17\ntitle: "Host 5: down #3"\nlabels:\n  - bug\n---\r\nText.\n')
    assert report == Report(case_id="ops#17", title="Host 5: down #3", body="Text.\n")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("title: [DNS] lookup fails", "[DNS] lookup fails"),
        ("title: 'single'", "single"),
        ("Title: other case", "other case"),
        (r'title: "a \"quoted\" word"', r'"a \"quoted\" word"'),
        ("title: \"it's\" and 'that'", "\"it's\" and 'that'"),
        ("title: 'a' and 'b'", "'a' and 'b'"),
        ("title: a # b", "a # b"),
        ("title:", None),
        ("title: ~", None),
        ("title: null", None),
    ],
)
def test_front_matter_values_are_taken_as_written(written, title):
    assert markdown.read(f"---\n{written}\n...\nbody") == Report(title=title, body="body")


@pytest.mark.parametrize(
    "content",
    [
        "---\ntitle: never closed\nbody",
        "---\ntitle: x\nplain prose\n---\nbody",
        "---\nExpected: the host answers\n---\nbody",
        "---\n---\nbody",
        "--- \n\n---\nbody",
        " ---\ntitle: x\n---\nbody",
        "\n---\ntitle: x\n---\nbody",
        "----\ntitle: x\n----\nbody",
    ],
)
def test_what_is_not_exactly_front_matter_stays_in_the_body(content):
    assert markdown.read(content) == Report(body=content)


@pytest.mark.parametrize(
    ("content", "pointer", "where"),
    [
        ("---\nid: a\nid: b\n---\n", "/id", "line 3"),
        ("---\nid: a\n\nID: b\n---\n", "/id", "line 4"),
        ("---\nid: a\nlabel: x\nlabel: y\n---\n", "/label", "line 4"),
        ("---\ntitle: >\n  folded\n---\n", "/title", "line 2"),
        ("---\ntitle: one\n  two\n---\n", "/title", "line 3"),
    ],
)
def test_front_matter_with_two_meanings_is_refused_with_its_place(content, pointer, where):
    error = refusal(markdown.read, content)
    assert error.pointer == pointer
    assert error.where.endswith(where)


@pytest.mark.parametrize("content", ["# Host 5 is down\nText", "\n\r\n  # Host 5 is down ##\nText"])
def test_a_leading_heading_is_the_title_and_leaves_the_body(content):
    assert markdown.read(content) == Report(title="Host 5 is down", body="Text")


@pytest.mark.parametrize(
    "content",
    [
        "# Steps to reproduce\n1. x",
        "## Host 5 is down\nText",
        "#17 is down\nText",
        "Intro\n# Later\n",
        "# \nText",
        "# Title <!-- sample host 9 -->\nText",
    ],
)
def test_other_first_lines_are_no_title(content):
    assert markdown.read(content) == Report(body=content)


def test_a_title_in_the_front_matter_leaves_the_heading_in_the_body():
    assert markdown.read("---\ntitle: A\n---\n# B\n").body == "# B\n"


@given(ugly_texts(("---\n", "title: x\n", "id: y\n", "# ")))
def test_markdown_keeps_every_character_of_the_body(content):
    with suppress(SettingsError):
        assert content.endswith(markdown.read(content).body)


# --- plain text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_a_short_first_line_before_a_blank_one_is_the_title(eol):
    report = text.read(f"  Host 5 down {eol} {eol}Text{eol}")
    assert report == Report(title="Host 5 down", body=f"Text{eol}", body_format="text")


@pytest.mark.parametrize(
    "content",
    ["one line", "two\nlines", "x" * 121 + "\n\nText", "\n\nText", "only a title\n\n \n", "", "---\nid: a\n---\n"],
)
def test_other_text_has_no_title(content):
    assert text.read(content) == Report(body=content, body_format="text")


@given(ugly_lines(), ugly_texts())
def test_text_keeps_title_and_body_as_written(title, body):
    report = text.read(title + "\n\n" + body)
    assert (title + "\n\n" + body).endswith(report.body)
    assert report.title is None or report.title == title.strip()


# --- JSON -----------------------------------------------------------------------------------------------------------


def test_json_gives_every_part():
    report = json_reader.read(
        '{"id": "ops-1", "title": "T", "body": "B\\r\\n", "comments": ["c", {"body": "d", "author": {"login": "x"}}],'
        ' "expectations": ["e", {"text": "f", "provenance": "external_research", "reference": "RFC 1"}]}'
    )
    assert report == Report(
        case_id="ops-1",
        title="T",
        body="B\r\n",
        comments=("c", "d"),
        expectations=(
            Expectation(text="e", provenance="tester_declaration", reference=None),
            Expectation(text="f", provenance="external_research", reference="RFC 1"),
        ),
    )


def test_json_null_is_the_same_as_missing():
    content = '{"id": null, "title": null, "body": null, "comments": null, "expectations": null}'
    assert json_reader.read(content) == json_reader.read("{}") == Report()


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ('{"body": "a", "body": "b"}', "/body"),
        ('{"comments": ["a", {"body": "b", "body": "b"}]}', "/comments/1/body"),
        ('{"comments": [{"body": "b", "user": {"a/b~": 1, "a/b~": 1}}]}', "/comments/0/user/a~1b~0"),
        ('{"\\u0062ody": "a", "body": "b"}', "/body"),
        ('{"body": NaN}', "/body"),
        ('{"comments": [{"body": "b", "user": [-Infinity]}]}', "/comments/0/user/0"),
        ('{"Body": "a"}', "/Body"),
        ('{"severity": "a"}', "/severity"),
        ('{"comments": [{"body": "a", "text": "b"}]}', "/comments/0/text"),
        ('{"expectations": [{"text": "a", "source": "b"}]}', "/expectations/0/source"),
        ('{"expectations": [{"reference": "b"}]}', "/expectations/0/text"),
        ('{"expectations": [{"text": "a", "provenance": "rumour"}]}', "/expectations/0/provenance"),
        ('{"expectations": [{"text": "a", "provenance": null}]}', "/expectations/0/provenance"),
        ('{"expectations": [null]}', "/expectations/0"),
        ('{"id": 17}', "/id"),
        ('{"title": ["a"]}', "/title"),
        ('{"title": "a\\nb"}', "/title"),
        ('{"body": true}', "/body"),
        ('{"body": 1e999}', "/body"),
        ('{"body": ' + "9" * 5000 + "}", "/body"),
        ('{"comments": {"body": "a"}}', "/comments"),
        ('{"comments": "a"}', "/comments"),
        ('{"comments": [3]}', "/comments/0"),
        ("[]", "/"),
        ('"text"', "/"),
        ("NaN", "/"),
    ],
)
def test_json_with_another_meaning_is_refused_with_its_pointer(content, pointer):
    assert refusal(json_reader.read, content).pointer == pointer


@pytest.mark.parametrize("content", ["", "{", '{"a": 1} x', '{"body": "raw\nline"}', "{'body': 1}", '{"body": "\\x"}'])
def test_text_that_is_not_json_is_refused_with_line_and_column(content):
    assert refusal(json_reader.read, content).where.startswith("line ")


@pytest.mark.parametrize("opening", ["[", '{"body":'])
def test_json_nested_without_end_is_refused_without_a_crash(opening):
    refusal(json_reader.read, opening * 100_000)
    closing = {"[": "]", '{"body":': "}"}[opening]
    refusal(json_reader.read, opening * 100_000 + "1" + closing * 100_000)
    refusal(json_reader.read, opening * 900 + "1" + closing * 900)


def test_the_first_fault_in_the_text_is_the_one_that_is_told():
    content = '{"comments": [{"user": NaN, "url": {"a": 1, "a": 2}}, Infinity]}'
    assert refusal(json_reader.read, content).pointer == "/comments/0/user"


@pytest.mark.parametrize(
    ("content", "pointer", "is_body"),
    [
        ('{"id": "A-1", "text": "It fails."}', "/text", True),
        ('{"comments": [{"text": "Still."}]}', "/comments/0/text", True),
        ('{"id": "A-1", "severity": 3}', "/severity", False),
        ('{"body": "It fails.", "text": "It fails."}', "/text", False),
    ],
)
def test_a_text_under_another_key_is_told_to_be_the_missing_body(content, pointer, is_body):
    error = refusal(json_reader.read, content)
    assert (error.pointer, "no body" in error.found, "call it body" in error.hint) == (pointer, is_body, is_body)


def test_an_array_of_reports_names_the_command_that_takes_many():
    error = refusal(json_reader.read, '[{"body": "a"}, {"body": "b"}]')
    assert (error.found, "`casebound import FILE`" in error.hint) == ("an array", True)
