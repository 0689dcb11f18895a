"""What a command does, as a Python call: `casebound.resolve`, `casebound.verify` and friends.

Each function opens a `Project` for one call; who makes several opens one and keeps it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casebound.errors import SettingsError
from casebound.host import Host, build_host
from casebound.project import Path_, Project
from casebound.recording import write_recording
from casebound.rehearsal import Rehearsal, rehearse_package
from casebound.result import Result
from casebound.verification import Verification, verify_package
from casebound.workspace.importing import ImportSummary

if TYPE_CHECKING:
    from casebound.render.chain import Chain
    from casebound.workspace.status import Status

__all__ = [
    "Project",
    "Result",
    "Verification",
    "explain",
    "import_reports",
    "record",
    "rehearse",
    "resolve",
    "resume",
    "resume_due",
    "revise",
    "show",
    "status",
    "verify",
]


def resolve(
    *reports: Path_,
    project_config: Path_ | None = None,
    llm_config: Path_ | None = None,
    workspace: Path_ | None = None,
    package_id: str | None = None,
    stop_after: str | None = None,
    replay_from: Path_ | None = None,
) -> list[Result]:
    """Resolve reports with the project's settings and return one result a report, in order.

    Args:
        reports: files.
        project_config: `casebound.toml`; None: the nearest one upwards from the current folder.
        llm_config: a TOML file whose `[llm]` table replaces that of the settings.
        workspace: folder of the packages; None: `.casebound/` beside the settings.
        package_id: of a single report: a fresh case of it.
        stop_after: the last phase to run.
        replay_from: a recording, or a package: its recorded replies answer, and no model is asked.

    Raises:
        CaseboundError: nothing could be done; what happened to one report stands in its result.
    """
    project = Project.open(project_config, llm_config=llm_config, workspace=workspace, replay_from=replay_from)
    try:
        return list(project.resolve(reports, package_id=package_id, stop_after=stop_after))
    finally:
        project.close()


def import_reports(
    *reports: Path_,
    project_config: Path_ | None = None,
    workspace: Path_ | None = None,
    package_id: str | None = None,
) -> ImportSummary:
    """Admit many reports into the workspace; nothing else is done with them, and nobody is asked.

    Args:
        reports: files (one report each, JSON Lines, JSON arrays, GitHub exports), folders, `-` for standard input.
        project_config: as for `resolve`.
        workspace: as for `resolve`.
        package_id: of a single report: a fresh case of it.

    Raises:
        CaseboundError: nothing could be done; what happened to one report is counted in the summary.
    """
    project = Project.open(project_config, workspace=workspace)
    try:
        return project.import_reports(reports, package_id=package_id)
    finally:
        project.close()


def resume(
    case: str,
    *,
    project_config: Path_ | None = None,
    llm_config: Path_ | None = None,
    workspace: Path_ | None = None,
    stop_after: str | None = None,
    replay_from: Path_ | None = None,
) -> Result:
    """Go on with a blocked case. Arguments and errors as `resolve` and `Project.resume`."""
    project = Project.open(project_config, llm_config=llm_config, workspace=workspace, replay_from=replay_from)
    try:
        return project.resume(case, stop_after=stop_after)
    finally:
        project.close()


def resume_due(
    *,
    project_config: Path_ | None = None,
    llm_config: Path_ | None = None,
    workspace: Path_ | None = None,
    stop_after: str | None = None,
    replay_from: Path_ | None = None,
) -> list[Result]:
    """Go on with every blocked case whose retry time has come; return a result for each, in the order they ended.

    Raises:
        CaseboundError: nothing could be done; what happened to one case stands in its result.
    """
    from casebound.due import DueRun

    results: list[Result] = []
    project = Project.open(project_config, llm_config=llm_config, workspace=workspace, replay_from=replay_from)
    try:
        DueRun(project, results.append, stop_after=stop_after).execute()
    finally:
        project.close()
    return results


def revise(
    case: str,
    *,
    project_config: Path_ | None = None,
    llm_config: Path_ | None = None,
    workspace: Path_ | None = None,
    stop_after: str | None = None,
) -> Result:
    """Interpret a case anew under the settings at hand. Arguments and errors as `resolve` and `Project.revise`."""
    project = Project.open(project_config, llm_config=llm_config, workspace=workspace)
    try:
        return project.revise(case, stop_after=stop_after)
    finally:
        project.close()


def show(case: str, *, project_config: Path_ | None = None, workspace: Path_ | None = None) -> dict[str, Any]:
    """Return the result of a case with its plan, candidates, assessment and interpretation, as JSON data."""
    return Project.open(project_config, workspace=workspace).show(case)


def status(*, project_config: Path_ | None = None, workspace: Path_ | None = None) -> Status:
    """Return how the cases of a workspace stand; `to_json()` gives what the command prints.

    Raises:
        CaseboundError: as `casebound.workspace.status.take_status`.
    """
    from casebound.workspace.status import take_status

    project = Project.open(project_config, workspace=workspace)
    return take_status(project.workspace, project.settings, project.clock, tuple(project.host.phases))


def explain(case: str, *, project_config: Path_ | None = None, workspace: Path_ | None = None) -> Chain:
    """Return the chain from each mention to its assessment."""
    return Project.open(project_config, workspace=workspace).explain(case)


def record(package: Path_, file: Path_, *, host: Host | None = None) -> None:
    """Write the recorded replies of a package into a new file, which `replay_from` takes.

    Args:
        package: the folder that holds `package.json`.
        file: where the recording goes; nothing may be there.
        host: the plugins to use; None: all that are installed.

    Raises:
        SettingsError: `PACKAGE_UNREADABLE`; `REPLAY_SOURCE` for a package that does not hold or has no replies;
            `OUTPUT_FILE`; `USAGE` for what is no path.
        PluginError: `PLUGIN_MISSING`, with the distribution that is needed to judge the package.
    """
    write_recording(_package_path(package), Path(file), host or build_host())


def rehearse(
    package: Path_, *, interpretation: int | None = None, resolution: int | None = None, host: Host | None = None
) -> Rehearsal:
    """Judge the recorded replies of a package by another version's rules; nothing is written.

    Args:
        package: the folder that holds `package.json`.
        interpretation: the interpretation protocol to judge by; None: the frozen one.
        resolution: the resolution protocol to judge plans and assessments by; None: the frozen one.
        host: the plugins to use; None: all that are installed.

    Raises:
        CaseboundError: as `casebound.rehearsal.rehearse_package`; `USAGE` for what is no path, or no number.
    """
    path = _package_path(package)
    for name, version in (("interpretation", interpretation), ("resolution", resolution)):
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            found = f"a {type(version).__name__}"
            raise SettingsError("USAGE", pointer=name, found=found, expected="an int, or None", hint="give a number")
    return rehearse_package(path, host or build_host(), interpretation=interpretation, resolution=resolution)


def verify(package: Path_, *, host: Host | None = None) -> Verification:
    """Derive every step of a package again from its bytes, without database, model or network.

    Args:
        package: the folder that holds `package.json`, wherever it lies.
        host: the plugins to use; None: all that are installed.

    Raises:
        SettingsError: `PACKAGE_UNREADABLE`; `USAGE` for what is no path.
    """
    return verify_package(_package_path(package), host or build_host())


def _package_path(package: Path_) -> Path:
    if not isinstance(package, str | os.PathLike):
        raise SettingsError(
            "USAGE", found=f"a {type(package).__name__}", expected="the path of a package", hint="give one"
        )
    return Path(package)
