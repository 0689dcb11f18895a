"""What the corpora of all benchmarks have in common: cases with frozen references, in splits.

A benchmark's own corpus is a subclass that pins `format` and `guide`, and narrows `cases` to cases whose input it
knows. Only the input of a case may reach a model: it is a value of its own, which knows nothing of its case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from casebound.contracts.base import Artifact, CamelContract, SafeName

Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
Aspect = Literal["side", "scope", "level", "evidence", "unknowns", "invention"]


class CaseInput(CamelContract):
    """What a case gives to the model, and nothing else; a benchmark says what is in it."""

    def selected(self) -> tuple[str, ...]:
        """Return the source texts that were selected as evidence: they may stand in one split only."""
        raise NotImplementedError

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each broken binding as (JSON pointer inside the input, one clause that says what is wrong)."""
        raise NotImplementedError


class SemanticCheck(CamelContract):
    """One thing that a rationale must do, frozen before any output.

    Attributes:
        check_id: unique in its case.
        aspect: which of the six questions of a review it belongs to: the right side, the source's scope, the level of
            reference, the evidence of identity, what stays unknown, that nothing is invented.
        text: the check, as a reviewer reads it.
    """

    check_id: SafeName
    aspect: Aspect
    text: Text


class CorpusCase(CamelContract):
    """One case with its reference.

    Attributes:
        case_id: unique in the corpus.
        split: one of the corpus's splits.
        project_id, conversation_id: the groups that it belongs to; a group stays within one split.
        tags: the phenomena that it covers.
        input: what the model is given.
        expected_assessment: the reference, one of the corpus's assessments.
        reference_rationale: why, and what stays open.
        semantic_checks: what a person looks for in a rationale.
    """

    case_id: SafeName
    split: str
    project_id: SafeName
    conversation_id: SafeName
    tags: tuple[str, ...] = Field(min_length=1)
    input: CaseInput
    expected_assessment: str
    reference_rationale: Text
    semantic_checks: tuple[SemanticCheck, ...] = Field(min_length=1)


class Corpus(CamelContract, Artifact):
    """A corpus file. It is written for people to read, so its raw bytes are what is bound, not a canonical form.

    Attributes:
        SPLITS, ASSESSMENTS: the names that cases may use; each split must have each assessment.
        guide: the version of the guide that the references follow.
        authors: who wrote it; none of them can be its independent reviewer.
        provenance: where the text comes from.
        limitations: what the corpus does not show.
        phenomena: each tag with what it stands for; every one is covered.
        cases: in the order of the file.
    """

    SPLITS: ClassVar[tuple[str, ...]]
    ASSESSMENTS: ClassVar[tuple[str, ...]]

    guide: str
    authors: tuple[SafeName, ...] = Field(min_length=1)
    provenance: Text
    limitations: tuple[Text, ...] = Field(min_length=1)
    phenomena: dict[str, Text]
    cases: tuple[CorpusCase, ...] = Field(min_length=1)

    def in_split(self, split: str) -> tuple[CorpusCase, ...]:
        """Return the cases of one split, in order."""
        return tuple(case for case in self.cases if case.split == split)
