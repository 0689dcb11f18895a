from itertools import pairwise

import pytest
from casebound.contracts.case import Report
from casebound.intake.build import freeze_build
from casebound.intake.sources import derive_fields, derive_sources
from casebound.intake.typed_ids import canonical_id, derive_entities
from casebound.specs import ReferencePattern
from casebound.testing.text import ugly_texts
from hypothesis import given

LINK = ReferencePattern("inv.link", "host", r"https?://inventory\.example/host/(?P<id>\d+)")
HOST = ReferencePattern("inv.host", "host", r"\bhost[ =#]+(?P<id>\d+)")
TICKET = ReferencePattern("ops.ticket", "ticket", r"\bOPS-(?P<id>\d+)\b", ignore_case=False)
NAMED = ReferencePattern("inv.named", "service", r"\bsvc:(?P<id>\S+)")
PATTERNS = (TICKET, LINK, NAMED, HOST)


def cite(body, patterns=PATTERNS, **fields):
    report = Report(body=body, **fields)
    build = freeze_build(patterns)
    decoded = derive_fields(report)
    entities = derive_entities(decoded, derive_sources(report, build), build)
    return [
        (
            entity.id,
            entity.type,
            entity.canonical_id,
            [
                (mention.source, mention.field, decoded.text(mention.field)[mention.start : mention.end])
                for mention in entity.mentions
            ],
        )
        for entity in entities
    ]


def ids(body, patterns=PATTERNS):
    return [(entity_type, identity) for _, entity_type, identity, _ in cite(body, patterns)]


def test_entities_are_numbered_by_first_mention_and_mentions_cover_the_whole_reference():
    found = cite(
        "Ticket OPS-4: HOST 17 is down.\n\n- see [it](https://inventory.example/host/17) and host=5",
        title="host #5",
        comments=("OPS-4 again",),
    )
    assert found == [
        ("E0001", "host", "5", [("S0001", "title", "host #5"), ("S0003", "body", "host=5")]),
        ("E0002", "ticket", "4", [("S0002", "body", "OPS-4"), ("S0004", "comments[0]", "OPS-4")]),
        (
            "E0003",
            "host",
            "17",
            [("S0002", "body", "HOST 17"), ("S0003", "body", "https://inventory.example/host/17")],
        ),
    ]


def test_ranges_count_from_the_start_of_the_field():
    report = Report(body="\U0001f600 cafe\u0301\r\n\r\n## \u202ehost 5\u202c")
    build = freeze_build(PATTERNS)
    fields = derive_fields(report)
    (entity,) = derive_entities(fields, derive_sources(report, build), build)
    assert (entity.mentions[0].start, entity.mentions[0].end) == (15, 21)
    assert fields.body[15:21] == "host 5"


def test_nothing_is_taken_from_markup():
    assert ids("<!-- host 9 --> host 5\n\n[//]: # (host 8)\n\n<!-- host 7") == [("host", "5")]


def test_references_in_code_tables_links_and_headings_are_found():
    assert ids("```\nhost 1\n```\n| host 2 |\n## host 3\n<https://inventory.example/host/4>\n`host 5`") == [
        ("host", str(number)) for number in range(1, 6)
    ]


def test_a_reference_never_reaches_from_one_source_into_another():
    assert ids("host\n\n5") == []
    assert ids("host <!-- x --> 5") == []


def test_a_pattern_sees_only_its_source():
    edges = ReferencePattern("a.edges", "host", r"\A(?P<id>\d+)\Z|(?<=host )(?P<other>\d)")
    assert ids("one\n\n5\n\nhost <!-- x -->7", [edges]) == [("host", "5"), ("host", "7")]


def test_where_references_overlap_the_first_then_the_longest_then_the_name_decides():
    short = ReferencePattern("a.short", "short", r"host (?P<id>\d)")
    long = ReferencePattern("z.long", "long", r"host (?P<id>\d+)")
    early = ReferencePattern("z.early", "early", r"the host (?P<id>\d)")
    same = ReferencePattern("b.same", "same", r"host (?P<id>\d+)")
    assert ids("host 17", [short, long]) == [("long", "17")]
    assert ids("the host 17", [short, long, early]) == [("early", "1")]
    assert ids("host 17", [long, same]) == ids("host 17", [same, long]) == [("same", "17")]


def test_the_order_of_the_plugins_does_not_matter():
    body = "OPS-1 host 2 svc:web https://inventory.example/host/3"
    assert cite(body, PATTERNS) == cite(body, tuple(reversed(PATTERNS)))


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("7", "7"),
        ("007", "7"),
        ("000", "0"),
        ("0" * 50 + "1" * 20, "1" * 20),
        ("1" * 20, "1" * 20),
        ("1" * 21, None),
        ("\u0667", None),
        ("\uff17", None),
        ("1\u0667", None),
        ("", None),
        ("web-01", "web-01"),
        ("WEB-01", "WEB-01"),
        ("a\u200bb", None),
        ("a b", None),
        ("x" * 101, None),
        ("stra\u00dfe", "stra\u00dfe"),
    ],
)
def test_ids_are_strings_without_leading_zeros(written, canonical):
    assert canonical_id(written) == canonical


def test_equal_ids_are_one_entity_and_like_ones_are_not():
    assert ids("host 007 and host 7 and OPS-7") == [("host", "7"), ("ticket", "7")]
    assert ids("svc:web svc:Web svc:w\u0435b svc:cafe\u0301 svc:caf\u00e9") == [
        ("service", name) for name in ("web", "Web", "w\u0435b", "cafe\u0301", "caf\u00e9")
    ]


def test_a_group_that_did_not_take_part_and_an_empty_match_cite_nothing():
    optional = ReferencePattern("a.optional", "host", r"node(?: (?P<id>\d+))?|(?=x)")
    assert ids("node x node 5", [optional]) == [("host", "5")]
    assert ids("node 5", [ReferencePattern("a.ahead", "host", r"(?=node (?P<id>\d+))")]) == []


def test_the_case_of_letters_counts_where_the_pattern_says_so():
    assert ids("ops-1") == []


@given(ugly_texts(("host 5", "host=007", "OPS-1", "https://inventory.example/host/3", "svc:")))
def test_every_mention_lies_within_its_readable_source_and_none_overlap(body):
    report = Report(title="host 5", body=body, comments=(body,))
    build = freeze_build(PATTERNS)
    fields = derive_fields(report)
    sources = {source.id: source for source in derive_sources(report, build)}
    entities = derive_entities(fields, list(sources.values()), build)
    assert [entity.id for entity in entities] == [f"E{number:04d}" for number in range(1, len(entities) + 1)]
    assert len({(entity.type, entity.canonical_id) for entity in entities}) == len(entities)
    places = []
    for entity in entities:
        for mention in entity.mentions:
            source = sources[mention.source]
            assert source.kind != "markup"
            assert mention.field == source.field
            assert source.start <= mention.start < mention.end <= source.end
            assert entity.canonical_id in fields.text(mention.field)[mention.start : mention.end]
            places.append((mention.source, mention.start, mention.end))
    places.sort()
    assert all(first[0] != second[0] or first[2] <= second[1] for first, second in pairwise(places))
