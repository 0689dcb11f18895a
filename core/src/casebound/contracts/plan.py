"""The frozen input of a resolution, its accepted plan and the index of its candidates."""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, Contract, Digest
from casebound.contracts.capture import Binding, CatalogInput, QueryLimits
from casebound.contracts.case import Mention


class Offered(Contract):
    """A distribution and its version, as frozen inputs name who took part."""

    distribution: str
    version: str


class FrozenProtocol(Contract):
    """The prompt protocol of one stage, as a fresh case froze it."""

    stage: str
    version: int
    prompt_id: str
    offered_by: Offered


class FrozenRule(Contract):
    """A validator, as a fresh case froze it."""

    code: str
    revision: int
    offered_by: Offered


class ResolutionLimits(Contract):
    """The operator's bounds: searches a plan, candidates a search, invalid replies a stage."""

    max_searches: int
    max_candidates: int
    max_invalid_responses: int


class ResolutionInput(Artifact):
    """`entity-resolution/input.json`: all that a resolution may use, frozen before the first call.

    Attributes:
        protocol_version: the resolution protocol; selects plan and assessment of that number.
        interpretation_protocol_version: a counter of its own.
        protocols: plan, assessment, interpretation, with who offers them.
    """

    format: Literal["casebound-resolution-input/v1"] = "casebound-resolution-input/v1"
    case_digest: Digest
    facts_digest: Digest
    protocol_version: int
    interpretation_protocol_version: int
    protocols: tuple[FrozenProtocol, ...]
    catalogs: tuple[CatalogInput, ...]
    roles: tuple[str, ...]
    limits: ResolutionLimits
    query_limits: QueryLimits
    binding: Binding


class Grounding(Contract):
    """Where the term of a search stands in the sources that the reply cites for it."""

    search_index: int
    mentions: tuple[Mention, ...]


class Plan(Artifact):
    """`plan.json`: the model's reply, verbatim, beside what the program derived from it."""

    format: Literal["casebound-plan/v1"] = "casebound-plan/v1"
    input_digest: Digest
    reply: dict[str, object]
    groundings: tuple[Grounding, ...]

    @property
    def searches(self) -> list[dict[str, object]]:
        """The proposed searches, in order."""
        return self.reply["searches"]  # type: ignore[return-value]  # its schema was checked


class Candidate(Contract):
    """A row that a search returned; `row` is the JSON pointer into the capture."""

    type: str
    id: str
    name: str
    locale: str | None
    row: str


class CandidateList(Contract):
    """The candidates of one search."""

    search_index: int
    alias: str
    capture: Digest
    truncated: bool
    candidates: tuple[Candidate, ...]


class Candidates(Artifact):
    """`candidates.json`: search → capture → rows."""

    format: Literal["casebound-candidates/v1"] = "casebound-candidates/v1"
    plan_digest: Digest
    searches: tuple[CandidateList, ...]
