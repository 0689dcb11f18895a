"""From an accepted plan reply to `plan.json`: where each term stands in the sources that it cites."""

from __future__ import annotations

from casebound.canonical import digest_of
from casebound.contracts.capture import Facts
from casebound.contracts.case import Case, Mention
from casebound.contracts.plan import Grounding, Plan
from casebound.contracts.stage_facts import StageFacts

# A term of one letter stands in a long report many thousand times; this many places per source tell enough.
MOST_MENTIONS_PER_SOURCE = 100


def derive_plan(facts: StageFacts, reply: dict[str, object]) -> Plan:
    """Return the plan: the reply verbatim, and the mentions of each search's term."""
    assert facts.resolution is not None  # noqa: S101  # a plan exists only where resolution is on
    searches: list[dict[str, object]] = reply["searches"]  # type: ignore[assignment]  # its schema was checked
    return Plan(
        input_digest=digest_of(facts.resolution.to_bytes()),
        reply=reply,
        groundings=tuple(
            Grounding(search_index=index, mentions=tuple(_mentions(facts.case, facts.facts, search)))
            for index, search in enumerate(searches)
        ),
    )


def _mentions(case: Case, project: Facts, search: dict[str, object]) -> list[Mention]:
    term, cited = str(search["term"]), dict.fromkeys(map(str, search["source_ids"]))  # type: ignore[call-overload]  # a list of strings
    found: list[Mention] = []
    for source in case.sources:
        if source.id in cited and source.kind != "markup":
            found += [
                Mention(
                    source=source.id,
                    field=source.field,
                    start=source.start + place,
                    end=source.start + place + len(term),
                )
                for place in _places(term, case.text_of(source))
            ]
    for description in project.sources:
        if description.id in cited:
            found += [
                Mention(source=description.id, field=None, start=place, end=place + len(term))
                for place in _places(term, description.text)
            ]
    return found


def _places(term: str, text: str) -> list[int]:
    places: list[int] = []
    start = text.find(term)
    while start >= 0 and len(places) < MOST_MENTIONS_PER_SOURCE:
        places.append(start)
        start = text.find(term, start + len(term))
    return places
