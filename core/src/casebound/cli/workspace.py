"""`run`, `reindex`: what concerns all cases of a workspace together."""

from __future__ import annotations

import click

from casebound.cli.cases import stop_option
from casebound.cli.common import print_json, print_note, print_text
from casebound.cli.given import Given, project_options


@click.command(help="Take the cases of the workspace as far as they go, many at once; Ctrl-C lets it end in order.")
@click.option("--case-id", metavar="ID", help="Only the cases of this id.")
@click.option("--package-id", metavar="ID", help="Only this package.")
@stop_option
@click.option("--max-dispatches", type=click.IntRange(0), metavar="N", help="Make at most N model calls.")
@click.option("--jobs", type=click.IntRange(1, 4096), metavar="N", help="Cases at once; default: [limits] in_flight.")
@click.option("--wait", is_flag=True, help="Stay until pending retries have come due.")
@click.option("--leased", hidden=True, metavar="OWNER", help="Work on a case that this owner leases.")
@project_options
def run(
    case_id: str | None,
    package_id: str | None,
    stop_after: str | None,
    max_dispatches: int | None,
    jobs: int | None,
    wait: bool,
    leased: str | None,
    given: Given,
    as_json: bool,
) -> int:
    """Run, show how it goes, and print what came of it."""
    from casebound.cli.stopping import Stopping
    from casebound.runs import Run, RunOptions

    options = RunOptions(
        case_id=case_id,
        package_id=package_id,
        stop_after=stop_after,
        max_dispatches=max_dispatches,
        jobs=jobs,
        wait=wait,
        leased=leased,
    )
    with Stopping() as stopping, given.open() as project:
        work = Run(project, options)
        if not as_json:
            work.tell = lambda ended: print_text(f"{ended.row.package_id}  {ended.row.state}")
        summary = work.execute(lambda task: stopping.of(work, task))
        if as_json:
            print_json(summary.to_json())
        else:
            print_note(f"{summary}")
    return summary.exit_status


@click.command(help="Make the index of the workspace again from its packages; no case is changed.")
@project_options
def reindex(given: Given, as_json: bool) -> None:
    """Print how many cases stand where."""
    with given.open() as project:
        states = project.reindex().states
    number = sum(states.values())
    if as_json:
        print_json({"cases": number, "states": dict(states)})
        return
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    print_text(f"{number} {'case' if number == 1 else 'cases'}" + (f": {told}" if told else ""))
