"""A quick yes: does a value fit a schema, for the few keywords that protocols use.

Judging is done for every reply, and again by every `verify`; nearly always the reply fits. So the common answer is
found by walking value and schema together. Anything else (a keyword that is not listed here, or a value that does not
fit) is left to `jsonschema`, which also says why. A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: Mapping[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def fits(value: object, schema: object, root: object = None) -> bool:
    """Tell whether `value` surely satisfies `schema`; False means no, or that it takes `jsonschema` to tell.

    Args:
        value: parsed JSON.
        schema: what it has to satisfy.
        root: the schema that `schema` is a part of, where its `$defs` are; None: `schema` itself.
    """
    if not isinstance(schema, dict):
        return schema is True
    root = schema if root is None else root
    for keyword, rule in schema.items():
        check = _KEYWORDS.get(keyword)
        if check is None or not check(value, rule, schema, root):
            return False
    return True


def _ref(value: object, name: Any, _: object, root: Any) -> bool:  # noqa: ANN401  # any JSON
    start, _, key = str(name).rpartition("/")
    return start == "#/$defs" and fits(value, root.get("$defs", {}).get(key), root)


def _type(value: object, names: Any, schema: object, root: object) -> bool:  # noqa: ANN401  # any JSON
    if isinstance(names, str):
        return names in _TYPES and _TYPES[names](value)
    return any(_type(value, name, schema, root) for name in names)


def _equals(value: object, constant: object) -> bool:
    # In JSON true is not 1; only scalars of one type are told apart quickly.
    return type(value) is type(constant) and not isinstance(value, dict | list) and value == constant


def _enum(value: object, constants: Any, _: object, __: object) -> bool:  # noqa: ANN401  # any JSON
    if type(value) is str:
        return value in constants  # a string equals nothing but itself
    return any(_equals(value, constant) for constant in constants)


def _properties(value: object, rules: Mapping[str, object], _: object, root: object) -> bool:
    if isinstance(value, dict):
        for key, rule in rules.items():
            if key in value and not fits(value[key], rule, root):
                return False
    return True


def _additional(value: object, rule: object, schema: Mapping[str, Any], root: object) -> bool:
    if not isinstance(value, dict) or rule is True:
        return True
    unknown = value.keys() - schema.get("properties", {}).keys()
    return all(fits(value[key], rule, root) for key in unknown)


def _items(value: object, rule: object, schema: Mapping[str, Any], root: object) -> bool:
    if isinstance(value, list):
        for item in value[len(schema.get("prefixItems", ())) :]:
            if not fits(item, rule, root):
                return False
    return True


def _prefix(value: object, rules: Any, _: object, root: object) -> bool:  # noqa: ANN401  # any JSON
    return not isinstance(value, list) or all(fits(item, rule, root) for item, rule in zip(value, rules, strict=False))


def _contains(value: object, rule: object, _: object, root: object) -> bool:
    return not isinstance(value, list) or any(fits(item, rule, root) for item in value)


_KEYWORDS: Mapping[str, Callable[[Any, Any, Any, Any], bool]] = {
    "$defs": lambda *_: True,
    "$ref": _ref,
    "type": _type,
    "const": lambda value, constant, *_: _equals(value, constant),
    "enum": _enum,
    "properties": _properties,
    "required": lambda value, keys, *_: not isinstance(value, dict) or all(key in value for key in keys),
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "contains": _contains,
    "minItems": lambda value, least, *_: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda value, most, *_: not isinstance(value, list) or len(value) <= most,
    "minLength": lambda value, least, *_: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda value, most, *_: not isinstance(value, str) or len(value) <= most,
    "pattern": lambda value, pattern, *_: not isinstance(value, str) or re.search(pattern, value) is not None,
    "anyOf": lambda value, schemas, _, root: any(fits(value, schema, root) for schema in schemas),
    "allOf": lambda value, schemas, _, root: all(fits(value, schema, root) for schema in schemas),
    "description": lambda *_: True,
    "title": lambda *_: True,
}
