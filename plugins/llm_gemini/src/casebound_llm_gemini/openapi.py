"""The same copy in the older form that `responseSchema` takes: a part of OpenAPI's schemas.

Rules:
- Types are in upper case; null is no type beside others but `nullable`; there is no `$ref`, so definitions are put in
  where they are named.
- What this form cannot say is left out and checked afterwards: that other properties are forbidden (a server that does
  not know `additionalProperties` refuses the request), which kind of item stands at which place, which numbers of a
  range are meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from casebound.llm.schema_copy import UnfitSchema, as_list

from casebound_llm_gemini.schema import REFERENCE, json_schema_copy, refusing_unfit, types_of

_ALWAYS = ("title", "description")
_OF_TYPE = {
    "array": ("minItems", "maxItems"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "object": ("propertyOrdering", "required"),
    "string": ("enum",),
}


@refusing_unfit
def openapi_copy(schema: Mapping[str, object]) -> dict[str, object]:
    """Return the copy of `schema` to send; the original is not touched.

    Raises:
        ProviderError: `LLM_REQUEST`, naming what does not fit and its place.
    """
    copy = json_schema_copy(schema)
    definitions = copy.get("$defs")
    return _Translator(definitions if isinstance(definitions, Mapping) else {}).translated(copy, ())


class _Translator:
    """Translates a copy, subschema by subschema; `inside` are the definitions around it."""

    def __init__(self, definitions: Mapping[str, object]) -> None:
        self._definitions = definitions

    def translated(self, schema: object, inside: tuple[str, ...]) -> dict[str, object]:
        node: Mapping[str, object] = schema if isinstance(schema, Mapping) else {}
        if "$ref" in node:
            name = str(node["$ref"]).removeprefix(REFERENCE)
            if name in inside:
                raise UnfitSchema(
                    "a definition that holds itself, which responseSchema does not know", f"/$defs/{name}"
                )
            return self.translated(self._definitions[name], (*inside, name))
        kinds = [self._typed(node, kind, inside) for kind in types_of(node)]
        kinds += [self.translated(branch, inside) for branch in as_list(node.get("anyOf"))]
        result: dict[str, object] = {key: node[key] for key in _ALWAYS if key in node}
        return {**result, **_united(kinds)}

    def _typed(self, node: Mapping[str, object], kind: str, inside: tuple[str, ...]) -> dict[str, object]:
        result: dict[str, object] = {"type": kind.upper()}
        result |= {key: node[key] for key in _OF_TYPE.get(kind, ()) if key in node}
        if kind == "string" and node.get("format") == "date-time":
            result["format"] = "date-time"
        elif kind in {"integer", "number"} and "enum" in node:
            numbers = [value for value in as_list(node["enum"]) if isinstance(value, int | float)]
            result |= {"minimum": min(numbers), "maximum": max(numbers)}
        elif kind == "object":
            properties = node.get("properties")
            named = properties if isinstance(properties, Mapping) else {}
            if not named:
                raise UnfitSchema("an object whose properties are not named, which responseSchema does not know", "")
            result["properties"] = {name: self.translated(part, inside) for name, part in named.items()}
        elif kind == "array":
            parts = [*as_list(node.get("prefixItems")), *([node["items"]] if "items" in node else [])]
            result["items"] = _united([self.translated(part, inside) for part in parts])
        return result


def _united(kinds: list[dict[str, object]]) -> dict[str, object]:
    """Return the schema of any of `kinds`; null among them makes it nullable."""
    distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
    others = [kind for kind in distinct if kind != {"type": "NULL"}]
    if not others:
        return {"type": "NULL"}
    united: dict[str, object] = others[0] if len(others) == 1 else {"anyOf": others}
    return united if len(others) == len(distinct) else {**united, "nullable": True}
