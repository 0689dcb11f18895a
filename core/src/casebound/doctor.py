"""What stands between a project and a run: plugins, settings, database, models; nothing is sent to a model.

Each plugin is loaded in a process of its own first, with a time limit. Only those that came through are loaded here, so
that one that hangs, or ends the process, is found and named.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from casebound.binding import Bound, bind, build_provider
from casebound.errors import CaseboundError, PluginError, SettingsError
from casebound.host import Host, build_host
from casebound.installed import Installed, installed_plugins
from casebound.processes import run_bounded
from casebound.research.catalog import CatalogSource, open_database
from casebound.settings import Settings, find_settings, load_settings, redact_environment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `detail` says what was found."""

    name: str
    status: Literal["ok", "failed", "skipped", "warning"]
    detail: str | None = None


def examine(
    project_config: Path | None = None,
    *,
    llm_config: Path | None = None,
    timeout_s: float = 20,
    start: Path | None = None,
) -> list[Check]:
    """Check everything that a run would need.

    Args:
        project_config: the settings file; None: the nearest one from `start` upwards, if there is any.
        llm_config: a file whose `[llm]` table replaces that of the settings.
        timeout_s: seconds that each plugin may take to load.
        start: where the search for settings begins; None: the current folder.
    """
    points = installed_plugins()
    with ThreadPoolExecutor(max_workers=4) as pool:
        checks = list(pool.map(lambda point: probe_plugin(point, timeout_s), points))
    sound = [point for point, check in zip(points, checks, strict=True) if check.status == "ok"]
    if project_config is None:
        try:
            project_config = find_settings(start)
        except CaseboundError as exc:
            return [*checks, Check("settings", "skipped", exc.found)]
    return [*checks, *_examine_project(project_config, llm_config, sound, points)]


def probe_plugin(point: Installed, timeout_s: float) -> Check:
    """Load one plugin in a process of its own; tell what came of it."""
    name, owner = f"plugin {point.name}", f"{point.distribution} {point.version}"
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        arguments = (str(answer), point.name, point.value, point.distribution, point.version)
        status, _ = run_bounded([sys.executable, "-P", "-m", "casebound.plugin_probe", *arguments], timeout_s=timeout_s)
        if status is None:
            return Check(name, "failed", f"{owner}: it did not load within {timeout_s:g} seconds")
        if not answer.is_file():
            return Check(name, "failed", f"{owner}: it ended the process that loaded it, with status {status}")
        found = json.loads(answer.read_bytes())
    trouble = "\n".join(text for text in (found["error"], found["traceback"]) if text)
    return Check(name, "failed", f"{owner}\n{trouble}") if trouble else Check(name, "ok", owner)


def _examine_project(
    project_config: Path, llm_config: Path | None, sound: list[Installed], points: tuple[Installed, ...]
) -> list[Check]:
    checks: list[Check] = []
    settings = _attempt(
        checks, "settings", lambda: load_settings(project_config, llm_config=llm_config), str(project_config)
    )
    if settings is None:
        return checks
    host = _attempt(checks, "plugins together", lambda: _sound_host(settings, sound, points))
    bound = _attempt(checks, "names in the settings", lambda: bind(settings, host)) if host else None
    if bound is None:
        return checks
    if settings.database is None:
        checks.append(Check("database", "skipped", "no [database] table"))
    else:
        _attempt(checks, "database", lambda: _look_at_database(bound))
        _note_missing_tables(checks, bound)
    first = len(checks)
    for stage in bound.stages:
        _attempt(checks, f"model of {stage}", partial(_build_and_close, bound, stage))
    return [*checks[:first], *_told_once(checks[first:])]


def _told_once(checks: list[Check]) -> list[Check]:
    """Let a failure that repeats an earlier one say only that it does."""
    told: dict[str | None, str] = {}
    found = []
    for check in checks:
        earlier = told.setdefault(check.detail, check.name) if check.status == "failed" else check.name
        found.append(check if earlier == check.name else replace(check, detail=f"the same as {earlier}"))
    return found


def _attempt(checks: list[Check], name: str, call: Callable[[], T], detail: str | None = None) -> T | None:
    """Note what comes of `call`; return its result, None where it failed."""
    try:
        result = call()
    except CaseboundError as exc:
        checks.append(Check(name, "failed", str(exc)))
    except Exception as exc:  # noqa: BLE001  # a plugin's own class may raise anything while it is built
        checks.append(Check(name, "failed", redact_environment(f"{type(exc).__name__}: {exc}")))
    else:
        checks.append(Check(name, "ok", result if isinstance(result, str) else detail))
        return result
    return None


def _sound_host(settings: Settings, sound: list[Installed], points: tuple[Installed, ...]) -> Host:
    """Build a host with the plugins that came through, those that the settings pin if they do."""
    pinned = settings.project.plugins
    if pinned is not None:
        known = {point.name for point in points}
        loadable = {point.name for point in sound}
        pinned = tuple(name for name in pinned if name in loadable or name not in known)
    host = build_host(pinned, entry_points=sound)
    for plugin in host.plugins:
        if plugin.error:
            raise PluginError("PLUGIN_BROKEN", found=plugin.error, where=f"plugin {plugin.name}")
    return host


def _look_at_database(bound: Bound) -> str:
    with _opened(bound) as source:
        for catalog in bound.catalogs:
            source.freeze_catalog(catalog)
        for rule in bound.enrichments:
            source.freeze_rule(rule)
        binding = source.binding()
    return f"{binding.dialect} {binding.database}, snapshot {binding.snapshot_id}"


def _note_missing_tables(checks: list[Check], bound: Bound) -> None:
    """Warn of tables of the allowlist that do not exist; those that a catalog or rule needs have failed already."""
    used = {catalog.table for catalog in bound.catalogs} | {rule.table for rule in bound.enrichments}
    try:
        with _opened(bound) as source:
            missing = source.missing_tables()
    except CaseboundError:
        return  # the check of the database has told it
    if needed := [table for table in missing if table in used]:
        checks.append(Check("tables", "failed", f"the database has no table {', '.join(needed)}, which is used"))
    if others := [table for table in missing if table not in used]:
        checks.append(Check("tables", "warning", f"the database has no table {', '.join(others)}; nothing uses it"))


@contextmanager
def _opened(bound: Bound) -> Iterator[CatalogSource]:
    source = open_database(bound.settings)
    try:
        yield source
    except SettingsError as exc:
        raise exc.placed(str(bound.settings.path)) from None
    finally:
        source.close()


def _build_and_close(bound: Bound, stage: str) -> str:
    model = bound.stages[stage]
    said = []
    for choice in model.answerers:
        provider = build_provider(choice, bound.host, bound.settings.llm_path)
        asyncio.run(provider.aclose())
        description = getattr(provider, "description", None)
        said.append(f"{choice.name} ({description})" if description else choice.name)
    who = ", then ".join(said)
    paid = any(choice.spec.resolver == "model" for choice in model.answerers)
    return f"{who}, not contacted: a call may cost money" if paid else who
