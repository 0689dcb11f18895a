"""`record`, `rehearse`: what was answered, taken out of a package or judged once more."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from casebound.cli.common import debug_option, format_option, print_json, print_nodes, print_text

_package = click.argument("package", metavar="PACKAGE", type=click.Path(path_type=Path))


@click.command(help="Write the recorded replies of a PACKAGE into one new file, for `resolve --replay-from`.")
@_package
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), required=True, help="A file that is not there.")
@debug_option
def record(package: Path, out: Path) -> None:
    """Write a recording and print its path."""
    from casebound.api import record as record_package

    with redirect_stdout(sys.stderr):  # what a plugin prints is no answer
        record_package(package, out)
    print_text(str(out))


@click.command(
    help="Judge the recorded replies of a PACKAGE by the rules of another version; nothing is written. Without a"
    " version: by those that it froze, status 1 where they say otherwise than was recorded."
)
@_package
@click.option("--interpretation-protocol", "interpretation", metavar="N", type=int, help="For interpretations.")
@click.option("--resolution-protocol", "resolution", metavar="N", type=int, help="For plans and assessments.")
@format_option
@debug_option
def rehearse(package: Path, interpretation: int | None, resolution: int | None, as_json: bool) -> int:
    """Print, by stage and attempt, what was recorded and what was found now."""
    from casebound.api import rehearse as rehearse_package
    from casebound.render.rehearsal import rehearsal_nodes

    with redirect_stdout(sys.stderr):  # what a plugin prints is no answer
        rehearsal = rehearse_package(package, interpretation=interpretation, resolution=resolution)
    if as_json:
        print_json(rehearsal.to_json())
    else:
        print_nodes(rehearsal_nodes(rehearsal))
    return rehearsal.exit_status
