"""What the checker says of captures: one line a planned slot, and the sums.

Every layer has its own denominator, and none is promoted to the next: a reply that was admitted is not a right one, one
that agrees with the author's label is not a reviewed one. A rate is a decimal as text with six places; null: there is
nothing that it could be a rate of.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from casebound.contracts.base import Artifact, CamelContract, Digest, SafeName
from casebound.contracts.findings import Finding

SlotState = Literal[
    "unattempted",
    "call_failure",
    "cancelled",
    "parse_failure",
    "schema_rejection",
    "binding_rejection",
    "admitted",
]


class CheckedSlot(CamelContract, Artifact):
    """A planned slot as the machine saw it.

    Attributes:
        state: the layer that the slot reached.
        code: of the failure or the first finding; None where there is none.
        findings: why an output was not admitted.
        assessment: what an admitted output says; else None.
        author_reference: the author's label.
        agrees_with_author: None where nothing was admitted. It scores no rationale.
        rationale_review: a person's work; nothing here sets another value.
    """

    format: Literal["casebound-bench-checked-slot/v1"] = "casebound-bench-checked-slot/v1"
    case_id: SafeName
    repeat: int
    state: SlotState
    code: str | None = None
    findings: tuple[Finding, ...] = ()
    assessment: str | None = None
    author_reference: str
    agrees_with_author: bool | None = None
    rationale_review: Literal["pending"] = "pending"


class CheckSummary(CamelContract, Artifact):
    """The counts of all planned slots.

    Attributes:
        checker: the version of what is counted, and over what.
        captures: digest of `captures.json`.
        cases_of_split, planned_cases: where they differ, the run is a selection.
        planned, recorded, unattempted: slots; recorded and unattempted make planned.
        call_failures, cancelled, output_count: the recorded slots.
        parse_failures, schema_rejections, binding_rejections, admitted: the outputs.
        parse_failure_rate: of the outputs.
        structure_rejection_rate: schema rejections, of the outputs that could be parsed.
        author_reference_compared, author_reference_matches: of the admitted outputs.
        agreement_by_reference: author's label → what the admitted outputs say → how many. No two labels are pooled.
        failure_codes: of failed calls and of outputs that were not admitted, by the first finding.
        records_with_cost: recorded slots whose cost was reported.
        reported_cost_usd: their sum; None where nobody reported any.
        total_cost_usd: the same, only where the whole plan is recorded and every record reports its cost.
        records_with_duration, reported_duration_ms: likewise, without a total.
        semantic_review, quality_conclusion: a person's work; nothing here sets another value.
        limitations: what these counts do not say.
    """

    format: Literal["casebound-bench-check-summary/v1"] = "casebound-bench-check-summary/v1"
    checker: str
    measurement_id: Digest
    captures: Digest
    split: str
    repeats: int
    cases_of_split: int
    planned_cases: int
    planned: int
    recorded: int
    unattempted: int
    call_failures: int
    cancelled: int
    output_count: int
    parse_failures: int
    parse_failure_rate: str | None
    schema_rejections: int
    structure_rejection_rate: str | None
    binding_rejections: int
    admitted: int
    author_reference_compared: int
    author_reference_matches: int
    agreement_by_reference: dict[str, dict[str, int]]
    failure_codes: dict[str, int]
    records_with_cost: int
    reported_cost_usd: str | None = Field(alias="reportedCostUSD")
    total_cost_usd: str | None = Field(alias="totalCostUSD")
    records_with_duration: int
    reported_duration_ms: int | None
    semantic_review: Literal["pending"] = "pending"
    quality_conclusion: Literal["not_evaluated"] = "not_evaluated"
    limitations: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1 for an unattempted slot, or a record that was not admitted; a disagreement alone fails nothing."""
        return 0 if self.admitted == self.planned else 1
