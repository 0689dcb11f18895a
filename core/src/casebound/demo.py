"""The demo as a Python call: an embedded sample is laid out in a folder, resolved, and explained."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from casebound.api import Project
from casebound.errors import SettingsError
from casebound.host import Host, build_host
from casebound.render.chain import Chain, derive_chain
from casebound.result import Result
from casebound.settings import FILE_NAME
from casebound.specs import Demo
from casebound.store.package import Package


@dataclass(frozen=True, slots=True)
class DemoRun:
    """What a demo gave.

    Attributes:
        name: of the demo.
        folder: holds settings and reports.
        results: one a report, in order.
        chains: one a result that has a package, in the same order.
        options: what a later command needs to find the cases again.
    """

    name: str
    folder: Path
    results: tuple[Result, ...]
    chains: tuple[Chain, ...]
    options: str


def run_demo(
    name: str | None = None,
    *,
    workspace: str | os.PathLike[str] | None = None,
    on_step: Callable[[Package, str], None] = lambda package, step: None,
) -> DemoRun:
    """Lay out a sample, resolve its reports and explain them.

    Args:
        name: which demo; None: the only one that is installed.
        workspace: an empty or new folder, which then holds the sample and its cases; None: a new temporary folder
            that is kept, with the cases in `.casebound/` as for any other project.
        on_step: called with package and step, for progress.

    Raises:
        SettingsError: no such demo, several to choose from, or a folder that is in use.
        CaseboundError: nothing could be done; what happened to one report stands in its result.
    """
    host = build_host()
    demo = _choose(host, name)
    folder = Path(tempfile.mkdtemp(prefix="casebound-")) if workspace is None else _prepare(Path(workspace))
    fill: Callable[[Path], Sequence[Path]] = host.load_named("demos", demo.name, demo.folder)
    reports = fill(folder)
    project = Project.open(folder / FILE_NAME, workspace=workspace)
    project.on_step = on_step
    try:
        results = tuple(project.resolve(reports))
    finally:
        project.close()
    packages = [Path(result.package) for result in results if result.package]
    chains = tuple(derive_chain(Package(root)) for root in packages)
    return DemoRun(demo.name, folder, results, chains, _options(folder, workspace))


def _options(folder: Path, workspace: str | os.PathLike[str] | None) -> str:
    found = ["--project-config", str(folder / FILE_NAME)]
    if workspace is not None:
        found += ["--workspace", str(folder)]
    return shlex.join(found)


def _choose(host: Host, name: str | None) -> Demo:
    demos = host.demos
    if name is None and not demos:
        raise SettingsError(
            "SETTINGS_NAME",
            found="no demo",
            expected="a plugin that offers one",
            hint="install a plugin of your domain that has a demo; `casebound plugins` lists what each one offers",
        )
    if name is None and len(demos) > 1:
        raise SettingsError(
            "USAGE", pointer="demo", found="several demos", allowed=sorted(demos), hint="name one of them"
        )
    chosen: Demo = host.need("demos", next(iter(demos)) if name is None else name)
    return chosen


def _prepare(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        used = next(folder.iterdir(), None)
    except OSError as exc:
        raise SettingsError(
            "USAGE", path=str(folder), found=exc.strerror, expected="a folder that can be written"
        ) from exc
    if used is not None:
        raise SettingsError(
            "USAGE", path=str(folder), found=f"a folder that holds {used.name}", expected="an empty folder"
        )
    return folder
