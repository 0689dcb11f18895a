"""Loading plugins one by one, and calling their hooks: whatever a plugin does, the others and the host go on.

`pluggy` leaves a plugin half registered when its validation fails, and passes over a misspelt hook until somebody asks;
hence each plugin is checked right after it is registered, and unregistered if anything failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module

import pluggy

from casebound import __version__, hookspecs
from casebound.errors import PluginError
from casebound.offers import Hook, Owner

DISTRIBUTION = "casebound"
# What core ships: plugin name, module, and the hooks it implements, so that nothing is imported before it is needed.
BUILTINS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("builtin-intake", "casebound.intake.builtin", ("casebound_readers",)),
    ("builtin-protocols", "casebound.protocols.builtin", ("casebound_protocols",)),
    ("builtin-validators", "casebound.validators.builtin", ("casebound_validators",)),
    ("builtin-workspace", "casebound.workspace.builtin", ("casebound_runners",)),
)


@dataclass(slots=True)
class LoadedPlugin:
    """What is known of one plugin while the host is built: its owner, what went wrong, the names that it offers."""

    name: str
    owner: Owner
    builtin: bool = False
    errors: list[str] = field(default_factory=list)
    traceback: str | None = None
    offers: dict[str, list[str]] = field(default_factory=dict)


class PluginLoader:
    """Registers plugins with pluggy and calls their hooks, each once."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.NAMESPACE)
        self._manager.add_hookspecs(hookspecs)
        self.plugins: list[LoadedPlugin] = []
        self._loaded_builtins: set[str] = set()
        self._offers: dict[str, list[tuple[LoadedPlugin, object]]] = {}

    def load(self, plugin: LoadedPlugin, value: str) -> None:
        """Import and register one plugin; whatever it does, the host goes on."""

        def register() -> None:
            module_name, _, attribute = value.partition(":")
            target: object = import_module(module_name)
            for part in filter(None, attribute.split(".")):
                target = getattr(target, part)
            self._manager.register(target, plugin.name)
            self._manager.check_pending()
            if not self._manager.get_hookcallers(target):
                raise PluginError(
                    "PLUGIN_OFFER", found=f"{value} has no function marked with hookimpl", where=f"plugin {plugin.name}"
                )

        if not self._guarded(plugin, register):
            half = self._manager.get_plugin(plugin.name)
            if half is not None:
                self._manager.unregister(half, plugin.name)

    def _guarded(self, plugin: LoadedPlugin, call: Callable[[], object]) -> bool:
        """Run code of a plugin; note what goes wrong. What it prints may not mix with a command's answer."""
        try:
            with redirect_stdout(sys.stderr):
                call()
        except KeyboardInterrupt:
            raise
        except PluginError as exc:
            plugin.errors.append(str(exc))
        except BaseException as exc:  # noqa: BLE001  # a plugin may raise anything, and may call exit
            self._note_failure(plugin, exc)
        else:
            return True
        return False

    def _note_failure(self, plugin: LoadedPlugin, exc: BaseException) -> None:
        import traceback  # only a failure pays for these two

        from casebound.settings import redact_environment

        own = exc.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename in (__file__, pluggy.__file__):
            own = own.tb_next
        plugin.traceback = redact_environment("".join(traceback.format_exception(type(exc), exc, own)))
        found = redact_environment("".join(traceback.format_exception_only(exc)).strip().splitlines()[-1])
        plugin.errors.append(
            str(PluginError("PLUGIN_BROKEN", found=found, where=f"plugin {plugin.name} ({plugin.owner})"))
        )

    def _load_builtins(self, hook: str) -> None:
        for name, module, hooks in BUILTINS:
            if hook in hooks and name not in self._loaded_builtins:
                self._loaded_builtins.add(name)
                target = import_module(module)
                self._manager.register(target, name)
                self.plugins.append(LoadedPlugin(name, Owner(name, DISTRIBUTION, __version__), builtin=True))

    # --- calling hooks ----------------------------------------------------------------------------------------------

    def called(self, hook: Hook) -> list[tuple[LoadedPlugin, object]]:
        """Return what all plugins offer through one hook, each with its plugin, in the order of names. Called once."""
        if hook.name in self._offers:
            return self._offers[hook.name]
        self._load_builtins(hook.name)
        offered: list[tuple[LoadedPlugin, object]] = []
        for plugin in sorted(self.plugins, key=lambda plugin: (not plugin.builtin, plugin.name)):
            if self._manager.has_plugin(plugin.name):
                offered.extend((plugin, value) for value in self._answers(hook, plugin))
        self._offers[hook.name] = offered
        return offered

    def was_called(self, hook: Hook) -> bool:
        """Tell whether this hook was asked already."""
        return hook.name in self._offers

    def _answers(self, hook: Hook, plugin: LoadedPlugin) -> list[object]:
        answers: list[object] = []

        def ask() -> None:
            others = [item for name, item in self._manager.list_name_plugin() if name != plugin.name]
            for result in self._manager.subset_hook_caller(hook.name, others)():
                if not isinstance(result, list | tuple):
                    raise _bad_offer(plugin, hook, f"a {type(result).__name__} instead of a list")
                answers.extend(result)

        if not self._guarded(plugin, ask):
            return []
        sound = []
        for value in answers:
            if not isinstance(value, hook.returns):
                wrong: str | None = f"a {type(value).__name__} instead of a {hook.wanted}"
            else:
                wrong = self._checked(plugin, hook, value)
            if wrong:
                plugin.errors.append(str(_bad_offer(plugin, hook, wrong)))
            else:
                sound.append(value)
        return sound

    def _checked(self, plugin: LoadedPlugin, hook: Hook, value: object) -> str | None:
        try:
            return hook.check(value, plugin.builtin)
        except (TypeError, AttributeError, ValueError) as exc:
            return f"fields of a wrong type ({exc})"


def _bad_offer(plugin: LoadedPlugin, hook: Hook, found: str) -> PluginError:
    return PluginError("PLUGIN_OFFER", found=found, where=f"{hook.name} of plugin {plugin.name} ({plugin.owner})")
