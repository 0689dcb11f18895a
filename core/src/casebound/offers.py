"""What each hook may return, how an offer is named, and what makes it unusable: the host's own rules, as data.

A kind is what a program looks up by name (`catalogs`, `roles`); one hook may feed several kinds. A check returns what
is wrong in words, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Generic, TypeVar, get_args

from casebound.commands import CORE_COMMANDS
from casebound.errors import PluginError
from casebound.specs import (
    CORE_ROLES,
    CORE_STAGES,
    Benchmark,
    Catalog,
    CatalogOffer,
    Command,
    Demo,
    EnrichmentRule,
    Phase,
    PromptProtocol,
    ProtocolAlias,
    ProviderSpec,
    ReferencePattern,
    ReportReader,
    RuleSet,
    Runner,
    Validator,
)

FIRST_FOREIGN_VERSION = 1000
CORE_PHASES = ("admission", "construction", "research", "interpretation")
HEADING_KINDS = ("observation", "expectation", "reproduction", "environment", "reference", "comment", "text")

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Owner:
    """Who offers something: the plugin, and the distribution that it came with."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


class Index(Mapping[K, V], Generic[K, V]):
    """Offers by name. A name that two plugins claim is not listed, and looking it up is an error that names both."""

    def __init__(self, kind: str, entries: Mapping[K, V], clashes: Mapping[K, PluginError]) -> None:
        self.kind = kind
        self.clashes = dict(clashes)
        self._entries = {name: entries[name] for name in sorted(entries, key=str) if name not in clashes}

    def __getitem__(self, name: K) -> V:
        """Return the offer. Raises `PluginError` for a clash, `KeyError` for a name that nobody offers."""
        if name in self.clashes:
            raise self.clashes[name]
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def refuse_clashes(self) -> None:
        """Raise the first clash: for kinds that are used as a whole."""
        for name in sorted(self.clashes, key=str):
            raise self.clashes[name]


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook: what it returns, and the kinds that come of it."""

    name: str
    returns: type | UnionType
    check: Callable[[object, bool], str | None]
    kinds: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """What the hook returns, in words."""
        kinds = get_args(self.returns) or (self.returns,)
        return " or ".join(str(kind.__name__) for kind in kinds)


def _name_of(value: object) -> str:
    return str(getattr(value, "name", ""))


def _bad_name(name: str) -> str | None:
    return None if re.fullmatch(r"[A-Za-z0-9][\w.:-]{0,99}", name) else f"the name {name!r}"


def _check_spec_strings(*fields: str) -> Callable[[object, bool], str | None]:
    def check(value: object, builtin: bool) -> str | None:
        name = _name_of(value) or str(getattr(value, "stage", ""))
        wrong = next((field for field in fields if not _is_spec(getattr(value, field))), None)
        return _bad_name(name) or (
            wrong and f"{name}: {wrong} = {getattr(value, wrong)!r} is not 'package.module:attribute'"
        )

    return check


def _is_spec(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", text) is not None


def _check_catalogs(value: object, builtin: bool) -> str | None:
    assert isinstance(value, CatalogOffer)  # noqa: S101  # the host has checked the type
    checks = (
        *(_check_catalog(item) for item in value.catalogs),
        *(_check_enrichment(item) for item in value.enrichments),
        *(_check_pattern(item) for item in value.references),
        *(None if re.fullmatch(r"[a-z][a-z0-9_]*", role) else f"the role {role!r}" for role in value.roles),
        *(
            None if kind in HEADING_KINDS and text.strip() else f"the heading {text!r} = {kind!r}"
            for text, kind in value.headings.items()
        ),
    )
    return next((wrong for wrong in checks if wrong), None)


def _check_catalog(item: Catalog) -> str | None:
    missing = {item.id_column, item.name_column} - set(item.columns)
    if missing or not (item.entity_type and item.table):
        return f"catalog {item.name}: " + (
            f"columns lack {', '.join(sorted(missing))}" if missing else "no entity type or table"
        )
    return _bad_name(item.name)


def _check_enrichment(item: EnrichmentRule) -> str | None:
    needed = {item.column, *item.description_columns} | ({item.name_column} if item.name_column else set())
    missing = needed - set(item.columns)
    return f"enrichment {item.name}: columns lack {', '.join(sorted(missing))}" if missing else _bad_name(item.name)


def _check_pattern(item: ReferencePattern) -> str | None:
    # Compiling is dear, and listing plugins must be quick: whoever uses the patterns calls `broken_pattern` as well.
    return _bad_name(item.name) or (None if "(?P<id>" in item.pattern else f"pattern {item.name}: no group named id")


def broken_pattern(item: ReferencePattern) -> str | None:
    """Return why a pattern cannot be used, None where it can."""
    try:
        groups = item.compiled().groupindex
    except (re.error, RecursionError, OverflowError) as exc:
        return f"pattern {item.name}: {exc}"
    return None if "id" in groups else f"pattern {item.name}: no group named id"


def _check_protocol(value: object, builtin: bool) -> str | None:
    assert isinstance(value, PromptProtocol | ProtocolAlias)  # noqa: S101  # the host has checked the type
    if isinstance(value, ProtocolAlias) and not 0 < value.of < value.version:
        return f"version {value.version} of stage {value.stage} as an alias of version {value.of}, which is not earlier"
    foreign = not builtin and value.stage in CORE_STAGES
    if type(value.version) is not int or value.version < (FIRST_FOREIGN_VERSION if foreign else 0):
        least = f", which another distribution numbers from {FIRST_FOREIGN_VERSION}" if foreign else ""
        return f"version {value.version!r} of stage {value.stage}{least}"
    return _bad_name(value.stage)


def _check_validator(value: object, builtin: bool) -> str | None:
    assert isinstance(value, Validator)  # noqa: S101  # the host has checked the type
    sound = re.fullmatch(r"[A-Z][A-Z0-9_]*", value.code) and type(value.revision) is int and value.revision >= 1
    return _bad_name(value.stage) if sound and callable(value.check) else f"validator {value.code!r}/{value.revision!r}"


def _check_reader(value: object, builtin: bool) -> str | None:
    assert isinstance(value, ReportReader)  # noqa: S101  # the host has checked the type
    odd = next((suffix for suffix in value.suffixes if not re.fullmatch(r"(\.[a-z0-9_+-]+)+", suffix)), None)
    return _check_spec_strings("read")(value, builtin) or (odd and f"reader {value.name}: the suffix {odd!r}")


def _check_phase(value: object, builtin: bool) -> str | None:
    assert isinstance(value, Phase)  # noqa: S101  # the host has checked the type
    if value.after == value.name or value.after in CORE_PHASES[:-1]:
        return f"phase {value.name}: it cannot follow {value.after!r}"
    return _check_spec_strings("run")(value, builtin)


def _check_benchmark(value: object, builtin: bool) -> str | None:
    assert isinstance(value, Benchmark)  # noqa: S101  # the host has checked the type
    files = (value.corpus_file, *(guide.file for guide in value.guides))
    odd = next((file for file in files if not re.fullmatch(r"[A-Za-z_][\w.]*:[\w.-]+(/[\w.-]+)*", file)), None)
    if odd is not None:
        return f"benchmark {value.name}: the file {odd!r} is not 'package:path'"
    if not value.guides:
        return f"benchmark {value.name}: no guide"
    lacking = {spec.partition(":")[0] for spec in (value.corpus, value.checker)} - set(value.components)
    if lacking:
        return f"benchmark {value.name}: components lack {', '.join(sorted(lacking))}"
    return _check_spec_strings("corpus", "checker")(value, builtin)


HOOKS: tuple[Hook, ...] = (
    Hook(
        "casebound_catalogs",
        CatalogOffer,
        _check_catalogs,
        ("catalogs", "references", "enrichments", "roles", "headings"),
    ),
    Hook("casebound_readers", ReportReader, _check_reader, ("readers",)),
    Hook("casebound_demos", Demo, _check_spec_strings("folder"), ("demos",)),
    Hook("casebound_providers", ProviderSpec, _check_spec_strings("settings", "factory"), ("providers",)),
    Hook("casebound_rules", RuleSet, _check_spec_strings("answer"), ("rules",)),
    Hook("casebound_protocols", PromptProtocol | ProtocolAlias, _check_protocol, ("protocols",)),
    Hook("casebound_validators", Validator, _check_validator, ("validators",)),
    Hook("casebound_phases", Phase, _check_phase, ("phases",)),
    Hook("casebound_runners", Runner, _check_spec_strings("run"), ("runners",)),
    Hook("casebound_benchmarks", Benchmark, _check_benchmark, ("benchmarks",)),
    Hook("casebound_commands", Command, _check_spec_strings("group"), ("commands",)),
)
HOOK_OF_KIND: dict[str, Hook] = {kind: hook for hook in HOOKS for kind in hook.kinds}
RESERVED: dict[str, tuple[str, ...]] = {"phases": CORE_PHASES, "commands": tuple(CORE_COMMANDS)}


def entries_of(kind: str, value: object) -> list[tuple[object, object]]:
    """Return the names that `value`, returned by a hook, claims in `kind`, each with what it stands for."""
    if isinstance(value, CatalogOffer):
        if kind == "headings":
            return [(fold_heading(text), source_kind) for text, source_kind in value.headings.items()]
        if kind == "roles":
            return [(role, role) for role in value.roles if role not in CORE_ROLES]
        return [(item.name, item) for item in getattr(value, kind)]
    if isinstance(value, PromptProtocol | ProtocolAlias):
        return [((value.stage, value.version), value)]
    if isinstance(value, Validator):
        return [((value.stage, value.code, value.revision), value)]
    if isinstance(value, RuleSet):
        return [(value.stage, value)]
    return [(_name_of(value), value)]


def unalias(entries: Mapping[object, object], value: ProtocolAlias) -> PromptProtocol | None:
    """Return the version that an alias stands for, under the alias's number; None where nobody offers it."""
    found = entries.get((value.stage, value.of))
    target = unalias(entries, found) if isinstance(found, ProtocolAlias) else found
    return replace(target, version=value.version) if isinstance(target, PromptProtocol) else None


def fold_heading(text: str) -> str:
    """Return a heading as it is compared: lower case, single spaces."""
    return " ".join(text.split()).lower()


def label(name: object) -> str:
    """Return the name of an offer as people read it: `plan/4`, `plan/CODE/1`, `vendor.thing`."""
    return "/".join(str(part) for part in name) if isinstance(name, tuple) else str(name)
