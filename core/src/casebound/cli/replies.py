"""`record`, `rehearse`: what was answered, taken out of a package or judged once more."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from casebound.cli.common import debug_option, print_text


@click.command(help="Write the recorded replies of a PACKAGE into one new file, for `resolve --replay-from`.")
@click.argument("package", metavar="PACKAGE", type=click.Path(path_type=Path))
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), required=True, help="A file that is not there.")
@debug_option
def record(package: Path, out: Path) -> None:
    """Write a recording and print its path."""
    from casebound.api import record as record_package

    with redirect_stdout(sys.stderr):  # what a plugin prints is no answer
        record_package(package, out)
    print_text(str(out))
