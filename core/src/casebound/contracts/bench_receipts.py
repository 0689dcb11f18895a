"""Receipts: what people say that they reviewed in a frozen corpus before any output existed.

A receipt is filled in by hand, so its bytes are strict JSON and need not be canonical; a bundle keeps them as they are.
The two kinds are two formats: no field and no value turns the one into the other.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, StringConstraints

from casebound.contracts.base import Artifact, CamelContract, Digest, SafeName, Time

Words = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]


def _true(value: object) -> object:
    if value is not True:  # 1 equals it, and attests nothing
        raise ValueError("only true states this")
    return value


Attested = Annotated[Literal[True], BeforeValidator(_true)]


class Decision(CamelContract):
    """What a reviewer decided about one case: its reference, its rationale and its checks."""

    case_id: SafeName
    decision: Literal["approved", "changes_requested"]
    rationale: Words


class Dispute(CamelContract):
    """A question on which the reviewer and the corpus's author differed.

    Attributes:
        resolution: None as long as it is open.
        adjudicator: who resolved it, neither an author of the corpus nor the reviewer; None as long as it is open.
    """

    case_id: SafeName
    question: Words
    resolution: Words | None
    adjudicator: Name | None


class AuthorReview(CamelContract, Artifact):
    """The review by an author of the corpus."""

    SCHEMA_NAME: ClassVar[str] = "casebound-entity-author-review-v1"

    self_review_version: Literal["casebound-entity-author-review/v1"]
    measurement_id: Digest
    reviewer: Name
    reviewed_at: Time
    reviewed_before_outputs: Attested
    decisions: tuple[Decision, ...]


class IndependentReview(CamelContract, Artifact):
    """The review by a person who wrote no part of the corpus; a program is none."""

    SCHEMA_NAME: ClassVar[str] = "casebound-entity-annotation-review-v1"

    review_version: Literal["casebound-entity-annotation-review/v1"]
    measurement_id: Digest
    review_kind: Literal["independent-human"]
    reviewer: Name
    reviewed_at: Time
    reviewed_before_outputs: Attested
    independence_attestation: Attested
    decisions: tuple[Decision, ...]
    disputes: tuple[Dispute, ...]


class Readiness(CamelContract):
    """What the receipts permit. It says nothing of any output.

    Attributes:
        author_review: `pending` where there is no receipt.
        independent_review: likewise; missing evidence stays visible.
        exploratory_ready: development may go on; never to be called gold.
        gold_ready: both reviews are complete, and the second is attested by an independent person.
    """

    author_review: Literal["pending", "approved", "changes_requested"]
    independent_review: Literal["pending", "attested_independent_human", "changes_requested"]
    exploratory_ready: bool
    gold_ready: bool
