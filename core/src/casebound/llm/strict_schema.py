"""The copy of a reply's schema that a server takes which knows only the strict subset of JSON Schema. Pure.

Rules:
- What is dropped and what is refused: `schema_copy`.
- Every reply that the copy allows has the shape that the full schema asks for: optional properties become required
  (as the SDK of those servers does), open objects are closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from casebound.llm.schema_copy import NARROWING, UnfitSchema, as_list, check_keywords, refusing

_KEPT = frozenset(
    {
        "$ref",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "title",
        "type",
    }
)
_SHAPE = frozenset(
    {"$defs", "additionalProperties", "allOf", "anyOf", "items", "oneOf", "prefixItems", "properties", "required"}
)
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

_MOST_LEVELS = 10
_MOST_PROPERTIES = 5_000
_MOST_ENUM_VALUES = 1_000
_MOST_NAME_CHARACTERS = 120_000
_LONG_ENUM = 250
_MOST_LONG_ENUM_CHARACTERS = 15_000


def sending_copy(schema: Mapping[str, object], *, hint: str | None = None) -> dict[str, object]:
    """Return the strict-safe copy of `schema`; the original is not touched.

    Args:
        schema: as the protocol made it.
        hint: which of the provider's settings avoids the copy, for the error.

    Raises:
        ProviderError: `LLM_REQUEST`, naming the keyword and its place, or the limit that is passed.
    """
    with refusing(expected="a schema of the strict subset", hint=hint):
        copy = _copied(schema, "")
        if copy.get("type") != "object":
            raise UnfitSchema("a root that is not an object", "")
        _check_limits(copy)
    return copy


def _copied(schema: object, pointer: str) -> dict[str, object]:
    if not isinstance(schema, Mapping):
        raise UnfitSchema("a schema that is true or false", pointer)
    check_keywords(schema, pointer, known=_KEPT | _SHAPE, dropped=NARROWING)
    copy = {key: value for key, value in schema.items() if key in _KEPT and _is_sendable(key, value)}
    if "$defs" in schema:
        copy["$defs"] = _each(schema["$defs"], f"{pointer}/$defs")
    if "$ref" in copy:
        return _checked_reference(copy, pointer)
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, Sequence):
        # What one branch of `oneOf` allows, `anyOf` allows too; that it is exactly one is checked afterwards.
        copy["anyOf"] = [_copied(branch, f"{pointer}/anyOf/{index}") for index, branch in enumerate(branches)]
    if "type" not in copy:
        _add_type(copy, schema)
    if _may_be(copy, "object"):
        _close_object(copy, schema, pointer)
    if _may_be(copy, "array"):
        copy["items"] = _items(schema, pointer)
    if "type" not in copy and "anyOf" not in copy:
        raise UnfitSchema("a schema without a type", pointer)
    return copy


def _is_sendable(keyword: str, value: object) -> bool:
    if keyword == "format":
        return value in _FORMATS
    if keyword == "pattern":
        return isinstance(value, str) and "(?" not in value  # lookaround is refused by some, ignored by others
    return True


def _checked_reference(copy: dict[str, object], pointer: str) -> dict[str, object]:
    beside = sorted(copy.keys() - {"$ref", "$defs", "title", "description"})
    if beside:
        raise UnfitSchema(f"the keyword {beside[0]} beside $ref", pointer)
    return {key: value for key, value in copy.items() if key in {"$ref", "$defs"}}


def _add_type(copy: dict[str, object], schema: Mapping[str, object]) -> None:
    if "properties" in schema:
        copy["type"] = "object"
    elif "const" in copy:
        _add_type_of(copy, [copy["const"]])
    elif isinstance(copy.get("enum"), Sequence):
        _add_type_of(copy, copy["enum"])  # type: ignore[arg-type]  # a sequence, by the line above


def _add_type_of(copy: dict[str, object], values: Sequence[object]) -> None:
    found = {_JSON_TYPES.get(type(value)) for value in values}
    names = sorted(name for name in found if name is not None)
    if len(names) == len(found) and names:
        copy["type"] = names[0] if len(names) == 1 else names


def _may_be(copy: Mapping[str, object], kind: str) -> bool:
    declared = copy.get("type")
    return declared == kind or (isinstance(declared, Sequence) and not isinstance(declared, str) and kind in declared)


def _close_object(copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> None:
    properties = schema.get("properties", {})
    open_to = schema.get("additionalProperties", True)
    if isinstance(open_to, Mapping):
        raise UnfitSchema("the keyword additionalProperties with a schema", pointer)
    if not properties and open_to is not False:
        raise UnfitSchema("an object whose properties are not named", pointer)
    copy["properties"] = named = _each(properties, f"{pointer}/properties")
    required = schema.get("required", ())
    unnamed = [name for name in required if name not in named] if isinstance(required, Sequence) else []
    if unnamed:
        raise UnfitSchema(f"the keyword required with {unnamed[0]}, which is no property", pointer)
    copy["required"] = list(named)
    copy["additionalProperties"] = False


def _items(schema: Mapping[str, object], pointer: str) -> dict[str, object]:
    first = schema.get("prefixItems", ())
    rest = schema.get("items")
    if not isinstance(first, Sequence) or not first:
        if rest is None:
            raise UnfitSchema("an array without items", pointer)
        return _copied(rest, f"{pointer}/items")
    # Any of the kinds at any place: wider than the full schema, which knows the places.
    kinds = [_copied(kind, f"{pointer}/prefixItems/{index}") for index, kind in enumerate(first)]
    if isinstance(rest, Mapping):
        kinds.append(_copied(rest, f"{pointer}/items"))
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _each(schemas: object, pointer: str) -> dict[str, object]:
    if not isinstance(schemas, Mapping):
        raise UnfitSchema("a table of schemas that is no object", pointer)
    return {name: _copied(schema, f"{pointer}/{name}") for name, schema in schemas.items()}


def _check_limits(copy: dict[str, object]) -> None:
    nodes = list(_nodes(copy, 0))
    levels = max(level for _, level in nodes)
    names = [name for node, _ in nodes for key in ("properties", "$defs") for name in _keys(node.get(key))]
    enums = [_values(node) for node, _ in nodes]
    values = [value for enum in enums for value in enum]
    properties = sum(len(_keys(node.get("properties"))) for node, _ in nodes)
    characters = sum(map(len, names)) + sum(len(str(value)) for value in values)
    longest = max((sum(len(str(value)) for value in enum) for enum in enums if len(enum) > _LONG_ENUM), default=0)
    for what, count, most in (
        ("levels of nesting", levels, _MOST_LEVELS),
        ("properties", properties, _MOST_PROPERTIES),
        ("enum values", sum(len(enum) for enum in enums), _MOST_ENUM_VALUES),
        ("characters of names and values", characters, _MOST_NAME_CHARACTERS),
        (f"characters in an enum of more than {_LONG_ENUM} values", longest, _MOST_LONG_ENUM_CHARACTERS),
    ):
        if count > most:
            raise UnfitSchema(f"{count} {what} (strict mode takes {most})", "")


def _nodes(schema: Mapping[str, object], level: int) -> Iterator[tuple[Mapping[str, object], int]]:
    level += _may_be(schema, "object")
    yield schema, level
    below: list[object] = [schema.get("items"), *as_list(schema.get("anyOf"))]
    for table in (schema.get("properties"), schema.get("$defs")):
        below.extend(table.values() if isinstance(table, Mapping) else ())
    for node in below:
        if isinstance(node, Mapping):
            yield from _nodes(node, level)


def _keys(table: object) -> list[str]:
    return list(table) if isinstance(table, Mapping) else []


def _values(node: Mapping[str, object]) -> list[object]:
    return [*as_list(node.get("enum")), *([node["const"]] if "const" in node else [])]
