"""Two runs of one benchmark side by side: per slot, and in sums. It ranks nothing and concludes nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from casebound.contracts.base import Artifact, CamelContract, Digest, SafeName, Time
from casebound.contracts.bench_checks import CheckSummary, SlotState
from casebound.contracts.model_call import ResponseFormat

ShareName = Literal["parseFailures", "structureRejections", "admitted", "authorReferenceMatches"]


class ComparedRun(CamelContract):
    """One of the two runs: what was asked, and the checker's sums.

    Attributes:
        served_models: what servers said that they were, sorted; empty where nobody said it.
    """

    measurement_id: Digest
    captures: Digest
    plan_id: Digest | None
    started_at: Time
    executor: str
    model: str | None
    response_format: ResponseFormat
    served_models: tuple[str, ...]
    summary: CheckSummary


class SlotSide(CamelContract):
    """What became of a slot in one run."""

    state: SlotState
    code: str | None
    assessment: str | None
    agrees_with_author: bool | None


class ComparedSlot(CamelContract):
    """A planned slot in both runs, whatever became of it."""

    case_id: SafeName
    repeat: int
    author_reference: str
    a: SlotSide
    b: SlotSide


class Share(CamelContract):
    """A count out of another, with the rate and its exact 95 % interval.

    Attributes:
        of: the denominator; both stand here because a rate without them says nothing.
        rate: null where there is nothing that it could be a rate of.
        interval: lower and upper limit; null where the comparison's `interval_method` says why there is none.
    """

    count: int
    of: int
    rate: str | None
    interval: tuple[str, str] | None


class ComparedShare(CamelContract):
    """One share in both runs."""

    name: ShareName
    a: Share
    b: Share


class Agreement(CamelContract):
    """The slots that both runs admitted: how they stand to the author's labels, and to each other.

    Attributes:
        both_admitted: the denominator of the other counts.
        same_assessment: both say the same, right or wrong.
    """

    both_admitted: int
    same_assessment: int
    both_match_author: int
    only_a_matches_author: int
    only_b_matches_author: int
    neither_matches_author: int


class Comparison(CamelContract, Artifact):
    """What `bench compare` reports.

    Attributes:
        kind: `one_measurement`: same requests but for who answers. `complete_requests`: prompt, schema or output mode
            differ too, so what differs in the results is no isolated effect of any of them.
        differs: everything that is known to differ between the runs.
        slots: every planned slot, in the order of the plan; none is left out.
        shares: the sums as rates, each with its own denominator.
        interval_method: how intervals were made, or why there are none.
        limitations: what the comparison does not establish.
    """

    format: Literal["casebound-bench-comparison/v1"] = "casebound-bench-comparison/v1"
    kind: Literal["one_measurement", "complete_requests"]
    differs: tuple[str, ...]
    split: str
    case_ids: tuple[SafeName, ...] = Field(min_length=1)
    repeats: int
    a: ComparedRun
    b: ComparedRun
    slots: tuple[ComparedSlot, ...]
    shares: tuple[ComparedShare, ...]
    agreement: Agreement
    interval_method: str
    limitations: tuple[str, ...]
