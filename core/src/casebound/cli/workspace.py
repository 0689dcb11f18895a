"""`reindex`: what concerns all cases of a workspace together."""

from __future__ import annotations

import click

from casebound.cli.common import print_json, print_text
from casebound.cli.given import Given, project_options


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
