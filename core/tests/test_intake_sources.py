from itertools import pairwise

import pytest
from casebound.contracts.case import Expectation, Report
from casebound.intake.blocks import is_visible, split_markdown, split_text
from casebound.intake.build import freeze_build
from casebound.intake.headings import derive_builtin_headings
from casebound.intake.sources import MOST_PIECES, derive_fields, derive_sources
from casebound.testing.text import INVISIBLES, LINE_ENDS, SEPARATORS, ugly_lines, ugly_texts
from hypothesis import given, settings
from hypothesis import strategies as st

HEADINGS = derive_builtin_headings()
LABELS = ("Expected: ", "**Actual result:** ", "## Steps to reproduce\n", "**Cost:** ", "Version:\n", "_No response_")


def parts(text, headings=HEADINGS):
    return [(piece.kind, text[piece.start : piece.end]) for piece in split_markdown(text, "observation", headings)]


def texts(text):
    return [found for _, found in parts(text)]


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eol", LINE_ENDS)
def test_paragraphs_items_and_headings_are_one_piece_each(eol):
    text = eol.join(
        ["First", "goes on.", "", "Second.", "# Host 5 ##", "- one", "  more", "* two", "3. three", "", " four"]
    )
    assert texts(text) == [f"First{eol}goes on.", "Second.", "Host 5", f"one{eol}  more", "two", "three", "four"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_only_lf_and_cr_end_a_line(separator):
    text = f"one{separator}# two{separator}{separator}- three"
    assert texts(text) == [text]


def test_ranges_count_code_points_from_the_start_of_the_field():
    text = "\U0001f469\u200d\U0001f4bb e\u0301\r\n\r\n\u202ehost\u202c 5"
    pieces = split_markdown(text, "observation", HEADINGS)
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 6), (10, 18)]
    assert text[10:18] == "\u202ehost\u202c 5"


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", "\u2028", "\u00a0"])
def test_ends_are_trimmed_and_blank_stretches_are_nothing(blank):
    assert texts(f"{blank}\n{blank}a{blank}b{blank}\n\n{blank}\n") == [f"a{blank}b"]


@pytest.mark.parametrize("mark", INVISIBLES)
def test_an_invisible_stretch_is_nothing_and_an_invisible_mark_is_kept(mark):
    assert texts(f"{mark}\n\n{mark}a{mark}") == [f"{mark}a{mark}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("> quoted\n> more\n\n> > deep\n> - item", ["quoted\n> more", "deep", "item"]),
        ("text\n> quoted\nafter", ["text", "quoted", "after"]),
        ("- [ ] open\n- [x] done\n-\n- - nested", ["open", "done", "nested"]),
        ("in the year\n2010. it was", ["in the year\n2010. it was"]),
        ("list:\n1. one", ["list:", "one"]),
        ("-5 degrees\n*emphasis* here", ["-5 degrees\n*emphasis* here"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("a\n\n---\n***\n_ _ _\nb", ["a", "b"]),
        ("Heading\n===\ntext\n---\nmore", ["Heading", "text", "more"]),
        ("two\nlines\n---\nmore", ["two\nlines", "more"]),
        ("#17 is down\n#nothing\n####### seven", ["#17 is down\n#nothing\n####### seven"]),
        ("# \n##\ntext", ["text"]),
        ("## C#\n## A ## \n", ["C#", "A"]),
        ("#\thost 5\\#", ["host 5\\#"]),
    ],
)
def test_marks_are_no_part_of_a_piece(text, expected):
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```sql\n# no heading\n\n- no item\n```\nb", ["a", "# no heading\n\n- no item", "b"]),
        ("~~~\n```\n<!-- shown -->\n~~~~ \nb", ["```\n<!-- shown -->", "b"]),
        ("```\nnever closed\n\n## x", ["never closed\n\n## x"]),
        ("````\n```\n````\nb", ["```", "b"]),
        ("- item\n  ```\n  code\n  ```\n- next", ["item", "code", "next"]),
        ("- ```\n  code\n  ```", ["code"]),
        ("> ```\n> code\nafter", ["> code", "after"]),
        ("> ```\n> code\n> ```\n> after", ["> code", "after"]),
        ("```inline``` text", ["```inline``` text"]),
        ("```\n```\nb", ["b"]),
        ("```\r\ncode\r\n```\r\nb", ["code", "b"]),
        ("```", []),
    ],
)
def test_fenced_code_is_one_piece_and_nothing_in_it_is_a_mark(text, expected):
    assert texts(text) == expected


# --- comments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!-- sample host 9 -->\nreal", [("markup", "<!-- sample host 9 -->"), ("observation", "real")]),
        ("a <!-- b\n\n# c\n-->d", [("observation", "a"), ("markup", "<!-- b\n\n# c\n-->"), ("observation", "d")]),
        (
            "a <!-- b <!-- c --> d -->",
            [("observation", "a"), ("markup", "<!-- b <!-- c -->"), ("observation", "d -->")],
        ),
        ("<!-->a", [("markup", "<!-->"), ("observation", "a")]),
        ("<!--->a", [("markup", "<!--->"), ("observation", "a")]),
        ("<!---->a", [("markup", "<!---->"), ("observation", "a")]),
        ("<!--a--><!--b-->", [("markup", "<!--a-->"), ("markup", "<!--b-->")]),
        ("   <!-- open\n\nb", [("markup", "<!-- open\n\nb")]),
        ("    <!-- open\n\nb", [("observation", "<!-- open"), ("observation", "b")]),
        ("    <!-- gone -->\n\nb", [("markup", "<!-- gone -->"), ("observation", "b")]),
        ("`a` <!-- gone --> `b`", [("observation", "`a`"), ("markup", "<!-- gone -->"), ("observation", "`b`")]),
        (
            "a <!-- ` --> `<!-- shown -->`",
            [("observation", "a"), ("markup", "<!-- ` -->"), ("observation", "`<!-- shown -->`")],
        ),
        ("a\n  <!-- open\n\n## b\n", [("observation", "a"), ("markup", "<!-- open\n\n## b")]),
        ("a <!-- open\n\nb", [("observation", "a <!-- open"), ("observation", "b")]),
        ("<!--a--> <!-- open\n\nb", [("markup", "<!--a-->"), ("observation", "<!-- open"), ("observation", "b")]),
        ("`<!--` and <!-- gone -->", [("observation", "`<!--` and"), ("markup", "<!-- gone -->")]),
        ("`` ` <!-- shown -->", [("observation", "`` `"), ("markup", "<!-- shown -->")]),
        ("`` ` <!-- shown --> ``", [("observation", "`` ` <!-- shown --> ``")]),
        ("` a\n<!-- gone --> `", [("observation", "` a"), ("markup", "<!-- gone -->"), ("observation", "`")]),
        ("<!-- ` --> `<!-- shown -->`", [("markup", "<!-- ` -->"), ("observation", "`<!-- shown -->`")]),
        ("`<!-- <!-- shown -->`", [("observation", "`<!-- <!-- shown -->`")]),
        ("<!-- x --># a", [("markup", "<!-- x -->"), ("observation", "# a")]),
        ("<!-- x -->- a", [("markup", "<!-- x -->"), ("observation", "- a")]),
        ("\\<!-- shown -->", [("observation", "\\<!-- shown -->")]),
        ("[//]: # (host 9)\na", [("markup", "[//]: # (host 9)"), ("observation", "a")]),
        ("a [//]: # (host 9)", [("observation", "a [//]: # (host 9)")]),
        ("\r<!-- a", [("markup", "<!-- a")]),
        ("- x\n<!-- ``` -->\n- y", [("observation", "x"), ("markup", "<!-- ``` -->"), ("observation", "y")]),
    ],
)
def test_comments_are_markup_exactly_as_far_as_the_page_hides_them(text, expected):
    assert parts(text) == expected


@pytest.mark.parametrize("eol", LINE_ENDS)
def test_blocks_start_behind_any_line_end(eol):
    text = eol.join(["a", "```", "<!-- shown -->", "```", "[//]: # (x)", "  <!-- open", "b"])
    assert parts(text) == [
        ("observation", "a"),
        ("observation", "<!-- shown -->"),
        ("markup", "[//]: # (x)"),
        ("markup", f"<!-- open{eol}b"),
    ]


def test_a_comment_beside_a_heading_leaves_the_heading():
    assert parts("## Expected behaviour <!-- required -->\nfive") == [
        ("markup", "<!-- required -->"),
        ("expectation", "five"),
    ]


@given(st.lists(st.sampled_from(["<!-- x -->", "a", " ", "\n", "`", "``", "<!--", "-->", "\\", "```\n"]), max_size=25))
def test_no_character_of_a_closed_block_comment_is_readable(bits):
    text = "<!-- SECRET\n" + "".join(bits).replace("-->", "") + "-->\n\nafter"
    assert parts(text)[0] == ("markup", text[: -len("\n\nafter")])
    assert all("SECRET" not in found for kind, found in parts(text) if kind != "markup")


# --- kinds ----------------------------------------------------------------------------------------------------------


def test_headings_switch_the_kind_down_to_the_next_of_their_level():
    text = "a\n## Expected behaviour\nb\n### Host 5\nc\n### Version\nd\n### Other words\ne\n## Unknown\nf"
    assert parts(text) == [
        ("observation", "a"),
        ("expectation", "b"),
        ("expectation", "Host 5"),
        ("expectation", "c"),
        ("environment", "d"),
        ("expectation", "Other words"),
        ("expectation", "e"),
        ("observation", "Unknown"),
        ("observation", "f"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "**Expected:** a\n\nb\n\n**Version:**\nc",
            [("expectation", "**Expected:** a"), ("expectation", "b"), ("environment", "c")],
        ),
        ("**Expected**:\n\na", [("expectation", "a")]),
        ("__Expected__: a", [("expectation", "__Expected__: a")]),
        ("**Expected behaviour**\n\na", [("expectation", "a")]),
        ("**What happened?** a", [("observation", "**What happened?** a")]),
        (
            "**Expected:** a\n\n**Cost:** b\n\nc",
            [("expectation", "**Expected:** a"), ("observation", "**Cost:** b"), ("observation", "c")],
        ),
        (
            "**Expected:** a\n\n**Cost**\n\nc",
            [("expectation", "**Expected:** a"), ("observation", "**Cost**"), ("observation", "c")],
        ),
        ("**Expected:** a\n**bold line**\nc", [("expectation", "**Expected:** a\n**bold line**\nc")]),
        ("**Expected** to work", [("observation", "**Expected** to work")]),
        ("## Steps\n- **First:** a\n- b", [("reproduction", "**First:** a"), ("reproduction", "b")]),
        ("**Steps:**\n- **First:** a\n- b", [("reproduction", "**First:** a"), ("reproduction", "b")]),
        ("**Expected:** a\n\n**Really?** b", [("expectation", "**Expected:** a"), ("expectation", "**Really?** b")]),
        ("- **Expected:** a\n- b", [("expectation", "**Expected:** a"), ("observation", "b")]),
    ],
)
def test_bold_labels(text, expected):
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Current: a\nExpected: b\nc\n\nd",
            [("observation", "Current: a"), ("expectation", "Expected: b\nc"), ("observation", "d")],
        ),
        (
            "Expected:\n\na\n\nb\n\nVersion: 3\n\nc",
            [("expectation", "a"), ("expectation", "b"), ("environment", "Version: 3"), ("expectation", "c")],
        ),
        ("- Expected: a\n- b", [("expectation", "Expected: a"), ("observation", "b")]),
        ("Actually: a", [("observation", "Actually: a")]),
        ("expected to be: a", [("observation", "expected to be: a")]),
        ("\u9884\u671f\uff1aa", [("expectation", "\u9884\u671f\uff1aa")]),
        ("Expected: a\uff1ab", [("expectation", "Expected: a\uff1ab")]),
        ("## Expected: five", [("expectation", "Expected: five")]),
    ],
)
def test_plain_labels_are_words_of_the_table_only(text, expected):
    assert parts(text) == expected


def test_an_empty_section_or_an_empty_answer_of_a_form_states_nothing():
    assert parts("### Expected behaviour\n\n_No response_\n\n### Steps\n") == [("markup", "_No response_")]
    assert parts("## Expected behaviour\n\n## Version\n3") == [("environment", "3")]


def test_a_rule_below_several_lines_is_no_heading():
    assert parts("## Expected\ntwo\nlines\n---\nmore") == [("expectation", "two\nlines"), ("expectation", "more")]
    assert parts("## Expected\n> one\n---\nmore") == [("expectation", "one"), ("expectation", "more")]
    assert parts("## Expected\n- one\n---\nmore") == [("expectation", "one"), ("expectation", "more")]
    assert parts("## Expected\none\n---\nmore") == [("observation", "one"), ("observation", "more")]


def test_hashes_without_a_blank_are_a_heading_only_for_words_of_the_table():
    assert parts("#####EXPECTED BEHAVIOUR\na\n##whatever") == [("expectation", "a\n##whatever")]
    assert parts("#Expected\na") == [("observation", "#Expected\na")]


def test_plain_text_knows_paragraphs_and_labels_and_nothing_else():
    text = "# a\n- b\n<!-- c -->\n\n```\n\nExpected: d\n\n**Version:** e"
    found = [(piece.kind, text[piece.start : piece.end]) for piece in split_text(text, "observation", HEADINGS)]
    assert found == [
        ("observation", "# a\n- b\n<!-- c -->"),
        ("observation", "```"),
        ("expectation", "Expected: d"),
        ("environment", "**Version:** e"),
    ]


# --- a whole report -------------------------------------------------------------------------------------------------

REPORT = Report(
    title=" Host 5 \u202edown\u202c ",
    body="Fails.\n\nExpected: answers.",
    comments=("## Expected behaviour\nA remark. <!-- x -->", " "),
    expectations=(
        Expectation(text="Must answer.\n\nWithin 1 s.", provenance="external_research", reference="RFC 1"),
        Expectation(text="And log.<!-- y -->"),
    ),
)


@pytest.mark.spec("A-146b")
def test_sources_come_in_field_order_with_kind_and_provenance():
    fields = derive_fields(REPORT)
    found = [
        (source.id, source.kind, source.field, fields.text(source.field)[source.start : source.end])
        for source in derive_sources(REPORT, freeze_build([]))
    ]
    assert found == [
        ("S0001", "title", "title", "Host 5 \u202edown\u202c"),
        ("S0002", "observation", "body", "Fails."),
        ("S0003", "expectation", "body", "Expected: answers."),
        ("S0004", "comment", "comments[0]", "Expected behaviour"),
        ("S0005", "comment", "comments[0]", "A remark."),
        ("S0006", "markup", "comments[0]", "<!-- x -->"),
        ("S0007", "expectation", "expectations[0]", "Must answer."),
        ("S0008", "expectation", "expectations[0]", "Within 1 s."),
        ("S0009", "expectation", "expectations[1]", "And log."),
        ("S0010", "markup", "expectations[1]", "<!-- y -->"),
    ]
    origins = [(source.provenance, source.reference) for source in derive_sources(REPORT, freeze_build([]))]
    assert origins[2] == origins[8] == ("tester_declaration", None)
    assert origins[6] == origins[7] == ("external_research", "RFC 1")
    assert {origins[index] for index in (0, 1, 3, 4, 5, 9)} == {(None, None)}


def reports():
    texts = ugly_texts(LABELS)
    return st.builds(
        Report,
        title=st.none() | ugly_lines(),
        body=texts,
        comments=st.lists(texts, max_size=2).map(tuple),
        expectations=st.lists(st.builds(Expectation, text=texts), max_size=2).map(tuple),
        body_format=st.sampled_from(["markdown", "text"]),
    )


@given(reports())
@settings(max_examples=300)
def test_every_range_is_exact_ordered_trimmed_and_visible(report):
    fields = derive_fields(report)
    ends = {}
    sources = derive_sources(report, freeze_build([]))
    assert [source.id for source in sources] == [f"S{number:04d}" for number in range(1, len(sources) + 1)]
    for source in sources:
        text = fields.text(source.field)
        assert ends.get(source.field, 0) <= source.start < source.end <= len(text)
        ends[source.field] = source.end
        piece = text[source.start : source.end]
        assert piece == piece.strip()
        assert is_visible(piece, 0, len(piece))
        assert (source.provenance is not None) == (source.kind == "expectation")


@given(ugly_texts(LABELS))
def test_plain_text_loses_nothing_that_can_be_seen(text):
    gaps = outside(text, split_text(text, "observation", {}))
    assert not is_visible(gaps, 0, len(gaps))


@given(ugly_texts(LABELS))
def test_markdown_loses_nothing_but_marks(text):
    text = text.replace("```", "").replace("~~~", "")  # the word behind a fence names its language
    gaps = outside(text, split_markdown(text, "observation", {}))
    assert [mark for mark in gaps if is_visible(mark, 0, 1) and mark not in "#>-*+_=.)[]xX0123456789"] == []


def outside(text, pieces):
    gaps = list(text)
    for piece in pieces:
        gaps[piece.start : piece.end] = " " * (piece.end - piece.start)
    return "".join(gaps)


@given(ugly_texts(LABELS), ugly_texts(LABELS))
def test_what_follows_a_report_never_changes_what_stands_before(first, second):
    """Aliases are stable: a text that goes on after a blank line keeps the sources it had, unless a block was open."""
    if "<!--" in first or "```" in first or "~~~" in first:
        return
    before = split_markdown(first + "\n\n", "observation", HEADINGS)
    after = split_markdown(first + "\n\n" + second, "observation", HEADINGS)
    assert after[: len(before)] == before


def test_a_field_of_very_many_pieces_gets_coarser_ones_and_loses_nothing():
    """A million one-letter lines are a hundred thousand sources at most; every letter stands in one of them."""
    body = "\n\n".join("a" for _ in range(250_000)) + "\n\n## Expected behavior\n\nb"
    report = Report(body=body)
    sources = derive_sources(report, freeze_build(()))
    assert len(sources) <= MOST_PIECES + 2
    covered = sum(body[source.start : source.end].count("a") for source in sources)
    assert covered == 250_000
    assert [body[source.start : source.end] for source in sources if source.kind == "expectation"] == ["b"]
    assert all(one.end <= other.start for one, other in pairwise(sources))
