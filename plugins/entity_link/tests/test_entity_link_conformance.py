"""The protocol and its rules pass the suites; what the published version makes of fixed pairs never changes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from casebound.canonical import canonical_bytes, digest_of
from casebound.host import build_host
from casebound.testing.conformance.protocol import HOSTILE, ProtocolConformance
from casebound.testing.conformance.validator import Judged, ValidatorConformance
from casebound_entity_link.protocol_v1 import PROTOCOL
from casebound_entity_link.rules import RULES

GOLDEN = Path(__file__).parent / "golden" / "v1"
PAIRS = {path.stem: json.loads(path.read_bytes()) for path in sorted((GOLDEN / "inputs").glob("*.json"))}


class TestProposal1(ProtocolConformance):
    where = "casebound_entity_link.protocol_v1:PROTOCOL"
    situations = tuple(PAIRS)

    @pytest.fixture
    def host(self):
        return build_host(["entity-link"])

    @pytest.fixture
    def facts(self):
        assert HOSTILE in PAIRS
        return copy.deepcopy(PAIRS)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_published_version_makes_the_same_bytes(name):
    context = PROTOCOL.context(PAIRS[name])
    prompt = PROTOCOL.request(context, None)
    made = {
        "context": digest_of(canonical_bytes(context)),
        "system": digest_of(prompt.system.encode()),
        "user": digest_of(canonical_bytes(prompt.user)),
        "schema": digest_of(canonical_bytes(PROTOCOL.response_schema(context))),
    }
    assert made == json.loads((GOLDEN / "digests.json").read_bytes())[name]


# --- the rules ------------------------------------------------------------------------------------------------------

CONTEXT = PROTOCOL.context(PAIRS["selected"])


def reply(**sides):
    """A reply about the selected pair; each side as (entity id, mention ids)."""
    cited = {side: (CONTEXT[side]["entityId"], [CONTEXT[side]["mentions"][0]["mentionId"]]) for side in CONTEXT}
    return {side: {"entityId": name, "mentionIds": ids} for side, (name, ids) in {**cited, **sides}.items()}


class LinkRule(ValidatorConformance):
    place: int
    broken: tuple[dict, str]

    @pytest.fixture
    def validator(self):
        return RULES[self.place]

    @pytest.fixture
    def holding(self):
        return [Judged(reply(), CONTEXT)]

    @pytest.fixture
    def breaking(self):
        sides, path = self.broken
        return [Judged(reply(**sides), CONTEXT, path)]


FIRST = CONTEXT["left"]["mentions"][0]["mentionId"]


class TestEntity(LinkRule):
    place = 0
    broken = ({"left": (CONTEXT["right"]["entityId"], [FIRST])}, "/left/entityId")


class TestUnknownMention(LinkRule):
    place = 1
    broken = ({"right": (CONTEXT["right"]["entityId"], [FIRST])}, "/right/mentionIds/0")


class TestDuplicateMention(LinkRule):
    place = 2
    broken = ({"left": (CONTEXT["left"]["entityId"], [FIRST, FIRST])}, "/left/mentionIds/1")
