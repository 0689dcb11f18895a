"""What a protocol derives its context from: the artifacts of the steps before, as far as there are any."""

from __future__ import annotations

from dataclasses import dataclass

from casebound.contracts.assessment import Assessment
from casebound.contracts.capture import Capture, Facts
from casebound.contracts.case import Case
from casebound.contracts.plan import Candidates, Plan, ResolutionInput


@dataclass(frozen=True, slots=True)
class StageFacts:
    """The accepted artifacts that a stage may read; later ones are None while they do not exist.

    Attributes:
        captures: one a search, in order (equal queries repeat the same capture).
    """

    case: Case
    facts: Facts
    resolution: ResolutionInput | None = None
    plan: Plan | None = None
    captures: tuple[Capture, ...] = ()
    candidates: Candidates | None = None
    assessment: Assessment | None = None
