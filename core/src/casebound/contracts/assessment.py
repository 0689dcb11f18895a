"""The accepted assessment: what the model decided about the candidates, verbatim."""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, Contract, Digest
from casebound.contracts.case import Mention

ROLE_BASIS = "model_contextual_selection_not_causation"


class AssessmentGrounding(Contract):
    """What a resolution cites: its own capture, and which mentions of its search."""

    search_index: int
    capture: str
    mentions: tuple[Mention, ...]


class Assessment(Artifact):
    """`assessment.json`: one resolution a search, in order; empty where nothing was searched."""

    format: Literal["casebound-assessment/v1"] = "casebound-assessment/v1"
    candidates_digest: Digest
    reply: dict[str, object]
    groundings: tuple[AssessmentGrounding, ...]

    @property
    def resolutions(self) -> list[dict[str, object]]:
        """The resolutions, in order of their searches."""
        return self.reply["resolutions"]  # type: ignore[return-value]  # its schema was checked
