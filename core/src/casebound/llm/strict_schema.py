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
_KNOWN = _KEPT | _SHAPE
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
    if not isinstance(schema, dict):
        raise UnfitSchema("a schema that is true or false", pointer)
    check_keywords(schema, pointer, known=_KNOWN, dropped=NARROWING)
    copy = {key: value for key, value in schema.items() if key in _KEPT}
    _drop_unsendable(copy)
    if "$defs" in schema:
        copy["$defs"] = _each(schema["$defs"], f"{pointer}/$defs")
    if "$ref" in copy:
        return _checked_reference(copy, pointer)
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list | tuple):
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


def _drop_unsendable(copy: dict[str, object]) -> None:
    if copy.get("format") not in _FORMATS:
        copy.pop("format", None)
    pattern = copy.get("pattern")
    if not isinstance(pattern, str) or "(?" in pattern:  # lookaround is refused by some, ignored by others
        copy.pop("pattern", None)


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
    elif isinstance(copy.get("enum"), list | tuple):
        _add_type_of(copy, copy["enum"])  # type: ignore[arg-type]  # a sequence, by the line above


def _add_type_of(copy: dict[str, object], values: Sequence[object]) -> None:
    found = {_JSON_TYPES.get(type(value)) for value in values}
    names = sorted(name for name in found if name is not None)
    if len(names) == len(found) and names:
        copy["type"] = names[0] if len(names) == 1 else names


def _may_be(copy: Mapping[str, object], kind: str) -> bool:
    declared = copy.get("type")
    return declared == kind or (isinstance(declared, list | tuple) and kind in declared)


def _close_object(copy: dict[str, object], schema: Mapping[str, object], pointer: str) -> None:
    properties = schema.get("properties", {})
    open_to = schema.get("additionalProperties", True)
    if isinstance(open_to, dict):
        raise UnfitSchema("the keyword additionalProperties with a schema", pointer)
    if not properties and open_to is not False:
        raise UnfitSchema("an object whose properties are not named", pointer)
    copy["properties"] = named = _each(properties, f"{pointer}/properties")
    required = schema.get("required", ())
    unnamed = [name for name in required if name not in named] if isinstance(required, list | tuple) else []
    if unnamed:
        raise UnfitSchema(f"the keyword required with {unnamed[0]}, which is no property", pointer)
    copy["required"] = list(named)
    copy["additionalProperties"] = False


def _items(schema: Mapping[str, object], pointer: str) -> dict[str, object]:
    first = schema.get("prefixItems", ())
    rest = schema.get("items")
    if not isinstance(first, list | tuple) or not first:
        if rest is None:
            raise UnfitSchema("an array without items", pointer)
        return _copied(rest, f"{pointer}/items")
    # Any of the kinds at any place: wider than the full schema, which knows the places.
    kinds = [_copied(kind, f"{pointer}/prefixItems/{index}") for index, kind in enumerate(first)]
    if isinstance(rest, dict):
        kinds.append(_copied(rest, f"{pointer}/items"))
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _each(schemas: object, pointer: str) -> dict[str, object]:
    if not isinstance(schemas, dict):
        raise UnfitSchema("a table of schemas that is no object", pointer)
    return {name: _copied(schema, f"{pointer}/{name}") for name, schema in schemas.items()}


def _check_limits(copy: Mapping[str, object]) -> None:
    levels = properties = values = characters = longest = 0
    for node, level in _nodes(copy):
        names = [*_keys(node.get("properties")), *_keys(node.get("$defs"))]
        enum = _values(node)
        long = sum(len(str(value)) for value in enum)
        levels = max(levels, level)
        properties += len(_keys(node.get("properties")))
        values += len(enum)
        characters += sum(map(len, names)) + long
        if len(enum) > _LONG_ENUM:
            longest = max(longest, long)
    for what, count, most in (
        ("levels of nesting", levels, _MOST_LEVELS),
        ("properties", properties, _MOST_PROPERTIES),
        ("enum values", values, _MOST_ENUM_VALUES),
        ("characters of names and values", characters, _MOST_NAME_CHARACTERS),
        (f"characters in an enum of more than {_LONG_ENUM} values", longest, _MOST_LONG_ENUM_CHARACTERS),
    ):
        if count > most:
            raise UnfitSchema(f"{count} {what} (strict mode takes {most})", "")


def _nodes(schema: Mapping[str, object]) -> Iterator[tuple[Mapping[str, object], int]]:
    """Yield every schema in `schema`, itself among them, with the objects that it nests in, itself included."""
    waiting: list[tuple[object, int]] = [(schema, 0)]
    while waiting:
        node, above = waiting.pop()
        if not isinstance(node, dict):
            continue
        level = above + _may_be(node, "object")
        yield node, level
        below = [node.get("items"), *as_list(node.get("anyOf"))]
        for table in (node.get("properties"), node.get("$defs")):
            below += table.values() if isinstance(table, dict) else ()
        waiting += [(each, level) for each in below]


def _keys(table: object) -> list[str]:
    return list(table) if isinstance(table, dict) else []


def _values(node: Mapping[str, object]) -> list[object]:
    return [*as_list(node.get("enum")), *([node["const"]] if "const" in node else [])]
