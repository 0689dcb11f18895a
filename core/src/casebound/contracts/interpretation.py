"""The frozen input, context and result of an interpretation, and what stands around them on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import CoreSchema

from casebound.contracts.base import Artifact, Contract, Digest, Time
from casebound.contracts.model_call import ResponseFormat
from casebound.contracts.plan import FrozenProtocol, FrozenRule, Offered


class Answerer(Contract):
    """Somebody who may answer a stage, and within which bounds.

    Attributes:
        resolver: `rules` or `model`, as the provider declares.
        timeout_s: deadline of a whole call, in seconds.
        max_output_tokens: cap of the first attempt.
        incomplete_cap_factor: a decimal: how much longer an answer may be after one that was cut off.
    """

    provider: str
    offered_by: Offered
    resolver: Literal["model", "rules"]
    model: str | None
    response_format: ResponseFormat
    timeout_s: int
    max_output_tokens: int
    incomplete_cap_factor: str

    @property
    def name(self) -> str:
        """The provider, and the model where there is one."""
        return f"{self.provider} {self.model}" if self.model else self.provider


class StagePolicy(Answerer):
    """Who answers one stage, who does if he fails, and what bounds them together, frozen with the case.

    Attributes:
        max_invalid_responses: invalid replies before the case goes to review.
        max_retries: transient provider errors before it blocks, shared by all answerers; each `resume` counts anew.
        fallbacks: asked in turn once retries are used up on one of `fallback_codes`. Packages from before there were
            any have neither key, and keep their bytes.
    """

    stage: str
    unknown_calls: Literal["retry", "hold"]
    max_invalid_responses: int
    max_retries: int
    fallbacks: tuple[Answerer, ...] = ()
    fallback_codes: tuple[str, ...] = ()
    protocol: FrozenProtocol
    rules: tuple[FrozenRule, ...]

    @model_serializer(mode="wrap")
    def _as_it_was_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        absent = {"fallbacks", "fallback_codes"} - self.model_fields_set
        return {key: value for key, value in handler(self).items() if key not in absent}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # The schema is that of the fields; what the serializer leaves out changes nothing about them.
        return handler({key: value for key, value in core_schema.items() if key != "serialization"})

    @property
    def answerers(self) -> tuple[Answerer, ...]:
        """Everybody who may answer, in the order in which they are asked."""
        return (self, *self.fallbacks)


class InterpretationInput(Artifact):
    """`analysis/interpretations/NNNN/input.json`: policies and rules of every stage.

    Attributes:
        resolution_input: digest of `entity-resolution/input.json`; None where resolution is off.
    """

    format: Literal["casebound-interpretation-input/v1"] = "casebound-interpretation-input/v1"
    case_digest: Digest
    facts_digest: Digest
    resolution_input: Digest | None
    stages: tuple[StagePolicy, ...]

    def policy(self, stage: str) -> StagePolicy:
        """Return the policy of `stage`. Raises `KeyError`."""
        for policy in self.stages:
            if policy.stage == stage:
                return policy
        raise KeyError(stage)


class InterpretationContext(Artifact):
    """`context.json`: everything that the interpretation may cite.

    Attributes:
        policy: the published name of the context's shape.
        prompt_id: the prompt that it belongs to.
        basis: digest of what it was derived from: the assessment, or the case where resolution is off.
    """

    format: Literal["casebound-interpretation-context/v1"] = "casebound-interpretation-context/v1"
    policy: str
    prompt_id: str
    input_digest: Digest
    basis: Digest
    context: dict[str, Any]


class Interpretation(Artifact):
    """`interpretation.json`: the accepted reply, verbatim, bound to prompt and contract."""

    format: Literal["casebound-interpretation/v1"] = "casebound-interpretation/v1"
    contract: str
    prompt_id: str
    context_digest: Digest
    reply: dict[str, object]


# Published rules and hypothesis contexts go through the fields in this order, which therefore never changes.
SINGLE_STATEMENTS = ("summary", "behavior_gap", "first_known_divergence", "provisional_behavior_gap")
LISTED_STATEMENTS = ("observed_behavior", "expected_behavior", "described_behavior", "relevant_entities", "unknowns")


def statements_in(reply: Mapping[str, Any], *fields: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the statements of a reply's `fields` with their JSON pointers; a field that is absent or null has none."""
    for field in fields:
        value = reply.get(field)
        if isinstance(value, list):
            yield from ((f"/{field}/{index}", statement) for index, statement in enumerate(value))
        elif value is not None:
            yield f"/{field}", value


class HypothesisSource(Contract):
    """One statement that a later phase may build on, with its own kind and citations; kinds are never mixed."""

    id: str
    kind: str
    text: str
    source_ids: tuple[str, ...]
    labels: dict[str, str]


class HypothesisContext(Artifact):
    """`hypothesis-context.json`: the interpretation taken apart by kind, for the phases that may follow."""

    format: Literal["casebound-hypothesis-context/v1"] = "casebound-hypothesis-context/v1"
    case_digest: Digest
    interpretation_digest: Digest
    sources: tuple[HypothesisSource, ...]


class Feedback(Artifact):
    """`feedback-<stage>-NNNN.json`: what the next request will carry, frozen before it is made.

    Attributes:
        attempt: the number of the attempt that it precedes.
        outcome: digest of the outcome that it answers.
    """

    format: Literal["casebound-feedback/v1"] = "casebound-feedback/v1"
    stage: str
    attempt: int
    outcome: Digest
    feedback: dict[str, object]


class Event(Artifact):
    """`events/NNNN.json`: what happened to the case, append only.

    Attributes:
        retry_at: not before this time may the case go on; None: no time makes a difference.
        stage: what was under way (`research`, `plan` …).
        attempts: the number of the stage's last attempt then; 0 where it has none.
    """

    format: Literal["casebound-event/v1"] = "casebound-event/v1"
    kind: Literal["blocked", "retry_pending", "review", "resumed"]
    code: str | None
    at: Time
    retry_at: Time | None
    detail: str
    stage: str
    attempts: int


class PhaseMark(Artifact):
    """`analysis/<phase>/phase.json`: a plugin's phase ran to its end; without it the phase runs again."""

    format: Literal["casebound-phase/v1"] = "casebound-phase/v1"
    phase: str
    offered_by: Offered


class SealedFile(Contract):
    """A file under the seal."""

    path: str
    size: int
    digest: Digest


class Seal(Artifact):
    """`seal.json`: every file of this interpretation and before it; written last."""

    format: Literal["casebound-seal/v1"] = "casebound-seal/v1"
    files: tuple[SealedFile, ...]


class Distribution(Contract):
    """An installed distribution that took part."""

    name: str
    version: str


class PackageIdentity(Artifact):
    """`package.json`: what this folder is."""

    format: Literal["casebound-package/v1"] = "casebound-package/v1"
    package_id: str
    case_id: str
    casebound: str
    distributions: tuple[Distribution, ...]
