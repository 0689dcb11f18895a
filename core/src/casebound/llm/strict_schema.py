"""The copy of a reply's schema that a server takes which knows only the strict subset of JSON Schema. Pure.

Rules:
- What is dropped and what is refused: `schema_copy`.
- Every reply that the copy allows has the shape that the full schema asks for: optional properties become required
  (as the SDK of those servers does), open objects are closed.
- A schema is walked once, for every request that is sent: what the limits count is counted on the way, and the place of
  a subschema becomes a pointer only where it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from casebound.llm.schema_copy import LISTS, NARROWING, UnfitSchema, check_keywords, refusing

_Place: TypeAlias = (
    "tuple[_Place, object] | None"  # the place around a subschema and the step from there; None: the root
)

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
_TAKEN = (_KNOWN | NARROWING) - {"allOf"}  # whatever they hold; the parts of `allOf` are looked at
_BESIDE_REFERENCE = frozenset({"$ref", "description", "title"})
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
        copier = _Copier()
        copy = copier.copied(schema, None, 0)
        if copy.get("type") != "object":
            raise UnfitSchema("a root that is not an object", "")
        copier.check_limits()
    return copy


class _Copier:
    """Copies one schema, subschema by subschema, and counts what is in the copy.

    Each subschema comes with its place in the original and with the number of objects that it nests in.
    """

    def __init__(self) -> None:
        self._levels = 0
        self._properties = 0
        self._values = 0
        self._characters = 0  # of names and values
        self._longest = 0  # characters in the longest of the long enums

    def copied(self, schema: object, place: _Place, above: int) -> dict[str, object]:
        if not isinstance(schema, dict):
            raise UnfitSchema("a schema that is true or false", _pointer(place))
        copy = {keyword: value for keyword, value in schema.items() if keyword in _KEPT}
        if len(copy) < len(schema) and not schema.keys() <= _TAKEN:
            check_keywords(schema, _pointer(place), known=_KNOWN, dropped=NARROWING)
        if "format" in copy or "pattern" in copy:
            _drop_unsendable(copy)
        if "$ref" in copy:
            return self._reference(copy, schema, place, above)
        kind = copy["type"] if "type" in copy else _missing_type(copy, schema)
        kinds = kind if isinstance(kind, LISTS) else (kind,)
        level = above + ("object" in kinds)
        if "$defs" in schema:
            copy["$defs"] = self._definitions(schema["$defs"], place, level)
        branches = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(branches, LISTS):
            # What one branch of `oneOf` allows, `anyOf` allows too; that it is exactly one is checked afterwards.
            around = (place, "anyOf")
            copy["anyOf"] = [self.copied(branch, (around, at), level) for at, branch in enumerate(branches)]
        if kind is not None:
            copy["type"] = kind
        if "object" in kinds:
            self._close_object(copy, schema, place, level)
        if "array" in kinds:
            copy["items"] = self._items(schema, place, level)
        if "enum" in copy or "const" in copy:
            self._count_values(copy)
        if "type" not in copy and "anyOf" not in copy:
            raise UnfitSchema("a schema without a type", _pointer(place))
        return copy

    def _reference(
        self, copy: dict[str, object], schema: Mapping[str, object], place: _Place, above: int
    ) -> dict[str, object]:
        alone = {"$ref": copy["$ref"]}
        if "$defs" in schema:
            alone["$defs"] = self._definitions(schema["$defs"], place, above)
        beside = sorted(copy.keys() - _BESIDE_REFERENCE) if len(copy) > 1 else ()
        if beside:
            raise UnfitSchema(f"the keyword {beside[0]} beside $ref", _pointer(place))
        return alone

    def _definitions(self, schemas: object, place: _Place, level: int) -> dict[str, object]:
        named = self._each(schemas, (place, "$defs"), level)
        self._characters += sum(map(len, named))
        return named

    def _close_object(self, copy: dict[str, object], schema: Mapping[str, object], place: _Place, level: int) -> None:
        properties = schema.get("properties", {})
        open_to = schema.get("additionalProperties", True)
        if isinstance(open_to, dict):
            raise UnfitSchema("the keyword additionalProperties with a schema", _pointer(place))
        if not properties and open_to is not False:
            raise UnfitSchema("an object whose properties are not named", _pointer(place))
        copy["properties"] = named = self._each(properties, (place, "properties"), level)
        required = schema.get("required", ())
        for name in required if isinstance(required, LISTS) else ():
            if name not in named:
                raise UnfitSchema(f"the keyword required with {name}, which is no property", _pointer(place))
        copy["required"] = list(named)
        copy["additionalProperties"] = False
        self._levels = max(self._levels, level)
        self._properties += len(named)
        self._characters += sum(map(len, named))

    def _items(self, schema: Mapping[str, object], place: _Place, level: int) -> dict[str, object]:
        first = schema.get("prefixItems", ())
        rest = schema.get("items")
        if not isinstance(first, LISTS) or not first:
            if rest is None:
                raise UnfitSchema("an array without items", _pointer(place))
            return self.copied(rest, (place, "items"), level)
        # Any of the kinds at any place: wider than the full schema, which knows the places.
        around = (place, "prefixItems")
        kinds: list[dict[str, object]] = []
        for at, kind in enumerate(first):
            self._add_kind(kinds, kind, (around, at), level)
        if isinstance(rest, dict):
            self._add_kind(kinds, rest, (place, "items"), level)
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}

    def _add_kind(self, kinds: list[dict[str, object]], schema: object, place: _Place, level: int) -> None:
        """Add the copy of a kind of item, unless it is there already; then it does not count either."""
        counted = (self._properties, self._values, self._characters, self._longest)
        copy = self.copied(schema, place, level)
        if copy in kinds:
            self._properties, self._values, self._characters, self._longest = counted
        else:
            kinds.append(copy)

    def _each(self, schemas: object, place: _Place, level: int) -> dict[str, object]:
        if not isinstance(schemas, dict):
            raise UnfitSchema("a table of schemas that is no object", _pointer(place))
        return {name: self.copied(schema, (place, name), level) for name, schema in schemas.items()}

    def _count_values(self, copy: Mapping[str, object]) -> None:
        enum = copy.get("enum")
        values = [*(enum if isinstance(enum, LISTS) else ()), *([copy["const"]] if "const" in copy else ())]
        characters = sum([len(str(value)) for value in values])
        self._values += len(values)
        self._characters += characters
        if len(values) > _LONG_ENUM:
            self._longest = max(self._longest, characters)

    def check_limits(self) -> None:
        """Refuse a copy that is larger than strict mode takes."""
        for what, count, most in (
            ("levels of nesting", self._levels, _MOST_LEVELS),
            ("properties", self._properties, _MOST_PROPERTIES),
            ("enum values", self._values, _MOST_ENUM_VALUES),
            ("characters of names and values", self._characters, _MOST_NAME_CHARACTERS),
            (f"characters in an enum of more than {_LONG_ENUM} values", self._longest, _MOST_LONG_ENUM_CHARACTERS),
        ):
            if count > most:
                raise UnfitSchema(f"{count} {what} (strict mode takes {most})", "")


def _pointer(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(f"/{step}")
    return "".join(reversed(steps))


def _drop_unsendable(copy: dict[str, object]) -> None:
    if "format" in copy and copy["format"] not in _FORMATS:
        del copy["format"]
    if "pattern" in copy:
        pattern = copy["pattern"]
        if not isinstance(pattern, str) or "(?" in pattern:  # lookaround is refused by some, ignored by others
            del copy["pattern"]


def _missing_type(copy: Mapping[str, object], schema: Mapping[str, object]) -> str | list[str] | None:
    """Return the type that a schema means which names none; None where nothing tells."""
    if "properties" in schema:
        return "object"
    if "const" in copy:
        return _type_of([copy["const"]])
    enum = copy.get("enum")
    return _type_of(enum) if isinstance(enum, LISTS) else None


def _type_of(values: Sequence[object]) -> str | list[str] | None:
    found = {_JSON_TYPES.get(type(value)) for value in values}
    names = sorted(name for name in found if name is not None)
    if len(names) < len(found) or not names:
        return None
    return names[0] if len(names) == 1 else names
