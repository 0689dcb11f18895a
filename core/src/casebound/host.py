"""The host: finds plugins, loads them one by one, keeps what went wrong, and indexes what they offer by name.

Rules:
- A host is a value that a function builds; there is no global one. Same plugins in, same order out, on every machine.
- A plugin that fails (it may raise, call exit, or miss a dependency) is unregistered and listed with its traceback;
  nothing else suffers. Two plugins that claim one name are an error, naming both, for whoever needs that name.
- Each hook is called once, when something of its kinds is first needed. What core ships comes through the same hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import Any

from casebound import __version__
from casebound.errors import CaseboundError, PluginError, SettingsError
from casebound.installed import Installed, installed_plugins
from casebound.loading import DISTRIBUTION, LoadedPlugin, PluginLoader
from casebound.offers import HOOK_OF_KIND, HOOKS, RESERVED, Index, Owner, broken_pattern, entries_of, label, unalias
from casebound.specs import (
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
    RuleRef,
    RuleSet,
    Runner,
    Validator,
)

# Listing plugins must stay quick: these have commands of their own, and are asked only when needed.
UNHURRIED = ("casebound_protocols", "casebound_validators")


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin as `plugins` and `doctor` show it.

    Attributes:
        name: of the entry point, as `[project] plugins` names it.
        distribution, version: what is installed.
        offers: kind → names.
        error: what went wrong, None where nothing did.
        traceback: the plugin's own, without secrets, where there is one.
    """

    name: str
    distribution: str
    version: str
    offers: Mapping[str, tuple[str, ...]]
    error: str | None = None
    traceback: str | None = None


def build_host(plugins: Sequence[str] | None = None, *, entry_points: Sequence[Installed] | None = None) -> Host:
    """Return a host with every installed plugin loaded, or with exactly those that `plugins` pins.

    Args:
        plugins: names of entry points, as `[project] plugins` holds them; None: all. Built-ins always load.
        entry_points: what is installed; None: what `sys.path` holds.

    Raises:
        SettingsError: `plugins` names one that is not installed.
    """
    found = tuple(sorted(installed_plugins() if entry_points is None else entry_points))
    if plugins is not None:
        names = {point.name for point in found}
        for wanted in plugins:
            if wanted not in names:
                raise SettingsError(
                    "SETTINGS_NAME", pointer="project.plugins", found=f"the plugin {wanted!r}", allowed=sorted(names)
                )
        found = tuple(point for point in found if point.name in plugins)
    return Host(found)


class Host:
    """The plugins that are loaded, and what they offer. Build one with `build_host`."""

    def __init__(self, entry_points: Sequence[Installed]) -> None:
        self._loader = PluginLoader()
        self._plugins = self._loader.plugins
        self._indexes: dict[str, Index[Any, Any]] = {}
        self._asking = Lock()
        self._owners: dict[tuple[str, object], Owner] = {}
        twice = {point.name for point in entry_points if sum(other.name == point.name for other in entry_points) > 1}
        for point in entry_points:
            plugin = LoadedPlugin(point.name, Owner(point.name, point.distribution, point.version))
            self._plugins.append(plugin)
            if point.name in twice:
                both = [f"{other.distribution} {other.version}" for other in entry_points if other.name == point.name]
                plugin.errors.append(str(_clash("plugin", point.name, both)))
            else:
                self._loader.load(plugin, point.value)

    # --- indexes ----------------------------------------------------------------------------------------------------

    def index(self, kind: str) -> Index[Any, Any]:
        """Return everything of one kind by name; clashed names are apart."""
        if kind not in self._indexes:
            with self._asking:  # cases in several threads may be the first to need it
                if kind not in self._indexes:
                    self._indexes[kind] = self._build_index(kind)
        return self._indexes[kind]

    def _build_index(self, kind: str) -> Index[Any, Any]:
        entries: dict[object, object] = {}
        claims: dict[object, list[LoadedPlugin]] = {}
        for plugin, value in self._loader.called(HOOK_OF_KIND[kind]):
            for name, item in entries_of(kind, value):
                shared = kind in ("roles", "headings") and entries.get(name) == item
                claims.setdefault(name, []).extend([] if shared else [plugin])
                entries.setdefault(name, item)
                self._owners.setdefault((kind, name), plugin.owner)
                plugin.offers.setdefault(kind, []).append(label(name))
        clashes = {}
        core = str(Owner(DISTRIBUTION, DISTRIBUTION, __version__))
        for name, plugins in claims.items():
            reserved = [core] if name in RESERVED.get(kind, ()) else []
            if len(plugins) + len(reserved) > 1:
                clashes[name] = _clash(kind, label(name), reserved + [str(plugin.owner) for plugin in plugins])
                for who in dict.fromkeys(plugin.name for plugin in plugins):
                    self._plugin(who).errors.append(str(clashes[name]))
        return Index(kind, self._unaliased(entries, clashes), clashes)

    def _unaliased(
        self, entries: Mapping[object, object], clashes: dict[object, PluginError]
    ) -> Mapping[object, object]:
        """Return `entries` with what each alias stands for; one that stands for nothing joins `clashes`."""
        found = dict(entries)
        for name, item in entries.items():
            if isinstance(item, ProtocolAlias):
                owner = self._owners[("protocols", name)]
                found[name] = unalias(entries, item)
                if found[name] is None and name not in clashes:
                    what = f"{label(name)} as an alias of version {item.of}, which nobody offers"
                    clashes[name] = PluginError("PLUGIN_OFFER", found=what, where=str(owner))
                    self._plugin(owner.plugin).errors.append(str(clashes[name]))
        return found

    def _plugin(self, name: str) -> LoadedPlugin:
        return next(plugin for plugin in self._plugins if plugin.name == name)

    def need(self, kind: str, name: object, *, path: str | None = None, pointer: str | None = None) -> Any:  # noqa: ANN401
        """Return the one thing of `kind` that is called `name`, because settings or a command ask for it.

        Raises:
            PluginError: two plugins claim the name.
            SettingsError: nobody offers it; the message lists what is accepted, and plugins that failed.
        """
        index = self.index(kind)
        if name in index or name in index.clashes:
            return index[name]
        broken = [plugin.name for plugin in self._plugins if plugin.errors]
        hint = f"these plugins have errors, see `casebound plugins`: {', '.join(broken)}" if broken else None
        allowed = [label(known) for known in index]
        if kind == "providers" and not allowed and hint is None:
            hint = "no provider is installed: install a plugin that offers one, see README.md and docs/guide/plugin.md"
        raise SettingsError(
            "SETTINGS_NAME", path=path, pointer=pointer, found=f"{label(name)!r} ({kind})", allowed=allowed, hint=hint
        )

    def distribution_of(self, kind: str, name: object) -> Owner:
        """Return who offers the thing of `kind` that is called `name`. Raises as `need`."""
        self.need(kind, name)
        return self._owners[(kind, name)]

    def load_named(self, kind: str, name: object, spec: str) -> Any:  # noqa: ANN401  # whatever the plugin names
        """Return what `"package.module:attribute"` names; `kind` and `name` say which offer it belongs to.

        Raises:
            PluginError: it does not import (`PLUGIN_BROKEN`), with the distribution and version.
        """
        module, _, attribute = spec.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except CaseboundError:
            raise
        except (Exception, SystemExit) as exc:  # a plugin's module may do anything when it is imported
            from casebound.settings import redact_environment

            found = f"{spec}: {redact_environment(f'{type(exc).__name__}: {exc}')}"
            raise PluginError("PLUGIN_BROKEN", found=found, where=str(self.distribution_of(kind, name))) from exc

    def _whole(self, kind: str) -> Index[Any, Any]:
        index = self.index(kind)
        index.refuse_clashes()
        return index

    # --- what is offered --------------------------------------------------------------------------------------------

    @property
    def catalogs(self) -> Mapping[str, Catalog]:
        """Catalog presets by name."""
        return self.index("catalogs")

    @property
    def enrichments(self) -> Mapping[str, EnrichmentRule]:
        """Enrichment presets by name."""
        return self.index("enrichments")

    @cached_property
    def references(self) -> tuple[ReferencePattern, ...]:
        """All reference patterns, sorted by name. Raises `PluginError` for a clash or a broken one."""
        patterns = tuple(self._whole("references").values())
        for pattern in patterns:
            wrong = broken_pattern(pattern)
            if wrong:
                raise PluginError("PLUGIN_OFFER", found=wrong, where=str(self._owners[("references", pattern.name)]))
        return patterns

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles that plugins add to the core ones, sorted."""
        return tuple(self.index("roles"))

    @property
    def headings(self) -> Mapping[str, str]:
        """Heading texts (lower case, single spaces) of plugins → source kind. Raises `PluginError` for a clash."""
        return self._whole("headings")

    @property
    def settings_texts(self) -> Mapping[str, str]:
        """The settings text that `init` may write, by plugin name."""
        offers = self._loader.called(HOOK_OF_KIND["catalogs"])
        return {
            p.name: o.settings_text for p, o in offers if isinstance(o, CatalogOffer) and o.settings_text is not None
        }

    @property
    def providers(self) -> Mapping[str, ProviderSpec]:
        """Model providers by name."""
        return self.index("providers")

    @property
    def rules(self) -> Mapping[str, RuleSet]:
        """Deterministic answers by stage."""
        return self.index("rules")

    @property
    def protocols(self) -> Mapping[tuple[str, int], PromptProtocol]:
        """Prompt protocols by stage and version."""
        return self.index("protocols")

    @property
    def validators(self) -> Mapping[tuple[str, str, int], Validator]:
        """Validators by stage, code and revision."""
        return self.index("validators")

    def validators_of(self, stage: str, refs: Sequence[RuleRef]) -> tuple[Validator, ...]:
        """Return exactly the validators that `refs` name, in that order.

        Raises:
            PluginError: one is not installed, or two distributions claim it.
        """
        index = self.index("validators")
        for ref in refs:
            key = (stage, ref.code, ref.revision)
            if key not in index and key not in index.clashes:
                raise PluginError("PLUGIN_MISSING", found=f"no validator {label(key)}", where=f"stage {stage}")
        return tuple(index[(stage, ref.code, ref.revision)] for ref in refs)

    def standing_rules(self, stage: str) -> tuple[RuleRef, ...]:
        """Return the validators that take part in every fresh case of `stage`. Raises `PluginError` for a clash."""
        index = self._whole("validators")
        return tuple(
            RuleRef(rule.code, rule.revision) for rule in index.values() if rule.stage == stage and rule.always
        )

    @cached_property
    def readers(self) -> Mapping[str, ReportReader]:
        """Report readers by name. Raises `PluginError` where two claim one name or one suffix."""
        index = self._whole("readers")
        by_suffix: dict[str, str] = {}
        for name, reader in index.items():
            for suffix in reader.suffixes:
                other = by_suffix.setdefault(suffix, name)
                if other != name:
                    raise _clash("suffix", suffix, [str(self._owners[("readers", who)]) for who in (other, name)])
        return index

    @cached_property
    def phases(self) -> Mapping[str, Phase]:
        """Phases by name, each after the one it follows. Raises `PluginError` for a clash, a loop or a gap."""
        index = self._whole("phases")
        ordered: dict[str, Phase] = {}
        while len(ordered) < len(index):
            ready = [
                p
                for p in index.values()
                if p.name not in ordered and (p.after in ordered or p.after == "interpretation")
            ]
            if not ready:
                lost = next(phase for phase in index.values() if phase.name not in ordered)
                owner = self._owners[("phases", lost.name)]
                raise PluginError(
                    "PLUGIN_OFFER",
                    found=f"phase {lost.name} after {lost.after!r}",
                    where=f"{owner}",
                    allowed=("interpretation", *ordered),
                )
            ordered.update((phase.name, phase) for phase in ready)
        return ordered

    @property
    def runners(self) -> Mapping[str, Runner]:
        """Places where cases are executed, by name."""
        return self.index("runners")

    @property
    def benchmarks(self) -> Mapping[str, Benchmark]:
        """Benchmarks by name."""
        return self.index("benchmarks")

    @property
    def demos(self) -> Mapping[str, Demo]:
        """Embedded samples by name."""
        return self.index("demos")

    @property
    def commands(self) -> Mapping[str, Command]:
        """Command groups that plugins add, by name."""
        return self.index("commands")

    @cached_property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Every plugin with what it offers and what went wrong, built-ins first, then sorted by name.

        Protocols and validators are among them once something has asked for them: they import the engine's libraries.
        """
        for hook in HOOKS:
            if hook.name in UNHURRIED and not self._loader.was_called(hook):
                continue
            for kind in hook.kinds:
                self.index(kind)
        for check in ("readers", "phases"):
            self._note_whole(check)
        ordered = sorted(self._plugins, key=lambda plugin: (not plugin.builtin, plugin.name, plugin.owner.distribution))
        return tuple(
            PluginInfo(
                plugin.name,
                plugin.owner.distribution,
                plugin.owner.version,
                {kind: tuple(sorted(names)) for kind, names in sorted(plugin.offers.items())},
                "\n".join(dict.fromkeys(plugin.errors)) or None,
                plugin.traceback,
            )
            for plugin in ordered
        )

    def _note_whole(self, kind: str) -> None:
        """Show an error of a kind as a whole beside the plugins that it names."""
        try:
            getattr(self, kind)
        except PluginError as exc:
            for plugin in self._plugins:
                if str(plugin.owner) in str(exc):
                    plugin.errors.append(str(exc))


def _clash(kind: str, name: str, owners: Sequence[str]) -> PluginError:
    return PluginError("PLUGIN_CLASH", found=f"{kind} {name!r} of " + " and of ".join(sorted(owners)))
