"""The sending copy: what strict mode takes, and nothing that the full schema would refuse for its shape."""

import copy

import pytest
from casebound.errors import ProviderError
from casebound.llm.strict_schema import sending_copy
from hypothesis import given
from hypothesis import strategies as st


def around(schema, **more):
    """A root object with one property."""
    return {
        "type": "object",
        "properties": {"p": schema},
        "required": ["p"],
        "additionalProperties": False,
        **more,
    }


def sent(schema, **more):
    return sending_copy(around(schema, **more))["properties"]["p"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 9, "default": "x"}, {"type": "string"}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "string", "format": "iri"}, {"type": "string"}),
        ({"type": "string", "pattern": "^[a-z]+$"}, {"type": "string", "pattern": "^[a-z]+$"}),
        ({"type": "string", "pattern": "^(?!x)"}, {"type": "string"}),
        ({"type": "integer", "minimum": 0, "maximum": 3}, {"type": "integer", "minimum": 0, "maximum": 3}),
        ({"const": "a"}, {"type": "string", "const": "a"}),
        ({"enum": ["a", None]}, {"type": ["null", "string"], "enum": ["a", None]}),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        (
            {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 2}]},
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
        ),
        (
            {"type": "array", "prefixItems": [{"const": 0}, {"const": 1}, {"const": 0}], "items": False, "minItems": 3},
            {
                "type": "array",
                "items": {"anyOf": [{"const": 0, "type": "integer"}, {"const": 1, "type": "integer"}]},
                "minItems": 3,
            },
        ),
    ],
)
def test_what_only_narrows_is_dropped_and_the_shape_is_kept(schema, expected):
    assert sent(schema) == expected


def test_every_object_is_closed_and_asks_for_all_its_properties():
    inner = {"properties": {"b": {"type": "string"}, "a": {"type": ["integer", "null"]}}, "required": ["a"]}
    closed = sent({"type": "array", "items": inner})["items"]
    assert closed["required"] == ["b", "a"]
    assert closed["additionalProperties"] is False
    assert closed["type"] == "object"


def test_definitions_are_copied_and_references_stand_alone():
    schema = around({"$ref": "#/$defs/node", "description": "x"})
    schema["$defs"] = {"node": around({"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})}
    result = sending_copy(schema)
    assert result["properties"]["p"] == {"$ref": "#/$defs/node"}
    assert result["$defs"]["node"]["required"] == ["p"]


def test_parts_that_only_narrow_are_dropped():
    names = {"type": "array", "items": {"type": "string"}}
    assert sent({**names, "allOf": [{"contains": {"const": "a"}}, {"minContains": 1}]}) == names


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"allOf": [{"type": "string"}]}, "allOf"),
        ({"type": "array", "items": {"type": "string"}, "allOf": [{"contains": {}, "not": {}}]}, "allOf"),
        ({"type": "string", "not": {"const": "a"}}, "not"),
        ({"type": "object", "patternProperties": {"^a": {"type": "string"}}}, "patternProperties"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "additionalProperties"),
        ({"type": "string", "if": {"const": "a"}}, "if"),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"type": "array", "unevaluatedItems": False, "items": {"type": "string"}}, "unevaluatedItems"),
        ({"$ref": "#/$defs/x", "enum": ["a"]}, "enum beside"),
        ({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]}, "required with b"),
        ({"type": "object"}, "properties are not named"),
        ({"type": "array"}, "without items"),
        ({}, "without a type"),
        (True, "true or false"),
        ({"type": "string", "colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_dropped_is_refused_by_name_and_place(schema, keyword):
    with pytest.raises(ProviderError) as caught:
        sent(schema)
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)
    assert keyword in caught.value.found
    assert caught.value.pointer.startswith("/properties/p")


@pytest.mark.parametrize(
    "root", [{"type": "array", "items": {"type": "string"}}, {"anyOf": [around({"type": "null"})]}]
)
def test_a_root_that_is_no_object_is_refused(root):
    with pytest.raises(ProviderError, match="root that is not an object"):
        sending_copy(root)


def test_the_caller_says_which_setting_avoids_the_copy():
    with pytest.raises(ProviderError) as caught:
        sending_copy({"type": "object", "not": {}}, hint="a setting of this provider")
    assert (caught.value.hint, caught.value.pointer) == ("a setting of this provider", "the root")


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = around(schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "limit"),
    [
        (nested(11), "11 levels"),
        (around({"enum": [f"v{n}" for n in range(1001)]}), "1001 enum values"),
        (around({"enum": ["x" * 60 + str(n) for n in range(260)]}), "more than 250 values"),
        (around({"type": "string"}) | {"$defs": {"x" * 120_001: {"type": "null"}}}, "characters of names"),
    ],
)
def test_a_schema_past_a_limit_is_refused(schema, limit):
    with pytest.raises(ProviderError) as caught:
        sending_copy(schema)
    assert limit in caught.value.found


def test_ten_levels_are_taken():
    assert sending_copy(nested(10))


def test_limits_count_what_is_sent():
    """Kinds of items that are equal are sent once; what only the original holds is not sent at all."""
    many = {"enum": [f"v{n}" for n in range(600)]}
    others = {"enum": [f"w{n}" for n in range(600)]}
    assert sent({"type": "array", "prefixItems": [many, many, many], "items": many})["items"]["enum"] == many["enum"]
    with pytest.raises(ProviderError, match="1200 enum values"):
        sent({"type": "array", "prefixItems": [many, others, many]})
    assert sent({"type": "string", "default": "x" * 120_001}) == {"type": "string"}


LEAVES = st.sampled_from(
    [
        {"type": "string", "maxLength": 3},
        {"type": ["integer", "null"], "minimum": 0},
        {"enum": ["a", "b"]},
        {"const": 1},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items, "uniqueItems": True}, inner)
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda table: {"type": "object", "properties": table},
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
        )
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_the_copy_is_a_fixed_point_and_the_original_untouched(schema):
    root = around(schema)
    before = copy.deepcopy(root)
    once = sending_copy(root)
    assert root == before
    assert sending_copy(once) == once
