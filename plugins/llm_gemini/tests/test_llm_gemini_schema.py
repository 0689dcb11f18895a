"""The sending copies: what each field takes, and nothing that forbids what the full schema allows."""

import copy
import json

import pytest
from casebound.errors import ProviderError
from casebound_llm_gemini.openapi import openapi_copy
from casebound_llm_gemini.schema import json_schema_copy
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

KNOWN = {
    *(
        "$defs",
        "$ref",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
    ),
    *("minimum", "maximum", "anyOf", "properties", "additionalProperties", "required", "propertyOrdering"),
}
KNOWN_OLDER = {
    *("type", "format", "title", "description", "enum", "items", "minItems", "maxItems", "minimum", "maximum", "anyOf"),
    *("properties", "required", "propertyOrdering", "nullable"),
}


def around(schema, **more):
    """A root object with one property."""
    return {"type": "object", "properties": {"p": schema}, "required": ["p"], "additionalProperties": False, **more}


def sent(schema, **more):
    return json_schema_copy(around(schema, **more))["properties"]["p"]


def older(schema, **more):
    return openapi_copy(around(schema, **more))["properties"]["p"]


def keywords(schema):
    """Every keyword of a schema and of what is inside it."""
    found = set(schema)
    tables = [schema.get(name, {}) for name in ("properties", "$defs")]
    below = [
        *schema.get("anyOf", []),
        *schema.get("prefixItems", []),
        *(part for table in tables for part in table.values()),
    ]
    below += [schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name), dict)]
    return found.union(*map(keywords, below))


@pytest.mark.parametrize(
    ("schema", "json_schema", "openapi"),
    [
        (
            {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "default": "x"},
            {"type": "string"},
            {"type": "STRING"},
        ),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}, {"type": "STRING"}),
        (
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "date-time"},
            {"type": "STRING", "format": "date-time"},
        ),
        ({"type": "string", "format": "email"}, {"type": "string"}, {"type": "STRING"}),
        (
            {"type": "integer", "minimum": 0, "maximum": 3, "exclusiveMaximum": 4, "multipleOf": 1},
            {"type": "integer", "minimum": 0, "maximum": 3},
            {"type": "INTEGER", "minimum": 0, "maximum": 3},
        ),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}, {"type": "STRING", "enum": ["a"]}),
        (
            {"const": 2, "type": "integer"},
            {"type": "integer", "enum": [2]},
            {"type": "INTEGER", "minimum": 2, "maximum": 2},
        ),
        (
            {"enum": [1.5, 3], "type": "number"},
            {"type": "number", "enum": [1.5, 3]},
            {"type": "NUMBER", "minimum": 1.5, "maximum": 3},
        ),
        ({"const": True}, {"type": "boolean"}, {"type": "BOOLEAN"}),
        ({"const": None}, {"type": "null"}, {"type": "NULL"}),
        (
            {"enum": ["a", None]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
            {"type": "STRING", "enum": ["a"], "nullable": True},
        ),
        ({"enum": ["a", 1], "type": "string"}, {"type": "string", "enum": ["a"]}, {"type": "STRING", "enum": ["a"]}),
        ({"type": ["integer", "null"]}, {"type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True}),
        (
            {"type": ["integer", "string"], "minimum": 1},
            {"type": ["integer", "string"], "minimum": 1},
            {"anyOf": [{"type": "INTEGER", "minimum": 1}, {"type": "STRING"}]},
        ),
        (
            {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 2}], "description": "d"},
            {"anyOf": [{"type": "null"}, {"type": "string"}], "description": "d"},
            {"type": "STRING", "nullable": True, "description": "d"},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
        ),
        (
            {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "uniqueItems": True,
                "contains": {"const": "a"},
            },
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": 1},
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"const": 0}, {"const": "b"}, {"const": 0}],
                "items": False,
                "minItems": 3,
            },
            {
                "type": "array",
                "prefixItems": [
                    {"type": "integer", "enum": [0]},
                    {"type": "string", "enum": ["b"]},
                    {"type": "integer", "enum": [0]},
                ],
                "minItems": 3,
            },
            {
                "type": "ARRAY",
                "items": {
                    "anyOf": [{"type": "INTEGER", "minimum": 0, "maximum": 0}, {"type": "STRING", "enum": ["b"]}]
                },
                "minItems": 3,
            },
        ),
        (
            {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "string"}},
            {
                "type": "object",
                "properties": {"a": {"type": "null"}},
                "additionalProperties": {"type": "string"},
                "propertyOrdering": ["a"],
            },
            {"type": "OBJECT", "properties": {"a": {"type": "NULL"}}, "propertyOrdering": ["a"]},
        ),
    ],
)
def test_what_only_narrows_is_dropped_and_the_shape_is_kept(schema, json_schema, openapi):
    assert sent(schema) == json_schema
    assert older(schema) == openapi


def test_keys_are_ordered_as_the_prompt_names_them():
    schema = around({"type": "null"})
    schema["properties"] = {name: {"type": "null"} for name in ("a", "c", "b", "d")}
    schema["required"] = ["c", "a"]
    assert json_schema_copy(schema)["propertyOrdering"] == ["c", "a", "b", "d"]
    assert openapi_copy(schema)["propertyOrdering"] == ["c", "a", "b", "d"]


def test_references_stand_alone_and_are_put_in_for_the_older_form():
    defs = {"name": {"enum": ["a", "b"]}}
    schema = around({"$ref": "#/$defs/name", "description": "x", "minLength": 1}, **{"$defs": defs})
    result = json_schema_copy(schema)
    assert result["properties"]["p"] == {"$ref": "#/$defs/name"}
    assert result["$defs"] == {"name": {"type": "string", "enum": ["a", "b"]}}
    assert openapi_copy(schema)["properties"]["p"] == {"type": "STRING", "enum": ["a", "b"]}


def test_a_definition_may_hold_itself_only_where_it_can_end():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
    schema = around({"$ref": "#/$defs/node"}, **{"$defs": {"node": {**node, "required": ["name"]}}})
    assert json_schema_copy(schema)["$defs"]["node"]["required"] == ["name"]
    with pytest.raises(ProviderError, match="responseSchema does not know"):
        openapi_copy(schema)
    endless = around({"$ref": "#/$defs/node"}, **{"$defs": {"node": {**node, "required": ["next"]}}})
    with pytest.raises(ProviderError, match="needs itself") as caught:
        json_schema_copy(endless)
    assert caught.value.pointer == "/$defs/node"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"allOf": [{"type": "string"}]}, "allOf"),
        ({"type": "string", "not": {"const": "a"}}, "not"),
        ({"type": "object", "patternProperties": {"^a": {"type": "string"}}}, "patternProperties"),
        ({"type": "string", "if": {"const": "a"}}, "if"),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"type": "array", "unevaluatedItems": False, "items": {"type": "string"}}, "unevaluatedItems"),
        ({"type": "object", "$defs": {}, "properties": {"a": {"type": "null"}}}, "$defs"),
        ({"$ref": "#/$defs/x"}, "something else than a definition"),
        ({"$ref": "https://elsewhere/x"}, "something else than a definition"),
        ({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]}, "required with b"),
        ({"type": "object"}, "properties are not named"),
        ({"type": "array"}, "without items"),
        ({"const": {"a": 1}}, "a list or an object"),
        ({"enum": ["a"], "type": "integer"}, "its own type forbids"),
        ({"enum": []}, "its own type forbids"),
        ({}, "without a type"),
        (True, "true or false"),
        ({"type": "string", "colour": "red"}, "colour"),
    ],
)
@pytest.mark.parametrize("copied", [json_schema_copy, openapi_copy])
def test_what_cannot_be_dropped_is_refused_by_name_and_place(copied, schema, says):
    with pytest.raises(ProviderError) as caught:
        copied(around(schema))
    assert (caught.value.code, caught.value.retryable) == ("LLM_REQUEST", False)
    assert says in caught.value.found
    assert caught.value.pointer.startswith("/properties/p")


def test_the_place_of_a_branch_is_that_in_the_original():
    with pytest.raises(ProviderError) as caught:
        sent({"oneOf": [{"type": "null"}, {"not": {}}]})
    assert caught.value.pointer == "/properties/p/oneOf/1"


LEAVES = st.sampled_from(
    [
        {"type": "string", "maxLength": 3},
        {"type": ["integer", "null"], "minimum": 0},
        {"enum": ["a", "b"]},
        {"enum": ["a", 1, None, True]},
        {"const": 1},
    ]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items, "uniqueItems": True}, inner)
        | st.builds(
            lambda first: {"type": "array", "prefixItems": first, "items": False},
            st.lists(inner, min_size=1, max_size=2),
        )
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda table: {"type": "object", "properties": table},
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1),
        )
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from(["a", "abcd", 0, 1, -1, None, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=5,
)


@given(SCHEMAS)
def test_a_copy_knows_only_words_of_its_field_and_leaves_the_original_alone(schema):
    root = around(schema)
    before = copy.deepcopy(root)
    assert keywords(json_schema_copy(root)) <= KNOWN
    assert keywords(openapi_copy(root)) <= KNOWN_OLDER
    assert root == before


@given(SCHEMAS, VALUES)
def test_the_copy_allows_whatever_the_full_schema_allows(schema, value):
    reply = {"p": value}
    if Draft202012Validator(around(schema)).is_valid(reply):
        assert Draft202012Validator(json_schema_copy(around(schema))).is_valid(reply), json.dumps(reply)
