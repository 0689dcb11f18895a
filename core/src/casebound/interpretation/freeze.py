"""`analysis/interpretations/NNNN/input.json`: policies and rules of every stage, frozen before the first call."""

from __future__ import annotations

from typing import Any

from casebound.binding import AnswererModel, Bound, StageModel
from casebound.canonical import digest_of
from casebound.contracts.capture import Facts
from casebound.contracts.case import Case
from casebound.contracts.interpretation import Answerer, InterpretationInput, StagePolicy
from casebound.contracts.plan import ResolutionInput
from casebound.frozen import freeze_protocol, freeze_rules, offered


def freeze_policies(bound: Bound) -> tuple[StagePolicy, ...]:
    """Return what a fresh interpretation freezes about its stages: the same for every case under these settings."""
    return tuple(_policy(bound, stage, model) for stage, model in bound.stages.items())


def freeze_interpretation(
    policies: tuple[StagePolicy, ...], case: Case, facts: Facts, resolution: ResolutionInput | None
) -> InterpretationInput:
    """Return the input of a fresh interpretation; `resolution` is None where resolution is off."""
    return InterpretationInput(
        case_digest=digest_of(case.to_bytes()),
        facts_digest=digest_of(facts.to_bytes()),
        resolution_input=None if resolution is None else digest_of(resolution.to_bytes()),
        stages=policies,
    )


def _policy(bound: Bound, stage: str, model: StageModel) -> StagePolicy:
    settings = bound.settings
    semantic = settings.interpretation if stage == "interpretation" else settings.entity_resolution
    assert semantic is not None  # noqa: S101  # stages of resolution are bound only where it is on
    return freeze_policy(bound, stage, model, semantic.max_invalid_responses)


def freeze_policy(bound: Bound, stage: str, model: StageModel, max_invalid_responses: int) -> StagePolicy:
    """Return what a conversation of `stage` freezes about who answers it, and by which protocol and rules.

    Args:
        bound: settings whose `protocols` know the stage.
        stage: any stage, of core or of a plugin.
        model: who answers it.
        max_invalid_responses: invalid replies after which a person must look.
    """
    return StagePolicy(
        stage=stage,
        **_answerer(bound, model),
        unknown_calls=model.unknown_calls,  # type: ignore[arg-type]  # settings know only the two words
        max_invalid_responses=max_invalid_responses,
        max_retries=model.max_retries,
        fallbacks=tuple(Answerer(**_answerer(bound, fallback)) for fallback in model.fallback),
        fallback_codes=model.fallback_codes,
        protocol=freeze_protocol(bound.host, bound.protocols[stage]),
        rules=freeze_rules(bound.host, stage, bound.rules(stage)),
    )


def _answerer(bound: Bound, model: AnswererModel) -> dict[str, Any]:
    """Return the fields of an `Answerer`."""
    return {
        "provider": model.provider,
        "offered_by": offered(bound.host, "providers", model.provider),
        "resolver": model.spec.resolver,
        "model": model.model,
        "response_format": model.response_format,
        "timeout_s": model.timeout_s,
        "max_output_tokens": model.max_output_tokens,
        "incomplete_cap_factor": str(model.incomplete_cap_factor),
    }


def changed_models(bound: Bound, frozen: InterpretationInput) -> list[str]:
    """Return which stage of an unfinished case would now be answered by somebody else, or by others if he fails."""
    found = []
    for policy in frozen.stages:
        model = bound.stages.get(policy.stage)
        if model is None:
            continue
        now, then = (", then ".join(one.name for one in who.answerers) for who in (model, policy))
        if now != then:
            found.append(f"stage {policy.stage} asks {now}, it asked {then}")
    return found


def changed_policies(bound: Bound, frozen: InterpretationInput) -> list[str]:
    """Return everything that a fresh case would freeze about its stages otherwise."""
    found = []
    for policy in frozen.stages:
        model = bound.stages.get(policy.stage)
        if model is None:
            found.append(f"stage {policy.stage} is off")
            continue
        now, then = _policy(bound, policy.stage, model).to_json(), policy.to_json()
        found += [f"{policy.stage}: {_difference(key, now[key], then[key])}" for key in then if now[key] != then[key]]
    return found


def _difference(key: str, now: object, then: object) -> str:
    return f"{key} are others" if isinstance(then, list) else f"{key} {_short(now)}, it was {_short(then)}"


def _short(value: object) -> str:
    if isinstance(value, dict) and "version" in value:
        return f"{value.get('distribution', value.get('prompt_id'))} {value['version']}"
    return "other" if isinstance(value, dict) else str(value)
