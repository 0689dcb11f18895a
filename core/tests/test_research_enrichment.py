"""What the rows of cited ids say."""

import pytest
from casebound.canonical import digest_of
from casebound.contracts.capture import Binding, EnrichmentInput, EntityCapture, QueryLimits, TypedCell
from casebound.contracts.case import Case, CitedEntity, ExpectedBehavior, Fields
from casebound.errors import ContractError
from casebound.research.enrichment import derive_facts, pairs_of

BINDING = Binding(dialect="sqlite", database="w.db", snapshot_id="s-1")
LIMITS = QueryLimits(max_candidates=8, scan_rows=10, max_bytes=100, statement_timeout_s=1)
HOST = EnrichmentInput(
    name="inv.host",
    entity_type="host",
    table="hosts",
    column="id",
    columns=("id", "name", "text", "cost", "none"),
    name_column="name",
    description_columns=("name", "text"),
)
OWNER = EnrichmentInput(name="inv.owner", entity_type="host", table="owners", column="host", columns=("host", "who"))


def case_of(*cited):
    entities = tuple(
        CitedEntity(id=f"E{number:04d}", type=kind, canonical_id=entity_id, mentions=())
        for number, (kind, entity_id) in enumerate(cited, start=1)
    )
    return Case(
        case_id="c-1",
        source_digest="sha256:" + "0" * 64,
        build_digest="sha256:" + "0" * 64,
        fields=Fields(title="Gateway is down near node 9", body="", comments=(), expectations=()),
        sources=(),
        entities=entities,
        expected_behavior=ExpectedBehavior(completeness="not_established", provenance=()),
        unknowns=(),
    )


def capture_of(rule, entity_id, *rows):
    return EntityCapture(
        rule=rule,
        entity_id=entity_id,
        statement="SELECT",
        parameters=(),
        binding=BINDING,
        limits=LIMITS,
        columns=rule.columns,
        rows=rows,
        truncated=False,
        scope="",
    )


def derive(case, rules, *captures):
    by_key = {(capture.rule.name, capture.entity_id): capture for capture in captures}
    return derive_facts(case, BINDING, rules, by_key, LIMITS)


def resolve(artifact, pointer):
    value = artifact.to_json()
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


COST = TypedCell(t="dec", v="1.50")


@pytest.mark.spec("A-153a", "A-153b")
def test_a_name_is_a_typed_fact_with_pointers_for_id_and_name():
    capture = capture_of(HOST, "7", ("7", "Gateway", None, None, None))
    facts = derive(case_of(("host", "7")), [HOST], capture)
    [name] = [fact for fact in facts.facts if fact.kind == "project_entity_name"]
    assert (name.entity, name.type, name.entity_id, name.value) == ("E0001", "host", "7", "Gateway")
    assert name.capture == digest_of(capture.to_bytes()) == facts.captures[0]
    assert name.id_pointer != name.pointer
    assert (resolve(capture, name.id_pointer), resolve(capture, name.pointer)) == ("7", "Gateway")


def test_aliases_come_in_the_order_entity_rule_row_column():
    captures = [
        capture_of(HOST, "7", ("7", "A", "first", COST, None), ("7", "B", None, None, "x")),
        capture_of(OWNER, "7", ("7", "ops")),
        capture_of(HOST, "5", ("5", "C", "second", None, None)),
        capture_of(OWNER, "5"),
    ]
    case = case_of(("host", "7"), ("rack", "1"), ("host", "5"))
    facts = derive(case, [HOST, OWNER], *captures)
    assert [(source.id, source.entity, source.column, source.text) for source in facts.sources] == [
        ("P0001", "E0001", "name", "A"),
        ("P0002", "E0001", "text", "first"),
        ("P0003", "E0001", "name", "B"),
        ("P0004", "E0003", "name", "C"),
        ("P0005", "E0003", "text", "second"),
    ]
    assert [(fact.id, fact.rule, fact.column, fact.value, fact.pointer) for fact in facts.facts] == [
        ("F0001", "inv.host", "id", "7", "/rows/0/0"),
        ("F0002", "inv.host", "name", "A", "/rows/0/1"),
        ("F0003", "inv.host", "cost", "1.50", "/rows/0/3"),
        ("F0004", "inv.host", "id", "7", "/rows/1/0"),
        ("F0005", "inv.host", "name", "B", "/rows/1/1"),
        ("F0006", "inv.host", "none", "x", "/rows/1/4"),
        ("F0007", "inv.owner", "host", "7", "/rows/0/0"),
        ("F0008", "inv.owner", "who", "ops", "/rows/0/1"),
        ("F0009", "inv.host", "id", "5", "/rows/0/0"),
        ("F0010", "inv.host", "name", "C", "/rows/0/1"),
    ]
    assert facts.case_digest == digest_of(case.to_bytes())
    assert len(facts.captures) == 4
    assert pairs_of(case, [HOST, OWNER]) == [(HOST, "7"), (OWNER, "7"), (HOST, "5"), (OWNER, "5")]


@pytest.mark.spec("A-153d")
@pytest.mark.parametrize("name", [None, "", " \t\n"])
def test_an_empty_name_binds_nothing_and_describes_nothing(name):
    facts = derive(case_of(("host", "7")), [HOST], capture_of(HOST, "7", ("7", name, name, None, None)))
    assert [(fact.kind, fact.column) for fact in facts.facts] == [("project_field", "id")]
    assert facts.sources == ()


@pytest.mark.spec("A-153d")
def test_no_row_no_rule_and_nearby_prose_bind_nothing():
    empty = derive(case_of(("host", "7")), [HOST], capture_of(HOST, "7"))
    unconfigured = derive(case_of(("rack", "7")), [HOST])
    uncited = derive(case_of(), [HOST])
    assert [(facts.facts, facts.sources) for facts in (empty, unconfigured, uncited)] == [((), ())] * 3
    assert (len(empty.captures), unconfigured.captures, uncited.captures) == (1, (), ())


def test_a_description_that_is_no_text_stays_a_field():
    facts = derive(case_of(("host", "7")), [HOST], capture_of(HOST, "7", ("7", "A", COST, None, None)))
    assert [fact.column for fact in facts.facts] == ["id", "name", "text"]
    assert [source.column for source in facts.sources] == ["name"]


def test_a_missing_capture_is_a_bug_not_an_empty_answer():
    with pytest.raises(ContractError):
        derive(case_of(("host", "7")), [HOST])


def test_rows_are_asked_for_a_bounded_number_of_cited_ids():
    """A pasted log may cite a hundred thousand ids; each is kept as cited, and the database is not asked for all."""
    from casebound.contracts.capture import EnrichmentInput
    from casebound.contracts.case import Case, CitedEntity, ExpectedBehavior, Fields
    from casebound.research.enrichment import MOST_ENTITIES, pairs_of

    entities = tuple(CitedEntity(id=f"E{n:04d}", type="host", canonical_id=str(n), mentions=()) for n in range(1, 1001))
    case = Case(
        case_id="c",
        source_digest="sha256:" + "0" * 64,
        build_digest="sha256:" + "0" * 64,
        fields=Fields(title=None, body="", comments=(), expectations=()),
        sources=(),
        entities=entities,
        expected_behavior=ExpectedBehavior(completeness="not_established", provenance=()),
        unknowns=(),
    )
    rule = EnrichmentInput(name="r", entity_type="host", table="hosts", column="id", columns=("id",))
    assert [number for _, number in pairs_of(case, [rule])] == [str(n) for n in range(1, MOST_ENTITIES + 1)]
