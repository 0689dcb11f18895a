"""From a plan to captures and `candidates.json`. The whole plan was validated before the first query runs."""

from __future__ import annotations

from collections.abc import Sequence

from casebound.canonical import digest_of
from casebound.contracts.aliases import alias
from casebound.contracts.capture import Capture, CatalogInput, TypedCell
from casebound.contracts.plan import Candidate, CandidateList, Candidates, Plan, ResolutionInput


def queries(plan: Plan, frozen: ResolutionInput) -> list[tuple[CatalogInput, str]]:
    """Return catalog and term of each search, in order."""
    catalogs = {catalog.name: catalog for catalog in frozen.catalogs}
    return [(catalogs[str(search["catalog"])], str(search["term"])) for search in plan.searches]


def derive_candidates(plan: Plan, captures: Sequence[Capture]) -> Candidates:
    """Return the index search → capture → rows; `captures` has one a search."""
    return Candidates(
        plan_digest=digest_of(plan.to_bytes()),
        searches=tuple(
            CandidateList(
                search_index=index,
                alias=alias("V", index + 1),
                capture=digest_of(capture.to_bytes()),
                truncated=capture.truncated,
                candidates=tuple(_candidates(capture)),
            )
            for index, capture in enumerate(captures)
        ),
    )


def _candidates(capture: Capture) -> list[Candidate]:
    catalog = capture.catalog
    place = {name: number for number, name in enumerate(capture.columns)}
    found = []
    for number, row in enumerate(capture.rows):
        locale = row[place[catalog.locale_column]] if catalog.locale_column else None
        if isinstance(locale, TypedCell):
            locale = locale.v
        found.append(
            Candidate(
                type=catalog.entity_type,
                id=str(row[place[catalog.id_column]]),
                name=str(row[place[catalog.name_column]]),
                locale=locale,
                row=f"/rows/{number}",
            )
        )
    return found
