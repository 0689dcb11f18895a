"""Every schema that core's protocols make can be sent to a server that takes OpenAI's strict subset only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.llm.strict_schema import sending_copy
from casebound.testing.goldens import golden_versions

VERSIONS = golden_versions(Path(__file__).parents[1] / "golden" / "protocols")
SCHEMAS = {
    f"{version.stage}-v{version.number}-{path.partition('/')[0]}": data
    for version in VERSIONS
    for path, data in version.files().items()
    if path.endswith("/schema.json")
}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_of_ours_is_sent_and_keeps_its_shape(name):
    schema = json.loads(SCHEMAS[name])
    copy = sending_copy(schema)
    assert copy["properties"].keys() == schema["properties"].keys()
    assert "contains" not in json.dumps(copy)
