import json
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.canonical import digest_of
from casebound.contracts.case import Build, Case, Expectation, Report, Unknown
from casebound.errors import SettingsError
from casebound.intake.admission import admit
from casebound.intake.build import HEADING_KINDS, derive_case, freeze_build
from casebound.intake.builtin import READERS
from casebound.intake.headings import derive_builtin_headings
from casebound.specs import ReferencePattern
from casebound.testing.text import MARKS, UGLY_WORDS, ugly_texts
from hypothesis import given, settings
from hypothesis import strategies as st

PATTERNS = (
    ReferencePattern("ops.ticket", "ticket", r"\bOPS-(?P<id>\d+)\b"),
    ReferencePattern("inv.host", "host", r"\bhost[ =#]+(?P<id>\d+)"),
)


def build_case(data, name="r.md", build=None):
    admission, report = admit(data, name=name, readers=READERS, max_bytes=10**8)
    return derive_case(admission, report, build or freeze_build(PATTERNS))


def expected(body, expectations=()):
    report = Report(body=body, expectations=expectations)
    admission, _ = admit(b"x", name="r.md", readers=READERS, max_bytes=10)
    case = derive_case(admission, report, freeze_build([]))
    return case.expected_behavior.completeness, case.expected_behavior.provenance, case.unknowns


# --- case.json ------------------------------------------------------------------------------------------------------


def test_a_case_binds_report_and_build():
    data = b"\xef\xbb\xbf---\r\nid: ops-1\r\n---\r\n# Host down\r\n\r\nhost 5\r\n\r\nExpected: up"
    build = freeze_build(PATTERNS)
    case = build_case(data, build=build)
    assert case.case_id == "ops-1"
    assert case.source_digest == digest_of(data)
    assert case.build_digest == digest_of(build.to_bytes())
    assert case.fields.body == "\r\nhost 5\r\n\r\nExpected: up"
    assert [case.text_of(source) for source in case.sources] == ["Host down", "host 5", "Expected: up"]
    assert Case.from_json(json.loads(case.to_bytes())) == case


def test_formal_expectation_is_open_where_nothing_states_it():
    assert expected("It fails.") == (
        "not_established",
        (),
        (Unknown(id="Q0001", text="formally expected behaviour is not established"),),
    )
    assert expected("<!-- Expected: x -->\n\n## Expected behaviour\n_No response_")[0] == "not_established"


def test_formal_expectation_is_declared_by_the_reporter_or_by_research_or_both():
    research = Expectation(text="RFC", provenance="external_research", reference="RFC 1")
    assert expected("Expected: up") == ("declared", ("tester_declaration",), ())
    assert expected("It fails.", (research,)) == ("declared", ("external_research",), ())
    assert expected("Expected: up", (research,))[1] == ("tester_declaration", "external_research")
    assert expected("x", (research, Expectation(text="up")))[1] == ("external_research", "tester_declaration")
    assert expected("x", (Expectation(text=" \u200b "),))[0] == "not_established"


def test_a_remark_never_becomes_a_formal_expectation():
    data = json.dumps({"body": "It fails.", "comments": ["## Expected behaviour\n\nup", "Expected: up"]}).encode()
    case = build_case(data, "r.json")
    assert case.expected_behavior.completeness == "not_established"
    assert {source.kind for source in case.sources} == {"observation", "comment"}


# --- build.json -----------------------------------------------------------------------------------------------------


def test_a_build_holds_patterns_and_the_whole_table_sorted():
    build = freeze_build(PATTERNS)
    assert [pattern.name for pattern in build.patterns] == ["inv.host", "ops.ticket"]
    assert build.headings == derive_builtin_headings()
    assert list(build.headings) == sorted(build.headings)
    assert freeze_build(tuple(reversed(PATTERNS))).to_bytes() == build.to_bytes()
    assert Build.from_json(json.loads(build.to_bytes())) == build


def test_later_tables_override_earlier_ones_and_the_built_in_one():
    plugin = {"Expected Behaviour:": "reference", "How it should be": "expectation"}
    build = freeze_build([], plugin, {"HOW IT SHOULD BE?": "text"})
    assert build.headings["expected behaviour"] == "reference"
    assert build.headings["how it should be"] == "text"
    assert build.headings["steps"] == "reproduction"


def test_an_operators_heading_takes_part_in_the_case():
    case = build_case(b"## What I saw\nDark.", build=freeze_build([], {"What I saw": "reproduction"}))
    assert [(source.kind, case.text_of(source)) for source in case.sources] == [("reproduction", "Dark.")]


@pytest.mark.parametrize(
    ("table", "pointer"),
    [
        ({"Actual": "observed"}, 'intake.headings."Actual"'),
        ({"Actual": "title"}, 'intake.headings."Actual"'),
        ({"...": "observation"}, 'intake.headings."..."'),
        ({"x" * 121: "observation"}, f'intake.headings."{"x" * 121}"'),
        ({"Seen": "observation", "SEEN:": "text"}, 'intake.headings."SEEN:"'),
    ],
)
def test_a_heading_that_cannot_hold_is_refused_with_its_key(table, pointer):
    with pytest.raises(SettingsError) as caught:
        freeze_build([], table)
    assert caught.value.code == "SETTINGS_VALUE"
    assert caught.value.pointer == pointer


def test_the_kinds_that_a_heading_may_have_are_listed():
    with pytest.raises(SettingsError) as caught:
        freeze_build([], {"Actual": "observed"})
    assert caught.value.allowed == HEADING_KINDS
    assert "markup" in HEADING_KINDS
    assert "title" not in HEADING_KINDS


# --- the same bytes everywhere --------------------------------------------------------------------------------------

LABELS = ("Expected: ", "**Actual:** ", "## Steps\n", "host 5", "OPS-007", "_No response_")
TEXTS = ugly_texts(LABELS)


@given(TEXTS, st.sampled_from(["r.md", "r.txt"]))
@settings(max_examples=200)
def test_the_same_bytes_give_the_same_case_and_every_claim_is_readable_there(text, name):
    data = ("T\n\nx " + text).encode()
    case = build_case(data, name)
    assert build_case(data, name).to_bytes() == case.to_bytes()
    again = Case.from_json(json.loads(case.to_bytes()))
    assert [again.text_of(source) for source in again.sources] == [case.text_of(source) for source in case.sources]
    assert again.fields.body in data.decode()


@given(TEXTS)
def test_a_report_with_other_line_ends_has_the_same_pieces(text):
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    pieces = {}
    for eol in ("\n", "\r\n", "\r"):
        case = build_case(("x " + unix.replace("\n", eol)).encode())
        pieces[eol] = [(source.kind, case.text_of(source).replace(eol, "\n")) for source in case.sources]
    assert pieces["\n"] == pieces["\r\n"] == pieces["\r"]


_SCRIPT = """
import sys
from casebound.intake.admission import admit
from casebound.intake.build import derive_case, freeze_build
from casebound.intake.builtin import READERS
from casebound.specs import ReferencePattern
patterns = [
    ReferencePattern("ops.ticket", "ticket", r"\\bOPS-(?P<id>\\d+)\\b"),
    ReferencePattern("inv.host", "host", r"\\bhost (?P<id>\\w+)"),
]
build = freeze_build(patterns, {"Gesehen": "observation", "I\\u0130\\u0131": "text"})
out = sys.stdout.buffer
out.write(build.to_bytes())
for name in ("r.md", "r.txt"):
    with open(sys.argv[1], "rb") as file:
        admission, report = admit(file.read(), name=name, readers=READERS, max_bytes=10**7)
    out.write(admission.to_bytes() + derive_case(admission, report, build).to_bytes())
"""


def test_another_process_locale_hash_seed_and_time_zone_give_the_same_bytes(tmp_path):
    lines = [f"{mark}{word} host {word} OPS-{number}" for number, mark in enumerate(MARKS) for word in UGLY_WORDS]
    report = tmp_path / "report"
    report.write_bytes("\r\n\n".join(["## I\u0130\u0131", *lines]).encode())
    outputs = set()
    for seed, locale, zone in [("0", "C", "UTC"), ("1", "tr_TR.UTF-8", "Asia/Kathmandu"), ("4242", "POSIX", "EST5EDT")]:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(report)],
            check=True,
            capture_output=True,
            env={
                "PYTHONHASHSEED": seed,
                "LC_ALL": locale,
                "TZ": zone,
                "PYTHONUTF8": "0",
                "PATH": str(Path(sys.executable).parent),
            },
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop()) > 10_000


# --- hostile sizes --------------------------------------------------------------------------------------------------

MIB = 1 << 20


@pytest.mark.parametrize(
    ("unit", "count", "sources"),
    [
        ("a", 5 * MIB, 1),
        ("x: ", 2 * MIB, 1),
        ("- item\n", 100_000, 100_000),
        ("\n", MIB, 0),
        ("<!-- ", MIB, 1),
        ("<!-- x -->", 50_000, 50_000),
        ("`<!--``", 300_000, 1),
        ("> ", 2 * MIB, 0),
        ("- ", 2 * MIB, 0),
        ("#", 5 * MIB, 1),
        ("**", 2 * MIB, 0),
        ("[", 5 * MIB, 1),
        ("```\nx\n", 20_000, 20_000),
        ("1. ", MIB, 0),
        ("_ ", 2 * MIB, 0),
        ("(", MIB, 1),
        ("--- | ", MIB, 1),
    ],
)
def test_hostile_texts_of_megabytes_are_taken_apart_in_linear_time(unit, count, sources):
    """No assertion on time: a quadratic step in any of these would not end within hours."""
    case = build_case(b"# Title\n" + unit.encode() * count)
    found = [source for source in case.sources if source.field == "body"]
    assert len(found) == sources
    assert case.fields.body == unit * count
