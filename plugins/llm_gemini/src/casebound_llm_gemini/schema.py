"""The copy of a reply's schema that `responseJsonSchema` takes: a part of JSON Schema, and no word beyond it.

Rules:
- What is dropped and what is refused: `casebound.llm.schema_copy`.
- The copy never forbids what the full schema allows.
- Keys come back in alphabetical order unless `propertyOrdering` says otherwise: it lists the required ones first, in
  their order, which is that of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from casebound.llm.schema_copy import NARROWING, UnfitSchema, as_list, check_keywords, refusing

_KEPT = frozenset({"description", "format", "maxItems", "maximum", "minItems", "minimum", "title", "type"})
_SHAPE = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "enum",
        "items",
        "oneOf",
        "prefixItems",
        "properties",
        "required",
    }
)
_KNOWN = _KEPT | _SHAPE
_DROPPED = NARROWING | {"exclusiveMaximum", "exclusiveMinimum", "multipleOf", "pattern"}
_FORMATS = frozenset({"date", "date-time", "time"})
_BESIDE_REFERENCE = frozenset({"$ref", "description", "title"})
REFERENCE = "#/$defs/"
refusing_unfit = refusing(
    expected="a schema of the part of JSON Schema that generateContent takes",
    hint='set response_format = "json_object" in [llm]',
)


@refusing_unfit
def json_schema_copy(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the copy of `schema` to send; the original is not touched.

    Raises:
        ProviderError: `LLM_REQUEST`, naming the keyword and its place.
    """
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, Mapping):
        raise UnfitSchema("a table of schemas that is no object", "/$defs")
    copier = _Copier(definitions.keys())
    copy = copier.copied({key: value for key, value in schema.items() if key != "$defs"}, "")
    if definitions:
        tables = copier.each(definitions, "/$defs")
        _check_recursion(tables)
        copy["$defs"] = tables
    return copy


class _Copier:
    """Copies a schema, subschema by subschema; `pointer` is the place in the original."""

    def __init__(self, defined: Set[str]) -> None:
        self._defined = defined

    def copied(self, schema: object, pointer: str) -> dict[str, object]:
        if not isinstance(schema, Mapping):
            raise UnfitSchema("a schema that is true or false", pointer)
        check_keywords(schema, pointer, known=_KNOWN, dropped=_DROPPED)
        copy: dict[str, object] = {key: value for key, value in schema.items() if key in _KEPT}
        if copy.get("format") not in _FORMATS:
            copy.pop("format", None)
        if "$ref" in schema:
            return self._reference(schema, pointer)
        if "const" in schema or "enum" in schema:
            return _with_values(copy, schema, pointer)
        return self._with_shape(copy, schema, pointer)

    def _reference(self, schema: Mapping[str, object], pointer: str) -> dict[str, object]:
        beside = sorted(schema.keys() - _BESIDE_REFERENCE - _DROPPED)
        if beside:
            raise UnfitSchema(f"the keyword {beside[0]} beside $ref", pointer)
        if str(schema["$ref"]).removeprefix(REFERENCE) not in self._defined:
            raise UnfitSchema(f"a $ref to something else than a definition ({schema['$ref']})", pointer)
        return {"$ref": schema["$ref"]}

    def _with_shape(self, copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> dict[str, object]:
        # What one branch of `oneOf` allows, `anyOf` allows too; that it is exactly one is checked afterwards.
        union = "anyOf" if "anyOf" in schema else "oneOf"
        branches = as_list(schema.get(union))
        if branches:
            copy["anyOf"] = [self.copied(branch, f"{pointer}/{union}/{index}") for index, branch in enumerate(branches)]
        if "type" not in copy and "properties" in schema:
            copy["type"] = "object"
        if "object" in types_of(copy):
            self._add_properties(copy, schema, pointer)
        if "array" in types_of(copy):
            self._add_items(copy, schema, pointer)
        if "type" not in copy and not branches:
            raise UnfitSchema("a schema without a type", pointer)
        return copy

    def _add_properties(self, copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> None:
        named = self.each(schema.get("properties", {}), f"{pointer}/properties")
        others = schema.get("additionalProperties")
        required = [str(name) for name in as_list(schema.get("required"))]
        unnamed = [name for name in required if name not in named]
        if unnamed:
            raise UnfitSchema(f"the keyword required with {unnamed[0]}, which is no property", pointer)
        if isinstance(others, Mapping):
            copy["additionalProperties"] = self.copied(others, f"{pointer}/additionalProperties")
        elif not named and others is not False:
            raise UnfitSchema("an object whose properties are not named", pointer)
        elif others is not None:
            copy["additionalProperties"] = others
        if named:
            copy["properties"] = named
            copy["propertyOrdering"] = [*required, *sorted(named.keys() - set(required))]
        if required:
            copy["required"] = required

    def _add_items(self, copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> None:
        first, rest = as_list(schema.get("prefixItems")), schema.get("items")
        if first:
            copy["prefixItems"] = [self.copied(kind, f"{pointer}/prefixItems/{at}") for at, kind in enumerate(first)]
        if isinstance(rest, Mapping):
            copy["items"] = self.copied(rest, f"{pointer}/items")
        elif not first:
            raise UnfitSchema("an array without items", pointer)

    def each(self, schemas: object, pointer: str) -> dict[str, object]:
        if not isinstance(schemas, Mapping):
            raise UnfitSchema("a table of schemas that is no object", pointer)
        return {name: self.copied(schema, f"{pointer}/{name}") for name, schema in schemas.items()}


def types_of(schema: Mapping[str, object]) -> list[str]:
    """Return the types that `schema` names."""
    declared = schema.get("type")
    return [declared] if isinstance(declared, str) else [str(name) for name in as_list(declared)]


# --- values: `enum` may hold texts and numbers only ------------------------------------------------------------------


def _with_values(copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> dict[str, object]:
    """Add the values that are left to choose from; those of one type together, each type an alternative."""
    values = [schema["const"]] if "const" in schema else as_list(schema["enum"])
    declared = types_of(copy)
    alternatives = _by_type(values, declared, pointer)
    if not alternatives:
        raise UnfitSchema("a value that its own type forbids", pointer)
    if len(alternatives) == 1:
        return {**copy, **alternatives[0]}
    copy.pop("type", None)
    return {**copy, "anyOf": alternatives}


def _by_type(values: Sequence[object], declared: Sequence[str], pointer: str) -> list[dict[str, object]]:
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    number = "integer" if all(isinstance(value, int) for value in numbers) and "number" not in declared else "number"
    whole = sum(value is None or isinstance(value, str | int | float) for value in values)
    if whole < len(values):
        raise UnfitSchema("a value that is a list or an object", pointer)
    found: list[dict[str, object]] = []
    if texts:
        found.append({"type": "string", "enum": texts})
    if numbers:
        found.append({"type": number, "enum": numbers})
    if any(isinstance(value, bool) for value in values):
        found.append({"type": "boolean"})
    if None in values:
        found.append({"type": "null"})
    return [kind for kind in found if not declared or kind["type"] in declared]


# --- recursion: it is unrolled, so it has to end by itself -----------------------------------------------------------


def _check_recursion(definitions: Mapping[str, object]) -> None:
    """Refuse a definition that needs itself; in a property that is not required it may stand."""
    needs = {name: set(_needed(schema)) for name, schema in definitions.items()}
    for name, direct in needs.items():
        reached, waiting = set[str](), set(direct)
        while waiting:
            one = waiting.pop()
            reached.add(one)
            waiting |= needs[one] - reached
        if name in reached:
            raise UnfitSchema("a definition that needs itself", f"/$defs/{name}")


def _needed(schema: object) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield str(schema["$ref"]).removeprefix(REFERENCE)
    required, properties = as_list(schema.get("required")), schema.get("properties")
    below = [schema.get("items"), *as_list(schema.get("anyOf")), *as_list(schema.get("prefixItems"))]
    below += [part for name, part in properties.items() if name in required] if isinstance(properties, Mapping) else []
    for part in below:
        yield from _needed(part)
