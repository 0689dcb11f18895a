"""A quick yes: does a value fit a schema, for the few keywords that protocols use.

Judging is done for every reply, and again by every `verify`; nearly always the reply fits. So the common answer is
found by walking value and schema together. Anything else (a keyword that is not listed here, or a value that does not
fit) is left to `jsonschema`, which also says why. A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Definitions: TypeAlias = Mapping[str | object, Any]

_MANY = 8  # alternatives, above which an index pays
_INDEXES = object()  # the key of the indexes among the definitions, which no schema can name

# What `parse_json` makes of each; a value of any other class is left to `jsonschema`.
_CLASSES: Mapping[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_NESTED = (dict, list)


def fits(value: object, schema: object) -> bool:
    """Tell whether `value` surely satisfies `schema`; False means no, or that it takes `jsonschema` to tell."""
    definitions = schema.get("$defs") if isinstance(schema, dict) else None
    known = definitions if isinstance(definitions, dict) else {}
    return _fits(value, schema, {**known, _INDEXES: {}})


def _fits(value: object, schema: object, definitions: Definitions) -> bool:
    if not isinstance(schema, dict):
        return schema is True
    for keyword, rule in schema.items():
        if keyword == "type" and isinstance(rule, str):  # stands nearly everywhere, and is the first to say no
            if type(value) is not _CLASSES.get(rule):
                return False
            continue
        check = _KEYWORDS.get(keyword)
        if check is None or not check(value, rule, schema, definitions):
            return False
    return True


# --- what a keyword says of a value; each is told the keyword's rule, the schema around it and the definitions -------


def _reference(value: object, target: object, _: object, definitions: Definitions) -> bool:
    """Follow a reference to a definition of the root; a definition may not lead back to itself without an end."""
    name = target.removeprefix("#/$defs/") if isinstance(target, str) else ""
    rule = definitions.get(name)
    return isinstance(rule, dict) and "$ref" not in rule and _fits(value, rule, definitions)


def _type(value: object, names: Any, _: object, __: object) -> bool:  # noqa: ANN401  # any JSON
    """Tell whether the value is of one of several types; that there is only one is seen before."""
    return any(type(value) is _CLASSES.get(name) for name in names)


def _equals(value: object, constant: object) -> bool:
    # In JSON true is not 1; only scalars of one type are told apart quickly.
    return type(value) is type(constant) and not isinstance(value, _NESTED) and value == constant


def _enum(value: object, constants: Any, _: object, __: object) -> bool:  # noqa: ANN401  # any JSON
    if type(value) is str:
        return value in constants  # a string equals nothing but itself
    return any(_equals(value, constant) for constant in constants)


def _properties(value: object, rules: Mapping[str, object], _: object, definitions: Definitions) -> bool:
    if isinstance(value, dict):
        for key, rule in rules.items():
            if key in value and not _fits(value[key], rule, definitions):
                return False
    return True


def _additional(value: object, rule: object, schema: Mapping[str, Any], definitions: Definitions) -> bool:
    if not isinstance(value, dict) or rule is True:
        return True
    known = schema.get("properties", {}).keys()
    return value.keys() <= known or all(_fits(value[key], rule, definitions) for key in value.keys() - known)


def _required(value: object, keys: Any, _: object, __: object) -> bool:  # noqa: ANN401  # any JSON
    if isinstance(value, dict):
        for key in keys:
            if key not in value:
                return False
    return True


def _items(value: object, rule: object, schema: Mapping[str, Any], definitions: Definitions) -> bool:
    if isinstance(value, list):
        for item in value[len(schema.get("prefixItems", ())) :]:
            if not _fits(item, rule, definitions):
                return False
    return True


def _prefix(value: object, rules: Any, _: object, definitions: Definitions) -> bool:  # noqa: ANN401  # any JSON
    if not isinstance(value, list):
        return True
    return all(_fits(item, rule, definitions) for item, rule in zip(value, rules, strict=False))


def _contains(value: object, rule: object, schema: Mapping[str, Any], definitions: Definitions) -> bool:
    return not isinstance(value, list) or any(_fits(item, rule, definitions) for item in value)


def _any_of(value: object, schemas: Any, _: object, definitions: Definitions) -> bool:  # noqa: ANN401  # any JSON
    if isinstance(value, dict) and len(schemas) > _MANY:
        schemas = _named_like(value, schemas, definitions)
    return any(_fits(value, schema, definitions) for schema in schemas)


def _named_like(value: Mapping[str, object], schemas: Any, definitions: Definitions) -> Any:  # noqa: ANN401  # any JSON
    """Return the alternatives whose constant `value` has, where a key has one in each of them; else all.

    The index is made once a judgment: a report that cites thousands of ids has as many alternatives and values.
    """
    indexes = definitions[_INDEXES]
    if id(schemas) not in indexes:
        indexes[id(schemas)] = _index(schemas)
    key, by_name = indexes[id(schemas)]
    name = value.get(key)
    return by_name.get(name, ()) if by_name and isinstance(name, str) else schemas


def _index(schemas: Any) -> tuple[str, Mapping[str, list[object]]]:  # noqa: ANN401  # any JSON
    first = schemas[0].get("properties") if isinstance(schemas[0], dict) else None
    for key in first if isinstance(first, dict) else ():
        by_name: dict[str, list[object]] = {}
        for schema in schemas:
            rules = schema.get("properties") if isinstance(schema, dict) else None
            rule = rules.get(key) if isinstance(rules, dict) else None
            name = rule.get("const") if isinstance(rule, dict) else None
            if not isinstance(name, str):
                break
            by_name.setdefault(name, []).append(schema)
        else:
            return key, by_name
    return "", {}


_KEYWORDS: Mapping[str, Callable[..., bool]] = {
    "type": _type,
    "const": lambda value, constant, _, __: _equals(value, constant),
    "enum": _enum,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "contains": _contains,
    "minItems": lambda value, least, _, __: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda value, most, _, __: not isinstance(value, list) or len(value) <= most,
    "minLength": lambda value, least, _, __: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda value, most, _, __: not isinstance(value, str) or len(value) <= most,
    "pattern": lambda value, pattern, _, __: not isinstance(value, str) or re.search(pattern, value) is not None,
    "anyOf": _any_of,
    "allOf": lambda value, schemas, _, definitions: all(_fits(value, schema, definitions) for schema in schemas),
    "$ref": _reference,
    "$defs": lambda *_: True,  # what stands there counts only where it is referred to
    "description": lambda *_: True,
    "title": lambda *_: True,
}
