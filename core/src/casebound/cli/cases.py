"""`resolve`, `show`, `resume`, `revise`, `explain`, `verify`, `demo`: reports, and the cases that they become."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from casebound.cli.common import (
    debug_option,
    format_option,
    print_json,
    print_nodes,
    print_note,
    progress,
    replay_option,
)
from casebound.cli.given import Given, case_argument, project_options

if TYPE_CHECKING:
    from casebound.api import Project
    from casebound.result import Result

stop_option = click.option(
    "--stop-after",
    metavar="PHASE",
    help="The last phase to run: admission, construction, research, interpretation, or a plugin's.",
)


@click.command(help="Find the entities that each REPORT is about: the whole job, as far as it goes.")
@click.argument("reports", metavar="REPORT...", nargs=-1, required=True)
@click.option("--package-id", metavar="ID", help="Name the package; a new id is a fresh case of the same report.")
@stop_option
@replay_option
@project_options
def resolve(
    reports: tuple[str, ...],
    package_id: str | None,
    stop_after: str | None,
    replay_from: Path | None,
    given: Given,
    as_json: bool,
) -> int:
    """Resolve reports in the order given; each result is printed as soon as it is there."""
    from casebound.result import common_exit_status

    statuses = []
    with given.open(replay_from) as project:
        with redirect_stdout(sys.stderr):  # what a provider prints when it is made is no answer
            results = project.resolve(reports, package_id=package_id, stop_after=stop_after)
        while (result := _next(project, results)) is not None:
            statuses.append(_told(result, as_json, given.options, runs=_runs(project)))
            _print_notes(project)
    return common_exit_status(statuses)


@click.command(
    help="Show a CASE (its id, or a package id) in one view: result, plan, candidates, assessment, interpretation."
)
@case_argument
@project_options
def show(case: str, given: Given, as_json: bool) -> None:
    """Print what a case holds; nothing is changed."""
    with given.open() as project:
        shown = project.show(case)
        package, runs = project.workspace.find(case), project.has_index
    if as_json:
        print_json(shown)
        return
    from casebound.render.terminal import case_nodes
    from casebound.result import contradictions_told

    with contradictions_told(package):
        picture = case_nodes(shown, given.options, runs=runs)
    print_nodes(picture)  # outside: what goes wrong with the output is no fault of the package


@click.command(help="Let a CASE (its id, or a package id) that waits go on, not before its retry time.")
@click.argument("case", metavar="[CASE]", required=False)
@click.option("--due", is_flag=True, help="Instead: every blocked case whose retry time has come.")
@stop_option
@replay_option
@project_options
def resume(
    case: str | None, due: bool, stop_after: str | None, replay_from: Path | None, given: Given, as_json: bool
) -> int:
    """Go on with one case, or with all that are due, and print a result for each."""
    from casebound.errors import SettingsError

    if due and case is None:
        return _resume_due(given, as_json, stop_after, replay_from)
    if due or case is None:
        found = "both" if due else "neither"
        raise SettingsError("USAGE", pointer="resume", found=found, expected="either a CASE or --due")
    return _take_further(given, as_json, lambda project: project.resume(case, stop_after=stop_after), replay_from)


@click.command(
    help="Interpret each CASE (its id, or a package id) anew under the settings at hand;"
    " its earlier interpretations stay."
)
@click.argument("cases", metavar="CASE...", nargs=-1, required=True)
@stop_option
@project_options
def revise(cases: tuple[str, ...], stop_after: str | None, given: Given, as_json: bool) -> int:
    """Begin a new interpretation of cases in the order given; one that refuses is told, and the next one is revised."""
    from casebound.errors import CaseboundError
    from casebound.result import common_exit_status

    if len(cases) == 1:
        return _take_further(given, as_json, lambda project: project.revise(cases[0], stop_after=stop_after))
    statuses = []
    with given.open() as project:
        project.check_run(stop_after)  # what refuses all of them is told once
        for case in cases:
            try:
                with progress() as project.on_step:
                    result = project.revise(case, stop_after=stop_after)
            except CaseboundError as exc:
                print_note(str(exc.placed(case)))
                statuses.append(exc.exit_status)
                continue
            statuses.append(_told(result, as_json, given.options, runs=_runs(project)))
            _print_notes(project)
    return common_exit_status(statuses)


@click.command(
    help="Explain a CASE (its id, or a package id): each claim down to the report's characters and the table's row."
)
@case_argument
@project_options
def explain(case: str, given: Given, as_json: bool) -> None:
    """Print the chain mention, search, capture, candidates, assessment."""
    with given.open() as project:
        chain = project.explain(case)
        package = project.workspace.find(case)
    if as_json:
        print_json(chain.to_json())
        return
    from casebound.render.terminal import chain_nodes
    from casebound.result import contradictions_told

    with contradictions_told(package):
        picture = chain_nodes(chain)
    print_nodes(picture)


@click.command(help="Derive each PACKAGE again from its own bytes, without database and model, and compare.")
@click.argument("packages", metavar="PACKAGE...", nargs=-1, required=True)
@format_option
@debug_option
def verify(packages: tuple[str, ...], as_json: bool) -> int:
    """Verify packages in the order given; one that is none at all is told, and the next one is verified."""
    from casebound.api import verify as verify_package
    from casebound.errors import CaseboundError
    from casebound.render.terminal import verification_nodes, verification_notes
    from casebound.result import common_exit_status

    statuses, verifications = [], []
    for package in packages:
        try:
            with redirect_stdout(sys.stderr):  # what a plugin prints is no answer
                verification = verify_package(package)
        except CaseboundError as exc:
            print_note(str(exc))
            statuses.append(exc.exit_status)
            continue
        if as_json:
            print_json(verification.to_json())
        else:
            print_nodes(verification_nodes(verification))
        statuses.append(0 if verification else 1)
        verifications.append(verification)
    if not as_json:
        print_nodes(verification_notes(verifications))
    return common_exit_status(statuses)


@click.command(help="Lay out an embedded sample in a folder, resolve it and explain the result. NAME: which sample.")
@click.argument("name", required=False)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    help="An empty folder for the sample and its cases; default: a new temporary one, which is kept.",
)
@debug_option
def demo(name: str | None, workspace: Path | None) -> int:
    """Run the demo; the last lines are the paths of package and summary."""
    from casebound.demo import run_demo
    from casebound.render.terminal import chain_nodes, result_nodes
    from casebound.result import common_exit_status

    with progress() as on_step:
        run = run_demo(name, workspace=workspace, on_step=on_step)
    pictures = [chain_nodes(chain) for chain in run.chains]
    pictures += [
        result_nodes(result.to_json(), summary=result.summary, searches=result.searches, options=run.options)
        for result in run.results
    ]
    print_nodes([tree for picture in pictures for tree in picture])
    return common_exit_status(result.exit_status for result in run.results)


# --- what these commands share ----------------------------------------------------------------------------------------


def _take_further(
    given: Given, as_json: bool, take: Callable[[Project], Result], replay_from: Path | None = None
) -> int:
    with given.open(replay_from) as project:
        with progress() as project.on_step:
            result = take(project)
        _print_result(result, as_json, given.options, runs=_runs(project))
        _print_notes(project)
    return result.exit_status


def _resume_due(given: Given, as_json: bool, stop_after: str | None, replay_from: Path | None) -> int:
    """Resume what is due; the results are printed as they come, and how many cases were left."""
    from asyncio import CancelledError

    from casebound.cli.stopping import Stopping, leave_at_once
    from casebound.due import DueRun

    answers = sys.stdout

    def tell(result: Result) -> None:
        with redirect_stdout(answers):
            _told(result, as_json, given.options, runs=_runs(project))

    with Stopping() as stopping, given.open(replay_from) as project:
        due = DueRun(project, tell, stop_after=stop_after)
        try:
            with redirect_stdout(sys.stderr):  # what a provider prints is no answer
                summary = due.execute(lambda task: stopping.of(due.run, task))
        except CancelledError:
            leave_at_once(answers, sys.stderr)
        if summary.error is not None:
            print_note(summary.error)
        if summary.left:
            number = "1 blocked case was" if summary.left == 1 else f"{summary.left} blocked cases were"
            print_note(f"{number} left: the next one may go on from {summary.retry_at}")
        _print_notes(project)
    return due.exit_status(summary)


def _next(project: Project, results: Iterator[Result]) -> Result | None:
    with progress() as project.on_step:
        return next(results, None)


def _told(result: Result, as_json: bool, options: str, *, runs: bool = False) -> int:
    """Print one of several results and return its exit status; one that cannot be printed does not end the others."""
    from casebound.errors import CaseboundError

    try:
        _print_result(result, as_json, options, runs=runs)
    except CaseboundError as exc:
        print_note(str(exc.placed(result.report or result.package or "")))
        return exc.exit_status
    return result.exit_status


def _print_result(result: Result, as_json: bool, options: str, *, runs: bool) -> None:
    if as_json:
        print_json(result.to_json())
        return
    from casebound.render.terminal import result_nodes

    line = result.to_json()
    print_nodes(result_nodes(line, summary=result.summary, searches=result.searches, options=options, runs=runs))


def _runs(project: Project) -> bool:
    """Tell whether `casebound run` goes on with a case; where replies are replayed it would ask the live model."""
    return project.has_index and project.replay is None


def _print_notes(project: Project) -> None:
    while project.notes:
        print_note(project.notes.pop(0))
