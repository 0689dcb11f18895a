"""A live run of a benchmark: the plan that a person confirms, and what each slot of it leaves behind.

Rules:
- The plan's id is the digest of the plan's canonical JSON without the id; who confirms the id confirms all of it.
- A slot is reserved before it is called, and its evidence (the native reply, or how the call ended without one) is on
  disk before anything is derived from it. A reserved slot without evidence is unknown, for ever.
- What was not reported is absent, never zero.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.base import Artifact, CamelContract, Digest, SafeName, Time
from casebound.contracts.bench_captures import CodeName
from casebound.contracts.bench_checks import SlotState
from casebound.contracts.bench_identity import InstalledTree
from casebound.contracts.findings import Finding
from casebound.contracts.interpretation import StagePolicy

StopCause = Literal[
    "call_failure",
    "cancelled",
    "parse_failure",
    "schema_rejection",
    "binding_rejection",
    "tools_observed",
    "usage_unreported",
    "unknown_slot",
]


class PlannedSlot(CamelContract):
    """One call that may be made, once.

    Attributes:
        number: 1 …, in the order of calling; it names the slot's folder.
        case_id, repeat: the slot as captures name it.
        input: digest of the case's input.
        request: digest of the exact request, which stands beside the plan.
    """

    number: int = Field(ge=1)
    case_id: SafeName
    repeat: Literal[1]
    input: Digest
    request: Digest


class Executor(CamelContract):
    """Who is called, as it is installed.

    Attributes:
        offered_by: the distribution that brings the provider, with the digest of its files.
        settings: the provider's own, validated, as JSON text: they may hold fractions, which no canonical JSON does.
            They name where a secret is found and hold none.
        program: what the provider runs, as it says itself (version, digest …); empty where it runs nothing.
    """

    offered_by: InstalledTree
    settings: str
    program: dict[str, str]


class LivePlan(CamelContract, Artifact):
    """`plan.json`: everything that a live run is bound to, before anything is called.

    Attributes:
        benchmark, measurement_id: what is measured; the identity binds runtime, checker, dependencies, validators, the
            language's runtime, prompt and schema.
        bundle: where it stands; `manifest` is the digest of its manifest, and so of all its files.
        receipts: digests of its review receipts, the author's first.
        policy: who answers and within which bounds, as production freezes it: no retry, no correction, no fallback.
        executor: the provider behind the policy.
        split: the one that is asked for.
        slots: the calls, in order; as many as `max_calls`.
        max_calls: the most that this run may ever send.
        stops_on: what ends the run for good.
        limitations: what plan and run do not establish.
    """

    format: Literal["casebound-bench-live-plan/v1"] = "casebound-bench-live-plan/v1"
    plan_id: Digest
    benchmark: str
    measurement_id: Digest
    bundle: str
    manifest: Digest
    receipts: tuple[Digest, ...]
    policy: StagePolicy
    executor: Executor
    split: str
    slots: tuple[PlannedSlot, ...] = Field(min_length=1)
    max_calls: int
    stops_on: tuple[StopCause, ...]
    limitations: tuple[str, ...]

    def derived_id(self) -> str:
        """Return the id that this plan must have."""
        return digest_of(canonical_bytes({key: value for key, value in self.to_json().items() if key != "planId"}))


class Reservation(CamelContract, Artifact):
    """`reservation.json`: published exclusively before a call.

    Attributes:
        process: a random name of the run that made it, so that no two reservations are equal.
        at: before the call.
    """

    format: Literal["casebound-bench-reservation/v1"] = "casebound-bench-reservation/v1"
    plan_id: Digest
    case_id: SafeName
    repeat: int
    request: Digest
    process: str
    at: Time


class CallEnding(CamelContract, Artifact):
    """`ending.json`: how a call ended that brought no native reply.

    Attributes:
        kind: `failed`: the provider said so; `cancelled`: a person ended it. What was consumed until then is unknown.
        code, message: of the failure, without secrets.
    """

    format: Literal["casebound-bench-call-ending/v1"] = "casebound-bench-call-ending/v1"
    kind: Literal["failed", "cancelled"]
    code: CodeName | None
    message: str | None


class SlotOutcome(CamelContract, Artifact):
    """`outcome.json`: what the machine makes of a slot's record, and whether the run stops there.

    Attributes:
        record: digest of `record.json`.
        state: the layer that the slot reached; `code` and `findings` say why no further.
        stops: why the run ends here, None where it goes on.
    """

    format: Literal["casebound-bench-slot-outcome/v1"] = "casebound-bench-slot-outcome/v1"
    record: Digest
    state: SlotState
    code: str | None
    findings: tuple[Finding, ...]
    stops: StopCause | None


class SlotReport(CamelContract):
    """A slot as `check` finds it.

    Attributes:
        state: `planned`: never called. `unknown`: reserved without evidence. `under_way`: the same, while an execution
            runs. `answered`: evidence is there, and nothing derived from it yet. Else the outcome's.
    """

    number: int
    case_id: SafeName
    repeat: int
    state: Literal[SlotState, "planned", "unknown", "under_way", "answered"]
    code: str | None = None
    stops: StopCause | None = None


class LiveStatus(CamelContract, Artifact):
    """What `check` reports. It accepts nothing: only the counts of `bench check` and people's reviews do.

    Attributes:
        called: reserved slots, whatever became of them.
        complete: every planned slot has its record.
        stopped: the run has ended for good; `causes` say why, in the order of slots.
        running: another process executes the plan at this moment.
        captures: digest of `captures.json`, None as long as there is none.
    """

    format: Literal["casebound-bench-live-status/v1"] = "casebound-bench-live-status/v1"
    plan_id: Digest
    measurement_id: Digest
    executor: str
    model: str | None
    split: str
    max_calls: int
    called: int
    complete: bool
    stopped: bool
    causes: tuple[StopCause, ...]
    running: bool
    captures: Digest | None
    slots: tuple[SlotReport, ...]
    limitations: tuple[str, ...]
