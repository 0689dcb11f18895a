"""Settings and plugins brought together: every name that the settings use is looked up, before anything is written.

Rules:
- `bind` opens nothing and resolves no secret. It imports a provider's settings model only for stages that will run.
- A catalog's or enrichment's table must be in the allowlist, whoever offers it.
- Without `[entity_resolution]` the interpretation runs alone, with the plain prompt, whatever `[protocols]` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from casebound.contracts.model_call import ResponseFormat
from casebound.errors import SettingsError
from casebound.guard import plugin_guard
from casebound.host import Host
from casebound.offers import fold_heading
from casebound.protocol_choice import choose_protocol
from casebound.settings import Llm, LlmChoice, LlmProfile, Price, Settings
from casebound.settings_errors import settings_error
from casebound.specs import (
    CORE_ROLES,
    CORE_STAGES,
    STAGES,
    Catalog,
    EnrichmentRule,
    PromptProtocol,
    ProviderSpec,
    ReferencePattern,
    RuleRef,
    Validator,
)

if TYPE_CHECKING:
    from casebound.llm.provider import Provider

KEYS_OF_A_SERVER = ("api_key_env", "api_key_cmd")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswererModel:
    """Somebody who may answer a stage, and within which bounds.

    Attributes:
        spec: the provider; `settings` is its own validated settings, whose type only it knows.
        timeout_s: deadline of a whole call, in seconds.
        max_output_tokens: cap of the first attempt; the one after a cut reply may be `incomplete_cap_factor` longer.
        price: the operator's, None where he gave none.
    """

    spec: ProviderSpec
    settings: BaseModel
    provider: str
    model: str | None
    response_format: ResponseFormat
    timeout_s: int
    max_output_tokens: int
    incomplete_cap_factor: Decimal
    price: Price | None = None

    @property
    def name(self) -> str:
        """The provider, and the model where there is one."""
        return f"{self.provider} {self.model}" if self.model else self.provider


@dataclass(frozen=True, slots=True, kw_only=True)
class StageModel(AnswererModel):
    """Who answers one stage, who does if he fails, and what bounds them together.

    Attributes:
        max_retries: transient provider errors that the stage survives, shared by all who answer it.
        fallback: tried in turn on `fallback_codes`, once retries are used up.
        fallback_codes: empty where there is no fallback.
    """

    unknown_calls: str
    max_retries: int
    fallback: tuple[AnswererModel, ...] = ()
    fallback_codes: tuple[str, ...] = ()

    @property
    def answerers(self) -> tuple[AnswererModel, ...]:
        """Everybody who may answer, in the order in which they are asked."""
        return (self, *self.fallback)


@dataclass(frozen=True, slots=True)
class Bound:
    """Settings whose every name is known to be offered by a plugin that is installed.

    Attributes:
        catalogs: where the plan may search, presets first, in the order of the settings; empty without resolution.
        enrichments: what is fetched for cited ids, presets first.
        roles: the core roles, then those of plugins, sorted.
        references: patterns of typed ids, sorted by name.
        headings: heading text (lower case, single spaces) → source kind: of plugins, then the operator's own.
        stages: who answers each stage that will run.
        protocols: the version of each stage that a fresh case freezes.
    """

    settings: Settings
    host: Host
    catalogs: tuple[Catalog, ...]
    enrichments: tuple[EnrichmentRule, ...]
    roles: tuple[str, ...]
    references: tuple[ReferencePattern, ...]
    headings: Mapping[str, str]
    stages: Mapping[str, StageModel]
    protocols: Mapping[str, PromptProtocol] = field(default_factory=dict)

    def validators(self, stage: str, refs: Sequence[RuleRef]) -> tuple[Validator, ...]:
        """Return exactly the validators that `refs` name, in order. Raises `PluginError` for one that is missing."""
        return self.host.validators_of(stage, refs)

    def rules(self, stage: str) -> tuple[RuleRef, ...]:
        """Return what a fresh case freezes for `stage`: its protocol's rules, then those that plugins always add."""
        own = self.protocols[stage].rules
        return (*own, *(ref for ref in self.host.standing_rules(stage) if ref not in own))


def bind(settings: Settings, host: Host) -> Bound:
    """Bring settings and plugins together.

    Raises:
        SettingsError: a table outside the allowlist, a name that no plugin offers, a column that is missing, or a
            provider's own settings that do not hold; with file, key and what is accepted.
        PluginError: two plugins claim a name that is needed, or the needed one is broken.
    """
    resolution = settings.entity_resolution
    _check_llm_tables(settings, host)
    stages = CORE_STAGES if resolution else CORE_STAGES[-1:]
    return Bound(
        settings=settings,
        host=host,
        catalogs=bind_catalogs(settings, host),
        enrichments=bind_enrichments(settings, host),
        roles=(*CORE_ROLES, *host.roles),
        references=host.references,
        headings=MappingProxyType(
            {**host.headings, **{fold_heading(text): kind for text, kind in settings.intake.headings.items()}}
        ),
        stages=MappingProxyType({stage: bind_stage(settings, host, stage) for stage in stages}),
        protocols=MappingProxyType({stage: choose_protocol(settings, host, stage) for stage in stages}),
    )


# --- catalogs and enrichment ----------------------------------------------------------------------------------------


def bind_catalogs(settings: Settings, host: Host) -> tuple[Catalog, ...]:
    """Return the catalogs that the settings name, presets first; none without resolution. Raises as `bind`."""
    resolution = settings.entity_resolution
    if resolution is None:
        return ()
    found: dict[str, Catalog] = {}
    for place, name in enumerate(resolution.catalogs):
        key = f"entity_resolution.catalogs[{place}]"
        preset = cast("Catalog", host.need("catalogs", name, path=str(settings.path), pointer=key))
        _refuse_twice(settings, name, found, key)
        check_table(settings, preset.table, key)
        found[name] = preset
    for place, own in enumerate(resolution.own):
        key = f"entity_resolution.catalog[{place}]"
        _refuse_twice(settings, own.name, found, f"{key}.name")
        check_table(settings, own.table, f"{key}.table")
        _check_columns(settings, {"id_column": own.id_column, "name_column": own.name_column}, own.columns, key)
        columns = own.columns
        if own.locale_column and own.locale_column not in columns:
            columns = (*columns, own.locale_column)
        found[own.name] = Catalog(
            own.name, own.entity_type, own.table, own.id_column, own.name_column, columns, own.locale_column
        )
    return tuple(found.values())


def bind_enrichments(settings: Settings, host: Host) -> tuple[EnrichmentRule, ...]:
    """Return the enrichment rules that the settings name, presets first. Raises as `bind`."""
    found: dict[str, EnrichmentRule] = {}
    for place, name in enumerate(settings.enrichment.rules):
        key = f"enrichment.rules[{place}]"
        preset = cast("EnrichmentRule", host.need("enrichments", name, path=str(settings.path), pointer=key))
        _refuse_twice(settings, name, found, key)
        check_table(settings, preset.table, key)
        found[name] = preset
    for place, own in enumerate(settings.enrichment.entity):
        key = f"enrichment.entity[{place}]"
        check_table(settings, own.table, f"{key}.table")
        needed = {"column": own.column, **({"name_column": own.name_column} if own.name_column else {})}
        needed |= {f"description_columns[{index}]": column for index, column in enumerate(own.description_columns)}
        _check_columns(settings, needed, own.columns, key)
        found[key] = EnrichmentRule(
            key, own.entity_type, own.table, own.column, own.columns, own.name_column, own.description_columns
        )
    return tuple(found.values())


def _refuse_twice(settings: Settings, name: str, found: Mapping[str, object], key: str) -> None:
    if name in found:
        raise SettingsError("SETTINGS_VALUE", path=str(settings.path), pointer=key, found=f"{name!r} a second time")


def check_table(settings: Settings, table: str, key: str) -> None:
    """Refuse a table that is not in the allowlist. Raises `SettingsError`."""
    allowed = settings.database.tables if settings.database else ()
    if table not in allowed:
        raise SettingsError("SETTINGS_TABLE", path=str(settings.path), pointer=key, found=table, allowed=allowed)


def _check_columns(settings: Settings, needed: Mapping[str, str], columns: Sequence[str], key: str) -> None:
    for name, column in needed.items():
        if column not in columns:
            raise SettingsError(
                "SETTINGS_VALUE",
                path=str(settings.path),
                pointer=f"{key}.{name}",
                found=f"{column!r}, which is not among columns",
                allowed=columns,
            )
    if len(set(columns)) != len(columns):
        raise SettingsError("SETTINGS_VALUE", path=str(settings.path), pointer=f"{key}.columns", found="a column twice")


# --- models ---------------------------------------------------------------------------------------------------------


def _check_llm_tables(settings: Settings, host: Host) -> None:
    """Refuse stages that nobody has, profiles that are not there, and tables of providers that nobody offers."""
    llm, path = settings.llm, str(settings.llm_path)
    if set(llm.stage) - set(STAGES):
        stages = {*STAGES, *(stage for stage, _ in host.protocols)}
        for stage in sorted(set(llm.stage) - stages):
            raise SettingsError("SETTINGS_KEY", path=path, pointer=f"llm.stage.{stage}", allowed=sorted(stages))
    for place, name in enumerate(llm.fallback):
        key = f"llm.fallback[{place}]"
        if name not in llm.profile:
            raise SettingsError(
                "SETTINGS_NAME", path=path, pointer=key, found=f"the profile {name!r}", allowed=sorted(llm.profile)
            )
        if name in llm.fallback[:place]:
            raise SettingsError("SETTINGS_VALUE", path=path, pointer=key, found=f"{name!r} a second time")
    choices: dict[str, Llm | LlmProfile] = {"llm": llm}
    choices |= {f"llm.stage.{name}": choice for name, choice in llm.stage.items()}
    choices |= {f"llm.profile.{name}": choice for name, choice in llm.profile.items()}
    for prefix, choice in choices.items():
        if choice.provider is not None:
            host.need("providers", choice.provider, path=path, pointer=f"{prefix}.provider")
        for provider in choice.provider_tables:
            host.need("providers", provider, path=path, pointer=f"{prefix}.{provider}")


def bind_stage(settings: Settings, host: Host, stage: str) -> StageModel:
    """Return who answers `stage`: `[llm]`, overlaid by `[llm.stage.X]`, with its fallbacks.

    Raises:
        SettingsError: the provider is not installed, needs a model and has none, or its own settings do not hold.
        PluginError: the provider's settings model does not import.
    """
    llm = settings.llm
    choice = llm.stage.get(stage, LlmChoice())
    return StageModel(
        **_answerer(settings, host, choice, f"llm.stage.{stage}"),
        unknown_calls=choice.unknown_calls or llm.unknown_calls,
        max_retries=(choice.retry or llm.retry).max_retries,
        fallback=tuple(
            AnswererModel(**_answerer(settings, host, llm.profile[name], f"llm.profile.{name}"))
            for name in llm.fallback
        ),
        fallback_codes=llm.fallback_codes if llm.fallback else (),
    )


def _answerer(settings: Settings, host: Host, choice: LlmProfile, prefix: str) -> dict[str, Any]:
    """Return the fields of an `AnswererModel`: `[llm]`, overlaid by `choice`."""
    llm = settings.llm

    def chosen(name: str) -> Any:  # noqa: ANN401  # the type of that field
        own = getattr(choice, name)
        return getattr(llm, name) if own is None else own

    provider: str = chosen("provider")
    spec = cast(
        "ProviderSpec", host.need("providers", provider, path=str(settings.llm_path), pointer=f"{prefix}.provider")
    )
    elsewhere = provider != llm.provider
    # The model and its price belong to the provider of [llm]; another provider starts without them.
    model = choice.model if elsewhere else chosen("model")
    if model is None and spec.needs_model:
        raise SettingsError(
            "SETTINGS_VALUE",
            path=str(settings.llm_path),
            pointer=f"{prefix if elsewhere else 'llm'}.model",
            found="nothing",
            expected=f"the name of a model: the provider {provider} needs one",
        )
    return {
        "spec": spec,
        "settings": _provider_settings(settings, host, spec, choice, prefix),
        "provider": provider,
        "model": model,
        "price": choice.price if elsewhere else chosen("price"),
        "response_format": chosen("response_format"),
        "timeout_s": chosen("timeout_s"),
        "max_output_tokens": chosen("max_output_tokens"),
        "incomplete_cap_factor": chosen("incomplete_cap_factor"),
    }


def _provider_settings(
    settings: Settings, host: Host, spec: ProviderSpec, choice: LlmProfile, prefix: str
) -> BaseModel:
    own = choice.provider_tables.get(spec.name, {})
    shared = settings.llm.provider_tables.get(spec.name, {})
    if own and not isinstance(choice, LlmChoice):
        # A profile's table may be another server's: the key of that of [llm] must not go there.
        shared = {key: value for key, value in shared.items() if key not in KEYS_OF_A_SERVER}
    table = {**shared, **own}
    model = cast("type[BaseModel]", host.load_named("providers", spec.name, spec.settings))
    try:
        # As JSON, an array fits a list and a tuple alike; how strict scalars are is what the model says.
        return model.model_validate_json(to_json(table, inf_nan_mode="constants"))
    except ValidationError as exc:
        # The table is two tables laid over each other; the error names the one that the key stands in.
        wrong = settings_error(exc, model, path="").pointer or ""
        key = prefix if re.split(r"[.\[]", wrong)[0] in own else "llm"
        raise settings_error(exc, model, path=str(settings.llm_path), prefix=f"{key}.{spec.name}") from None


def build_provider(model: AnswererModel, host: Host, path: Path) -> Provider:
    """Construct the provider of somebody who may answer; its secrets are resolved now, and live in it alone.

    Args:
        model: who answers.
        host: the plugins.
        path: the file with its `[llm]` table, for errors.

    Raises:
        SettingsError: a secret cannot be had.
        PluginError: factory or rules do not import, or the factory fails.
    """
    factory = cast("Callable[..., Provider]", host.load_named("providers", model.spec.name, model.spec.factory))
    from casebound.llm.guarded import GuardedProvider

    name = model.spec.name
    arguments: list[object] = [model.settings]
    if model.spec.resolver != "model":
        arguments.append({stage: host.load_named("rules", stage, rule.answer) for stage, rule in host.rules.items()})
    try:
        with plugin_guard(f"provider {name}"):
            return GuardedProvider(factory(*arguments), name)
    except SettingsError as exc:
        raise exc.placed(str(path)) from exc.__cause__
