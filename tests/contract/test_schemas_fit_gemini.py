"""Every schema that core's protocols make can be sent to Gemini, in either of its two fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.testing.goldens import golden_versions
from casebound_llm_gemini.openapi import openapi_copy
from casebound_llm_gemini.schema import json_schema_copy
from jsonschema import Draft202012Validator

VERSIONS = golden_versions(Path(__file__).parents[1] / "golden" / "protocols")
CASES = {
    f"{version.stage}-v{version.number}-{path.partition('/')[0]}": (version.files(), path)
    for version in VERSIONS
    for path in version.files()
    if path.endswith("/schema.json")
}
NOT_TAKEN = ("const", "contains", "pattern", "minLength", "allOf", "oneOf")


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_schema_of_ours_keeps_its_shape_and_loses_what_gemini_does_not_know(name):
    files, path = CASES[name]
    schema = json.loads(files[path])
    newer, older = json_schema_copy(schema), openapi_copy(schema)
    for copy in (newer, older):
        assert copy["properties"].keys() == schema["properties"].keys()
        assert copy["propertyOrdering"][: len(schema["required"])] == schema["required"]
        assert not [word for word in NOT_TAKEN if f'"{word}":' in json.dumps(copy)]
    assert "$ref" not in json.dumps(older)
    Draft202012Validator.check_schema(newer)
