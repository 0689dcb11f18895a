"""Planning a live run: which calls may be made, bound to everything that has a say in them. Nothing is called here.

Rules:
- Only a measurement that its author approved may be asked about; preparing and reviewing permit nothing by themselves.
- A plan selects cases of one split, each once, and says how many calls that is; the number must be the caller's too.
- The requests are made by the adapter of production from the inputs alone. Nobody else is asked, nothing is corrected.
- Whatever the plan binds is measured again before it is executed; what differs is named, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from casebound.bench.bundle import Bundle
from casebound.bench.prompt import context_of
from casebound.bench.subject import input_digest
from casebound.bench.trees import installed_tree
from casebound.bench.wording import OF_A_PLAN
from casebound.binding import KEYS_OF_A_SERVER, AnswererModel, bind_stage
from casebound.canonical import digest_of
from casebound.contracts.bench_live import Executor, LivePlan, PlannedSlot, StopCause
from casebound.contracts.benchmark import CorpusCase
from casebound.contracts.interpretation import StagePolicy
from casebound.contracts.model_call import ModelRequest
from casebound.errors import SettingsError
from casebound.frozen import freeze_protocol, freeze_rules, offered
from casebound.guard import checked, plugin_guard
from casebound.host import Host
from casebound.llm.course import Course
from casebound.llm.stage import derive_request
from casebound.settings import parse_settings, read_llm_table

CODE = "BENCH_LIVE"
# What bounds a whole stage of production has no place in a live run: it calls once.
_NOT_OF_A_LIVE_RUN = ("stage", "profile", "fallback", "fallback_codes", "retry", "unknown_calls", "price")
_NOT_SET = object()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which slots: cases of one split, and how many calls that may be."""

    split: str
    cases: tuple[str, ...]
    max_calls: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with its requests, in the order of its slots."""

    plan: LivePlan
    requests: tuple[ModelRequest, ...]


def choose_executor(
    host: Host, stage: str, executor: str, *, model: str | None, llm_config: Path | None
) -> AnswererModel:
    """Return who is to answer, with the provider's own settings; no secret is resolved.

    Args:
        host: knows the providers.
        stage: what is asked.
        executor: an installed provider.
        model: as the provider names it; None only where the answers are rules.
        llm_config: a TOML file with an `[llm]` table: bounds, output mode, and the provider's own table.

    Raises:
        SettingsError: nobody offers the provider, its settings do not hold, or there is no model.
    """
    path = llm_config or Path("[llm]")
    table = {} if llm_config is None else read_llm_table(llm_config)
    if isinstance(table, dict):
        table = {key: value for key, value in table.items() if key not in (*_NOT_OF_A_LIVE_RUN, "model")}
        table = {**table, "provider": executor, **({} if model is None else {"model": model})}
    chosen = bind_stage(parse_settings({"project": {"name": "bench"}, "llm": table}, path), host, stage)
    if chosen.spec.resolver == "model" and model is None:
        raise SettingsError("USAGE", pointer="--model", found="nothing", expected=f"a model of {executor}")
    return chosen


def derive_plan(bundle: Bundle, choice: AnswererModel, selection: Selection) -> Planned:
    """Return the plan of these calls; the same order with the same installation gives the same plan.

    Raises:
        SettingsError: the author's review is missing, or the selection is none (`BENCH_LIVE`); something that must be
            bound cannot be (`BENCH_IDENTITY`).
    """
    measurement = bundle.measurement
    if not measurement.readiness.exploratory_ready:
        ready = measurement.readiness
        raise SettingsError(
            CODE,
            path=str(bundle.root),
            found=f"author's review {ready.author_review}, independent review {ready.independent_review}",
            expected="a bundle that its author approved, without requested changes",
        )
    cases = _selected(measurement.corpus.corpus.cases, measurement.corpus.corpus.SPLITS, selection)
    policy = _policy(bundle, choice)
    requests = tuple(_request(bundle, policy, case) for case in cases)
    slots = [
        PlannedSlot(
            number=number,
            case_id=case.case_id,
            repeat=1,
            input=input_digest(case.input),
            request=digest_of(request.to_bytes()),
        )
        for number, (case, request) in enumerate(zip(cases, requests, strict=True), 1)
    ]
    plan = LivePlan(
        plan_id=digest_of(b""),
        benchmark=bundle.manifest.benchmark,
        measurement_id=measurement.measurement_id,
        bundle=str(bundle.root),
        manifest=digest_of(bundle.manifest.to_bytes()),
        receipts=tuple(receipt.digest for receipt in measurement.receipts),
        policy=policy,
        executor=_executor(measurement.instrument.host, choice),
        split=selection.split,
        slots=tuple(slots),
        max_calls=selection.max_calls,
        stops_on=get_args(StopCause),
        limitations=OF_A_PLAN,
    )
    return Planned(plan.model_copy(update={"plan_id": plan.derived_id()}), requests)


def _selected(cases: Sequence[CorpusCase], splits: Sequence[str], selection: Selection) -> tuple[CorpusCase, ...]:
    """Return the selected cases in the order of the corpus."""
    if selection.split not in splits:
        raise SettingsError(CODE, pointer="--split", found=repr(selection.split), allowed=splits)
    known = {case.case_id: case for case in cases}
    for case_id in selection.cases:
        case = known.get(case_id)
        if case is None:
            raise SettingsError(CODE, pointer="--cases", found=f"the case {case_id!r}, which the corpus does not have")
        if case.split != selection.split:
            found = f"the case {case_id!r} of the split {case.split!r}"
            hint = "another split needs a plan and a folder of its own"
            raise SettingsError(CODE, pointer="--cases", found=found, hint=hint)
        if selection.cases.count(case_id) > 1:
            raise SettingsError(CODE, pointer="--cases", found=f"the case {case_id!r} more than once")
    if not selection.cases or selection.max_calls != len(selection.cases):
        found, expected = f"{selection.max_calls} calls for {len(selection.cases)} cases", "one call a case"
        raise SettingsError(CODE, pointer="--max-calls", found=found, expected=expected)
    return tuple(case for case in cases if case.case_id in selection.cases)


def _policy(bundle: Bundle, choice: AnswererModel) -> StagePolicy:
    """Return the policy as production freezes one: asked once, with no retry, no correction and no fallback."""
    instrument = bundle.measurement.instrument
    host, protocol = instrument.host, instrument.protocol
    return StagePolicy(
        stage=protocol.stage,
        provider=choice.provider,
        offered_by=offered(host, "providers", choice.provider),
        resolver=choice.spec.resolver,
        model=choice.model,
        response_format=choice.response_format,
        timeout_s=choice.timeout_s,
        max_output_tokens=choice.max_output_tokens,
        incomplete_cap_factor=str(choice.incomplete_cap_factor),
        unknown_calls="hold",
        max_invalid_responses=1,
        max_retries=0,
        fallbacks=(),
        fallback_codes=(),
        protocol=freeze_protocol(host, protocol),
        rules=freeze_rules(host, protocol.stage, protocol.rules),
    )


def _request(bundle: Bundle, policy: StagePolicy, case: CorpusCase) -> ModelRequest:
    protocol = bundle.measurement.instrument.protocol
    return derive_request(Course(policy, (), ()), protocol, context_of(case.input, protocol), None, 1)


def _executor(host: Host, choice: AnswererModel) -> Executor:
    owner = host.distribution_of("providers", choice.provider)
    return Executor(
        offered_by=installed_tree(owner.distribution),
        settings=choice.settings.model_dump_json(),
        program=_program(host, choice),
    )


def _program(host: Host, choice: AnswererModel) -> dict[str, str]:
    """Return what the provider says that it runs."""
    spec = choice.spec
    if spec.program is None:
        return {}
    describe, where = host.load_named("providers", spec.name, spec.program), f"provider {spec.name}, program"
    with plugin_guard(where):
        said = checked(describe(choice.settings), dict, where)
        return {checked(name, str, where): checked(text, str, where) for name, text in sorted(said.items())}


# --- executing only what was planned --------------------------------------------------------------------------------


def planned_executor(plan: LivePlan, host: Host, path: Path) -> AnswererModel:
    """Return who answers a plan, from the plan alone; settings files have no say any more.

    Raises:
        SettingsError: nobody offers the provider, or its settings do not hold for the one that is installed.
        PluginError: it does not import.
    """
    policy = plan.policy
    spec = host.need("providers", policy.provider, path=str(path), pointer="/policy/provider")
    model: type[BaseModel] = host.load_named("providers", spec.name, spec.settings)
    try:
        settings = model.model_validate_json(plan.executor.settings)
    except ValidationError as exc:
        found = str(exc.errors(include_url=False, include_context=False, include_input=False)[0]["msg"])
        raise SettingsError(CODE, path=str(path), pointer="/executor/settings", found=found) from None
    return AnswererModel(
        spec=spec,
        settings=settings,
        provider=policy.provider,
        model=policy.model,
        response_format=policy.response_format,
        timeout_s=policy.timeout_s,
        max_output_tokens=policy.max_output_tokens,
        incomplete_cap_factor=Decimal(policy.incomplete_cap_factor),
    )


def reading_choice(plan: LivePlan, host: Host, path: Path) -> AnswererModel | None:
    """Return whose reading of native replies is that of the plan, without a key; None where there is nobody.

    Somebody who runs a program is never built only to read. Raises as `planned_executor`.
    """
    choice = planned_executor(plan, host, path)
    owner = host.distribution_of("providers", choice.provider)
    if plan.executor.program or installed_tree(owner.distribution) != plan.executor.offered_by:
        return None
    keys = {name: None for name in KEYS_OF_A_SERVER if name in type(choice.settings).model_fields}
    return replace(choice, settings=choice.settings.model_copy(update=keys))


def refuse_changes(plan: LivePlan, bundle: Bundle, choice: AnswererModel, path: Path) -> None:
    """Refuse a plan of which something is no longer what it binds.

    Raises:
        SettingsError: `BENCH_CHANGED`, with the keys of the plan that would be others now.
    """
    selection = Selection(plan.split, tuple(slot.case_id for slot in plan.slots), plan.max_calls)
    now, then = derive_plan(bundle, choice, selection).plan.to_json(), plan.to_json()
    changed = sorted(_differences(then, now) - {"planId"})
    if changed:
        raise SettingsError("BENCH_CHANGED", path=str(path), found=f"other: {', '.join(changed)}")


def _differences(then: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """Return the keys that differ, of objects one level deeper."""
    found = set()
    for key in then.keys() | now.keys():
        left, right = then.get(key, _NOT_SET), now.get(key, _NOT_SET)
        if isinstance(left, dict) and isinstance(right, dict):
            found |= {f"{key}/{inner}" for inner in _differences(left, right)}
        elif left != right:
            found.add(key)
    return found
