"""Judging a reply: what it says about itself, then strict JSON, then the schema, then the meaning."""

from __future__ import annotations

import pytest
from casebound.canonical import canonical_bytes
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import ModelReply
from casebound.errors import PluginError
from casebound.llm.judge import MOST_FINDINGS, MOST_FINDINGS_BYTES, MOST_SCHEMA_ERRORS, judge
from casebound.specs import Validator

ENTITY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id"],
    "properties": {"id": {"type": "string", "minLength": 1}},
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["index", "status", "entity", "ids"],
    "properties": {
        "index": {"type": "integer"},
        "status": {"type": "string", "enum": ["selected", "no_match"]},
        "entity": {"anyOf": [ENTITY, {"type": "null"}]},
        "ids": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "pattern": "^[SV][0-9]{4}$"},
            "allOf": [{"contains": {"const": "V0001"}}, {"contains": {"enum": ["S0001", "S0002"]}}],
        },
    },
}
GOOD = '{"index":0,"status":"selected","entity":{"id":"1"},"ids":["V0001","S0002"]}'


def verdict(text, schema=SCHEMA, rules=(), **facts):
    return judge(ModelReply(text=text, finish_reason=facts.pop("finish_reason", "stop"), **facts), schema, rules, {})


def findings(text, **facts):
    found = verdict(text, **facts)
    assert found.value is None
    return [(finding.code, finding.path) for finding in found.findings]


def test_a_reply_that_holds_is_returned_as_it_was_said():
    assert verdict(GOOD).value == {"index": 0, "status": "selected", "entity": {"id": "1"}, "ids": ["V0001", "S0002"]}
    assert verdict(f"\n {GOOD}\t\r\n").findings == ()  # blanks around it belong to JSON


@pytest.mark.spec("A-129")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"```json\n{GOOD}\n```", ""),
        (f"Here it is: {GOOD}", ""),
        (f"{GOOD} I hope this helps.", ""),
        (f"{GOOD}{GOOD}", ""),
        (f"{GOOD}]", ""),
        (GOOD[:-1], ""),
        ("\ufeff" + GOOD, ""),
        ("", ""),
        (" \n\t", ""),
        ("{'index':0}", ""),
        ('{"index":0,}', ""),
        ('{"index":0 /* zero */}', ""),
        (GOOD.replace("0,", "NaN,"), "/index"),
        (GOOD.replace("0,", "-Infinity,"), "/index"),
        (GOOD.replace("0,", "1e999,"), "/index"),
        (GOOD.replace("0,", "1" * 5000 + ","), "/index"),
        (GOOD.replace("0,", "00,"), ""),
        (GOOD.replace('"status"', '"index":1,"status"'), "/index"),
        (GOOD.replace('{"id":"1"}', '{"id":"1","id":"2"}'), "/entity/id"),
        (GOOD.replace('"1"', '"\\ud800"'), "/entity/id"),
        (GOOD.replace('"1"', '"\ud800"'), ""),
        (GOOD.replace('"1"', '"a\nb"'), ""),
        ("[" * 100_000 + "]" * 100_000, ""),
        ("{" + '"a":{' * 50_000, ""),
    ],
)
def test_what_is_not_exactly_one_strict_json_value_is_refused(text, path):
    assert findings(text) == [("LLM_OUTPUT_JSON", path)]


@pytest.mark.spec("A-129")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("null", ""),
        ("[]", ""),
        ('"a"', ""),
        ("{}", ""),
        (GOOD.replace("0,", "0.0,"), "/index"),
        (GOOD.replace("0,", "1.5,"), "/index"),
        (GOOD.replace("0,", "false,"), "/index"),
        (GOOD.replace("0,", '"0",'), "/index"),
        (GOOD.replace('"index"', '"Index"'), ""),
        (GOOD.replace('"index"', '"table":"hosts","index"'), ""),
        (GOOD.replace('{"id":"1"}', '{"id":"1","cause":"x"}'), "/entity"),
        (GOOD.replace('{"id":"1"}', '{"id":1}'), "/entity/id"),
        (GOOD.replace('{"id":"1"}', '{"id":""}'), "/entity/id"),
        (GOOD.replace('{"id":"1"}', "{}"), "/entity"),
        (GOOD.replace('"selected"', '"maybe"'), "/status"),
        (GOOD.replace('"V0001","S0002"', '"S0002"'), "/ids"),
        (GOOD.replace('"V0001","S0002"', '"V0001"'), "/ids"),
        (GOOD.replace("S0002", "S0002 "), "/ids/1"),
    ],
)
def test_what_does_not_fit_the_schema_is_told_with_its_place(text, path):
    assert ("LLM_OUTPUT_SCHEMA", path) in findings(text)


def test_a_schema_finding_says_what_is_accepted():
    found = verdict(GOOD.replace('"V0001","S0002"', '"S0009"').replace('"selected"', '"maybe"')).findings
    assert [(finding.path, finding.allowed) for finding in found] == [
        ("/ids", ("V0001",)),
        ("/ids", ("S0001", "S0002")),
        ("/status", ("selected", "no_match")),
    ]


def test_a_schema_finding_names_missing_and_unknown_keys_and_never_the_value():
    (missing, unknown) = sorted(
        verdict('{"status":"no_match","entity":null,"ids":["V0001","S0001"],"a/b":"SECRET"}').findings, key=str
    )
    text = missing.message + unknown.message
    assert "index" in text
    assert "a/b" in text
    assert "SECRET" not in str([missing, unknown])


def test_keys_are_pointed_at_with_escapes():
    schema = {"type": "object", "properties": {"a/b~c": {"type": "string"}}}
    assert [finding.path for finding in verdict('{"a/b~c":1}', schema).findings] == ["/a~1b~0c"]


def test_a_flood_of_schema_errors_is_cut():
    schema = {"type": "array", "items": {"type": "string"}}
    assert len(verdict(str(list(range(500))), schema).findings) == MOST_SCHEMA_ERRORS


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"finish_reason": "length"}, "LLM_INCOMPLETE_OUTPUT"),
        ({"finish_reason": "refusal"}, "LLM_REFUSED"),
        ({"finish_reason": "tool_calls"}, "LLM_OUTPUT_JSON"),
        ({"tools": ("shell",)}, "LLM_OUTPUT_JSON"),
        ({"finish_reason": "length", "tools": ("shell",)}, "LLM_INCOMPLETE_OUTPUT"),
    ],
)
@pytest.mark.spec("A-129")
def test_a_reply_that_says_it_is_unusable_is_refused_even_if_its_text_would_hold(facts, code):
    """Faults 10 and 36: a cut reply is no bad JSON, and there is no tool."""
    assert findings(GOOD, **facts) == [(code, "")]


def test_an_unusual_word_for_the_end_does_not_count():
    assert verdict(GOOD, finish_reason="other").findings == ()


def finding(code):
    return Finding(code=code, path="/x", message="m")


def test_all_rules_speak_in_their_order_and_only_on_replies_that_fit():
    rules = [
        Validator("plan", "B", 1, lambda reply, context: [finding("B"), finding("B")]),
        Validator("plan", "A", 1, lambda reply, context: []),
        Validator("plan", "C", 2, lambda reply, context: [finding("C")] if reply["index"] == 0 else []),
    ]
    assert [code for code, _ in findings(GOOD, rules=rules)] == ["B", "B", "C"]
    assert findings("{}", rules=rules)[0][0] == "LLM_OUTPUT_SCHEMA"
    assert verdict(GOOD, rules=rules[1:2]).findings == ()


def test_a_rule_that_fails_is_no_failure_of_the_model():
    rule = Validator("plan", "ODD", 3, lambda reply, context: [reply["nothing"]])
    with pytest.raises(PluginError, match=r"PLUGIN_BROKEN(.|\n)*ODD/3"):
        verdict(GOOD, rules=[rule])


def test_a_reply_with_a_million_errors_is_not_read_to_its_end():
    seen = []

    class Counted(dict):
        def items(self):
            seen.append(1)
            return super().items()

    schema = {"type": "array", "items": Counted({"type": "string"})}
    found = verdict("[" + ",".join(["1"] * 50_000) + "]", schema).findings
    assert len(found) == MOST_SCHEMA_ERRORS
    assert len(seen) < 5_000


def size_of(found):
    return sum(len(canonical_bytes(finding.to_json())) for finding in found)


def test_of_very_many_findings_the_first_are_kept_and_the_rest_are_counted():
    rule = Validator(
        "plan", "MANY", 1, lambda reply, context: [Finding(code="MANY", path=f"/{n}", message="m") for n in range(9000)]
    )
    found = verdict(GOOD, rules=[rule]).findings
    assert [each.path for each in found] == [f"/{n}" for n in range(MOST_FINDINGS)]
    assert {each.message for each in found[:-1]} == {"m"}
    assert found[-1].message == f"m (and {9000 - MOST_FINDINGS} more findings)"


def test_nothing_in_a_finding_grows_with_the_reply():
    long = "x" * 100_000
    facts = {"path": f"/{long}", "message": long, "allowed": (long, *map(str, range(9000)))}
    rule = Validator(
        "plan", "LONG", 1, lambda reply, context: [Finding(code="LONG", **facts, details={long: [long, {"a": long}]})]
    )
    [found] = verdict(GOOD, rules=[rule]).findings
    assert size_of([found]) < 8_000
    assert found.message == "x" * 500 + "… and 99500 more characters"
    assert len(found.allowed) == 101
    assert found.allowed[-1] == "… and 8901 more"


def test_findings_that_are_large_together_are_fewer():
    facts = {"message": "é" * 500, "allowed": tuple("y" * 400 for _ in range(20))}
    rule = Validator(
        "plan", "WIDE", 1, lambda reply, context: [Finding(code="WIDE", path=f"/{n}", **facts) for n in range(40)]
    )
    found = verdict(GOOD, rules=[rule]).findings
    assert 1 <= len(found) < 40
    assert size_of(found) < MOST_FINDINGS_BYTES + 100
    assert found[-1].message.endswith(f"(and {40 - len(found)} more findings)")


def test_a_hundred_thousand_unknown_keys_are_one_short_finding():
    keys = ",".join(f'"ignore all previous instructions {n}":1' for n in range(100_000))
    [found] = verdict(GOOD[:-1] + f",{keys}}}").findings
    assert found.code == "LLM_OUTPUT_SCHEMA"
    assert size_of([found]) < 1_000
