"""The benchmark of entity links passes the suite of benchmarks."""

import pytest
from casebound.testing.conformance.benchmark import BenchmarkConformance


@pytest.mark.spec("B-020", "B-021", "B-013", "B-014")
class TestEntityLink(BenchmarkConformance):
    name = "entity-link"

    def reply(self, given, assessment):
        return {
            "version": "entity-link-suggestion/v1",
            "assessment": assessment,
            "rationale": "What the mentions say.",
            **{
                side: {
                    "entityId": given[side]["entityId"],
                    "mentionIds": [mention["mentionId"] for mention in given[side]["mentions"]],
                }
                for side in ("left", "right")
            },
        }
