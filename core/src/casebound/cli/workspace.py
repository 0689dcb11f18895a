"""`status`, `reindex`: what concerns all cases of a workspace together."""

from __future__ import annotations

import click

from casebound.cli.common import print_json, print_table, print_text
from casebound.cli.given import Given, project_options
from casebound.words import counted


@click.command(help="Tell how the cases of the workspace stand: what is done, what waits for whom, what it has cost.")
@project_options
def status(given: Given, as_json: bool) -> None:
    """Print how the workspace stands; of the cases themselves nothing is changed."""
    from casebound.workspace.status import take_status

    with given.open() as project:
        found = take_status(project.workspace, project.settings, project.clock, tuple(project.host.phases)).to_json()
    if as_json:
        print_json(found)
        return
    from casebound.render.status import status_parts

    before: object = ""
    for part in status_parts(found):
        if not (isinstance(before, str) and isinstance(part, str)) and before:
            print_text("")
        if isinstance(part, str):
            print_text(part)
        else:
            print_table(*part)
        before = part


@click.command(help="Make the index of the workspace again from its packages; no case is changed.")
@project_options
def reindex(given: Given, as_json: bool) -> None:
    """Print how many cases stand where."""
    with given.open() as project:
        states = project.reindex()
    number = sum(states.values())
    if as_json:
        print_json({"cases": number, "states": states})
        return
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    print_text(counted(number, "case") + (f": {told}" if told else ""))
