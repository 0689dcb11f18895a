"""Parts: pieces of response schemas (JSON Schema, Draft 2020-12)."""

from __future__ import annotations

from collections.abc import Sequence

Schema = dict[str, object]


def closed_object_v1(properties: dict[str, Schema]) -> Schema:
    """Return an object schema in which every property is required and no other is allowed."""
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def text_v1() -> Schema:
    """Return the schema of a nonempty text."""
    return {"type": "string", "minLength": 1}


def source_ids_v1() -> Schema:
    """Return the schema of a nonempty list of aliases."""
    return {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[SEPFVNDQ][0-9]{4,}$"}}


def citing_v1(*required: Sequence[str]) -> Schema:
    """Return the schema of a list of aliases that holds at least one of each group in `required`."""
    schema = source_ids_v1()
    schema["allOf"] = [
        {"contains": {"const": group[0]} if len(group) == 1 else {"enum": list(group)}} for group in required
    ]
    return schema


def statement_v1(**labels: str) -> Schema:
    """Return the schema of a statement: text, source ids, and constant labels."""
    constants: dict[str, Schema] = {name: {"type": "string", "const": value} for name, value in labels.items()}
    return closed_object_v1({"text": text_v1(), "source_ids": source_ids_v1(), **constants})


def statements_v1(**labels: str) -> Schema:
    """Return the schema of a list of statements."""
    return {"type": "array", "items": statement_v1(**labels)}


def optional_v1(schema: Schema) -> Schema:
    """Return the schema of `schema` or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def named_v1(name: str) -> Schema:
    """Return a reference to the schema that stands under `name` in the root's `$defs`."""
    return {"$ref": f"#/$defs/{name}"}
