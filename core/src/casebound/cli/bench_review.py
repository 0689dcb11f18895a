"""`bench review`, `bench accept`: blank forms for the people who review outputs, and what their reviews come to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from casebound.cli.common import debug_option, format_option, print_json, print_text

if TYPE_CHECKING:
    from casebound.contracts.bench_review import Acceptance

_FILE = click.Path(path_type=Path)
_bundle = click.argument("bundle", metavar="BUNDLE", type=_FILE)
_captures = click.option("--captures", metavar="FILE", type=_FILE, required=True, help="The `captures.json` of a run.")
_repository = click.option(
    "--repository",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The repository whose state is measured, as for `bench check`.",
)


@click.command(
    help="Write a blank form for each admitted output, for an independent person to fill in: the six questions about"
    " its rationale, and each frozen check. No command fills one in, and no form changes a count."
)
@_bundle
@_captures
@click.option("--output", metavar="DIR", type=_FILE, required=True, help="An absolute path outside the repository.")
@_repository
@debug_option
def review(bundle: Path, captures: Path, output: Path, repository: Path | None) -> None:
    """Write the forms and print where they are."""
    from casebound.benchmarks import write_review_forms

    count = write_review_forms(bundle, captures, output, repository=repository)
    print_text(f"{output}\nforms to be filled in by a person: {count}")


@click.command(
    help="Print the truth table of strict acceptance: the checks, the receipts and the REVIEWS of all outputs, each"
    " condition for itself. Status 0 where all hold; even then, a few synthetic cases establish no overall accuracy."
)
@_bundle
@_captures
@click.option("--reviews", metavar="DIR", type=_FILE, required=True, help="The folder of forms that people filled in.")
@_repository
@format_option
@debug_option
def accept(bundle: Path, captures: Path, reviews: Path, repository: Path | None, as_json: bool) -> int:
    """Print each condition with what it found."""
    from casebound.benchmarks import accept as accept_run

    found = accept_run(bundle, captures, reviews, repository=repository)
    if as_json:
        print_json(found.to_json())
    else:
        _print_acceptance(found)
    return found.exit_status


def _print_acceptance(found: Acceptance) -> None:
    from casebound.text import visible

    for condition in found.conditions:
        print_text(f"{'yes' if condition.holds else 'NO '} {condition.name}: {condition.found}")
    print_text(f"strict acceptance: {'yes' if found.accepted else 'no'}; standing: {found.standing}")
    print_text(f"independent review of the references: {found.readiness.independent_review}")
    for limitation in found.limitations:
        print_text(f"- {visible(limitation)}")
