"""The quick yes is never given where `jsonschema` says no, and is given where protocols need it."""

from __future__ import annotations

from typing import Any

import pytest
from casebound.llm import judge, quick_schema
from casebound.llm.quick_schema import fits
from hypothesis import given
from hypothesis import strategies as st

scalars = (
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from(["", "a", "ab"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=8
)
types = st.sampled_from(["object", "array", "string", "integer", "boolean", "null", "number"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    many = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": types | st.lists(types, min_size=1, max_size=2, unique=True),
            "const": values,
            "enum": st.lists(values, min_size=1, max_size=3),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "additionalProperties": inner,
            "patternProperties": st.just({"^a": False}),
            "items": inner,
            "prefixItems": many,
            "contains": inner,
            "minContains": st.integers(0, 2),
            "maxContains": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 2),
            "pattern": st.sampled_from(["^a", "b$", ""]),
            "anyOf": many,
            "allOf": many,
            "not": inner,
            "minimum": st.integers(0, 2),
            "description": st.just("text"),
            "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
            "$defs": st.fixed_dictionaries({"one": st.just({"type": "string"})}),
        },
    )


schemas = st.recursive(st.booleans() | st.fixed_dictionaries({"type": types}), keywords, max_leaves=6)


definitions = st.fixed_dictionaries({"one": schemas, "two": schemas})


@given(values, schemas, definitions)
def test_a_quick_yes_is_a_yes(value: Any, schema: Any, defined: Any) -> None:
    """References are followed to the root's definitions, which may be anything, also a reference back."""
    if isinstance(schema, dict):
        schema = {**schema, "$defs": defined}
    if fits(value, schema):
        assert judge._validator_class()(schema).is_valid(value)


@given(
    values, schemas.filter(lambda schema: isinstance(schema, dict) and set(schema) <= {"type", "required", "minItems"})
)
def test_what_is_simple_needs_no_library(value: Any, schema: Any) -> None:
    if "number" not in str(schema):
        assert fits(value, schema) == judge._validator_class()(schema).is_valid(value)


@pytest.mark.parametrize(("value", "constant"), [(True, 1), (1, True), (0, False), (1.0, 1), ([1], [True])])
def test_equal_in_python_is_not_equal_in_json(value: object, constant: object) -> None:
    assert not fits(value, {"const": constant})
    assert not fits(value, {"enum": [constant]})


def test_an_index_of_many_alternatives_changes_no_answer():
    names = [f"E{number}" for number in range(12)] + ["E3"]
    alternatives = [
        {"type": "object", "properties": {"x": {"type": "string"}, "id": {"const": name}}, "required": ["id"]}
        for name in names
    ]
    odd = [*alternatives, {"properties": {"id": {"type": "string"}}}]
    for schemas in (alternatives, odd):
        schema = {"anyOf": schemas}
        checker = judge._validator_class()(schema)
        for value in ({"id": "E3"}, {"id": "E3", "x": 1}, {"id": "none"}, {"id": 1}, {}, {"": "E3"}, "E3"):
            assert fits(value, schema) == checker.is_valid(value), value


def test_as_many_values_as_alternatives_are_each_compared_with_their_own(monkeypatch):
    calls = []
    real = quick_schema._fits

    def counted(*arguments):
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(quick_schema, "_fits", counted)
    names = [str(number) for number in range(500)]
    alternatives = [{"type": "object", "properties": {"id": {"type": "string", "const": name}}} for name in names]
    assert fits([{"id": name} for name in names], {"items": {"anyOf": alternatives}})
    assert len(calls) < 5 * len(names)
