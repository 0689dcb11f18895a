"""What every command about a project and its cases is given: where settings and cases are, and how to answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from casebound.cli.common import debug_option, format_option, settings_options, workspace_option

if TYPE_CHECKING:
    from casebound.api import Project

R = TypeVar("R")

case_argument = click.argument("case", metavar="CASE")


@dataclass(frozen=True, slots=True)
class Given:
    """Where settings and cases are, as the command line says; None where it does not say."""

    project_config: Path | None
    llm_config: Path | None
    workspace: Path | None

    @contextmanager
    def open(self, replay_from: Path | None = None) -> Iterator[Project]:
        """Open the project for one command; `replay_from` is what `--replay-from` named."""
        from casebound.api import Project

        project = Project.open(
            self.project_config, llm_config=self.llm_config, workspace=self.workspace, replay_from=replay_from
        )
        try:
            yield project
        finally:
            project.close()

    @property
    def options(self) -> str:
        """What the next command needs to find the same settings and cases again."""
        named = {
            "--project-config": self.project_config,
            "--llm-config": self.llm_config,
            "--workspace": self.workspace,
        }
        return shlex.join(part for name, path in named.items() if path is not None for part in (name, str(path)))


def project_options(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options of a command that opens a project: arguments `given`, a `Given`, and `as_json`."""

    @settings_options
    @workspace_option
    @format_option
    @debug_option
    @wraps(function)
    def command(
        *,
        project_config: Path | None,
        llm_config: Path | None,
        workspace: Path | None,
        **others: Any,  # noqa: ANN401  # whatever the command takes
    ) -> R:
        return function(given=Given(project_config, llm_config, workspace), **others)

    return command
