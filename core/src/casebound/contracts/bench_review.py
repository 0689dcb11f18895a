"""The review of one output by a person, and what all reviews of a run come to.

A form is a record of its own: it binds the output that it is about, and nothing that it says changes a count of the
checker, a reference or a receipt. A blank is null; only a person fills one in.
"""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, CamelContract, Digest, SafeName, Time
from casebound.contracts.bench_checks import CheckSummary
from casebound.contracts.bench_receipts import Attested, Name, Readiness, Words

Verdict = Literal["holds", "issue"]
Standing = Literal["strictly_accepted", "exploratory", "not_ready"]


class AspectReview(CamelContract):
    """One of the six questions about a rationale, against the selected evidence; an issue has a note."""

    question: str
    verdict: Verdict | None
    note: Words | None


class SemanticCheckReview(CamelContract):
    """One frozen check of the case; `text` is the corpus's."""

    check_id: SafeName
    text: str
    verdict: Verdict | None
    note: Words | None


class Aspects(CamelContract):
    """The six questions, by the aspect of a frozen check."""

    side: AspectReview
    scope: AspectReview
    level: AspectReview
    evidence: AspectReview
    unknowns: AspectReview
    invention: AspectReview

    def all(self) -> tuple[AspectReview, ...]:
        """Return all six."""
        return (self.side, self.scope, self.level, self.evidence, self.unknowns, self.invention)


class OutputReview(CamelContract, Artifact):
    """A form: what a person finds in one admitted output.

    Attributes:
        captures: digest of `captures.json`.
        case_id, repeat: the slot.
        assessment: what the output says, as the checker read it.
        output: digest of the output's text as UTF-8.
        output_text: the text, as the reviewer reads it.
        review_kind, reviewer, reviewed_at, independence_attestation: the person's own words.
        aspects, checks: each to be answered.
        annotation_dispute: what the reviewer holds against the reference, after the output; it changes nothing in this
            run, and stays a limitation of it.
    """

    format: Literal["casebound-output-review/v1"] = "casebound-output-review/v1"
    measurement_id: Digest
    captures: Digest
    case_id: SafeName
    repeat: int
    assessment: str
    output: Digest
    output_text: str
    review_kind: Literal["independent-human"] | None
    reviewer: Name | None
    reviewed_at: Time | None
    independence_attestation: Attested | None
    aspects: Aspects
    checks: tuple[SemanticCheckReview, ...]
    annotation_dispute: Words | None


class AcceptanceCondition(CamelContract):
    """One line of the truth table.

    Attributes:
        name: which condition.
        holds: whether it does.
        found: one clause with the counts behind it.
    """

    name: str
    holds: bool
    found: str


class Acceptance(CamelContract, Artifact):
    """Strict acceptance of one run: the truth table, and what follows.

    Attributes:
        accepted: every condition holds.
        standing: `strictly_accepted`; else `exploratory` where the author's review permits that, else `not_ready`.
        readiness: what the receipts permit, beside and apart from everything else.
        checks: the counts, exactly as `bench check` gives them; no review changes one.
        limitations: what even an accepted run does not establish, and each dispute about a reference.
    """

    format: Literal["casebound-bench-acceptance/v1"] = "casebound-bench-acceptance/v1"
    conditions: tuple[AcceptanceCondition, ...]
    accepted: bool
    standing: Standing
    readiness: Readiness
    checks: CheckSummary
    limitations: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """0 where the run is accepted."""
        return 0 if self.accepted else 1
