"""`import`: reports become admitted cases, with a picture of how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

import click

from casebound.cli.common import print_json, print_note, print_text
from casebound.cli.given import Given, project_options
from casebound.words import counted

if TYPE_CHECKING:
    from casebound.workspace.importing import Import, ImportSummary

UNAVAILABLE = 3
_EACH = 1000  # reports, between two lines into a pipe

OnReport = Callable[["Import"], None]


@click.command(
    name="import",
    help="Admit the reports of files, folders and standard input (-): Markdown, text, JSON, JSON Lines, GitHub exports."
    " No model is asked. What the workspace holds already is not imported again.",
)
@click.argument("paths", metavar="FILE|FOLDER|-...", nargs=-1, required=True)
@click.option("--package-id", metavar="ID", help="Name the package of a single report; a new id is a fresh case of it.")
@project_options
def import_reports(paths: tuple[str, ...], package_id: str | None, given: Given, as_json: bool) -> int:
    """Import, and print what became of the reports, also of those before one that ended the import."""
    from casebound.errors import UnavailableError

    last: list[Import] = []
    try:
        with given.open() as project, _progress(paths) as on_report:

            def keep(running: Import) -> None:
                last[:] = [running]
                on_report(running)

            summary = project.import_reports(paths, package_id=package_id, on_report=keep)
    except UnavailableError as exc:
        if last:
            _print(last[0].summary, as_json)
        print_note(str(exc))
        return exc.exit_status if last and last[0].summary.imported else UNAVAILABLE
    except KeyboardInterrupt:
        if last:
            print_note(f"interrupted; {_counts(last[0].summary)}; the same command goes on")
        raise
    if not summary.total:
        print_note("nothing that is a report was found")
    _print(summary, as_json)
    return summary.exit_status


@contextmanager
def _progress(paths: tuple[str, ...]) -> Iterator[OnReport]:
    """Give what is to be called after each report: a terminal shows a bar, a pipe gets a line now and then."""
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield _tell_sometimes
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from casebound.workspace.gathering import size_of

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar, redirect_stdout(sys.stderr):
        task = bar.add_task("starting", total=size_of(paths))

        def show(running: Import) -> None:
            bar.update(task, completed=running.bytes_read, description=_counts(running.summary))

        yield show


def _tell_sometimes(running: Import) -> None:
    if running.summary.total % _EACH == 0:
        print_note(_counts(running.summary))


def _counts(summary: ImportSummary) -> str:
    refused = f", {summary.refused_total} refused" if summary.refused_total else ""
    return f"{summary.imported} imported, {summary.known} known{refused}"


def _print(summary: ImportSummary, as_json: bool) -> None:
    if summary.passed_over:
        print_note(f"{counted(summary.passed_over, 'pull request')} passed over: no report")
    if summary.lacking_comments:
        print_note(
            f"{counted(summary.lacking_comments, 'issue')} with comments that the export does not hold;"
            " `gh issue list --json number,title,body,comments,url` exports them"
        )
    if as_json:
        print_json(summary.to_json())
        return
    for refused in summary.refused:
        print_note(refused.error)
    if (more := summary.refused_total - len(summary.refused)) > 0:
        print_note(f"and {more} more")
    print_text(_counts(summary))
