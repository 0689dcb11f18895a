"""From an accepted assessment reply to `assessment.json`: which capture and which mentions each resolution cites."""

from __future__ import annotations

from casebound.canonical import digest_of
from casebound.contracts.assessment import Assessment, AssessmentGrounding
from casebound.contracts.stage_facts import StageFacts

NOTHING_SEARCHED: dict[str, object] = {"resolutions": []}


def derive_assessment(facts: StageFacts, reply: dict[str, object]) -> Assessment:
    """Return the assessment: the reply verbatim, and what each resolution rests on."""
    assert facts.candidates is not None  # noqa: S101  # candidates were looked up before
    assert facts.plan is not None  # noqa: S101  # and planned before that
    groundings = []
    for listed, grounding, resolution in zip(
        facts.candidates.searches,
        facts.plan.groundings,
        reply["resolutions"],  # type: ignore[call-overload]  # its schema was checked
        strict=True,
    ):
        cited = set(resolution["source_ids"])
        mentions = tuple(mention for mention in grounding.mentions if mention.source in cited)
        groundings.append(
            AssessmentGrounding(search_index=listed.search_index, capture=listed.alias, mentions=mentions)
        )
    return Assessment(
        candidates_digest=digest_of(facts.candidates.to_bytes()), reply=reply, groundings=tuple(groundings)
    )
