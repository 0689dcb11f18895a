"""`run`: all cases of a workspace, many at once."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from casebound.cli.cases import stop_option
from casebound.cli.common import debugging, print_json, print_nodes, print_note, print_text
from casebound.cli.given import Given, project_options
from casebound.cli.stopping import Stopping, leave_at_once

if TYPE_CHECKING:
    from casebound.cli.log import JsonLog
    from casebound.runs import Run, RunOptions
    from casebound.workspace.outcome import Ended, RunSummary


@click.command(help="Take the cases of the workspace as far as they go, many at once. Ctrl-C ends the run in order.")
@click.option("--case-id", metavar="ID", help="Only the cases of this id.")
@click.option("--package-id", metavar="ID", help="Only this package.")
@stop_option
@click.option("--max-dispatches", type=click.IntRange(0), metavar="N", help="Make at most N model calls.")
@click.option("--jobs", type=click.IntRange(1, 4096), metavar="N", help="Cases at once; default: [limits] in_flight.")
@click.option("--wait", is_flag=True, help="Stay until pending retries have come due.")
@click.option("--dry-run", is_flag=True, help="Tell what would be sent, and at most be spent; nothing is.")
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What happens, on standard error, for a person or for a program.",
)
@click.option("--leased", hidden=True, metavar="OWNER", help="Work on the package that this owner leases.")
@project_options
def run(
    case_id: str | None,
    package_id: str | None,
    stop_after: str | None,
    max_dispatches: int | None,
    jobs: int | None,
    wait: bool,
    dry_run: bool,
    log: str,
    leased: str | None,
    given: Given,
    as_json: bool,
) -> int:
    """Run, show how it goes, and print what came of it."""
    with Stopping() as stopping:
        from casebound.runs import RunOptions

        options = RunOptions(
            case_id=case_id,
            package_id=package_id,
            stop_after=stop_after,
            max_dispatches=max_dispatches,
            jobs=jobs,
            wait=wait,
            leased=leased,
        )
        if dry_run:
            return _foretell(options, given, as_json=as_json)
        return _execute(options, given, stopping, as_json=as_json, as_log=log == "json")


def _foretell(options: RunOptions, given: Given, *, as_json: bool) -> int:
    from casebound.render.forecast import forecast_nodes
    from casebound.runs import Run

    with given.open() as project, redirect_stdout(sys.stderr):  # what a plugin prints is no answer
        found = Run(project, options).forecast().to_json()
    if as_json:
        print_json(found)
    else:
        print_nodes(forecast_nodes(found))
    return 1 if found["refused_total"] else 0


def _execute(options: RunOptions, given: Given, stopping: Stopping, *, as_json: bool, as_log: bool) -> int:
    from casebound.cli.log import JsonLog
    from casebound.clock import SystemClock, format_time
    from casebound.errors import CaseboundError
    from casebound.render.run import run_nodes
    from casebound.runs import Run

    log = JsonLog(SystemClock()) if as_log else None
    try:
        with given.open() as project:
            with redirect_stdout(sys.stderr):  # what a provider prints when it is made is no answer
                work = Run(project, options)
            summary = _watched(work, stopping, log, as_json=as_json)
    except CaseboundError as exc:
        if log is None:
            raise
        log.failed(exc)
        return exc.exit_status
    if log is not None:
        log.summary(summary)
    if as_json:
        print_json(summary.to_json())
    else:
        print_nodes(run_nodes(summary.to_json(), format_time(SystemClock().now()), given.options))
    return summary.exit_status


def _watched(run: Run, stopping: Stopping, log: JsonLog | None, *, as_json: bool) -> RunSummary:
    """Execute the run; a terminal sees a picture of it, a pipe a line a case, a log every event."""
    output, pictured = sys.stdout, log is None and sys.stderr.isatty()
    if log is not None:
        run.project.on_step, run.tell = log.step, log.ended
        stopping.say, stopping.say_last = log.stopping, log.ended_at_once
    else:
        lined = not as_json and not (pictured and output.isatty())
        run.tell = _teller(run, output if lined else None)
    with ExitStack() as shown:

        def leave() -> NoReturn:
            shown.close()
            leave_at_once(output, sys.stderr)

        if pictured:
            from casebound.cli.live import live_picture

            shown.enter_context(live_picture(run))
        shown.enter_context(redirect_stdout(sys.stderr))  # what a plugin prints is no answer
        stopping.leave = leave
        try:
            return run.execute(lambda task: stopping.of(run, task))
        except asyncio.CancelledError:
            leave()


def _teller(run: Run, output: TextIO | None) -> Callable[[Ended], None]:
    """Return what tells of a case that ended: a line on `output`, and what is wrong with it on standard error."""
    from casebound.clock import format_time
    from casebound.settings import redact_environment

    def tell(ended: Ended) -> None:
        row = ended.row
        code, until = ended.code or row.code, None
        if row.retry_at:
            until = f"until {row.retry_at}" if row.retry_at > format_time(run.project.clock.now()) else "due"
        if output is not None:
            print_text("  ".join(filter(None, (row.package_id, row.state, code, until))), output)
        if ended.refused:
            print_note(f"{row.package_id}: {ended.message}")
        if ended.message is not None and debugging():
            print_note(redact_environment("".join(traceback.format_exception(ended.error))))

    return tell
