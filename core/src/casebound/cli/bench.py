"""`bench`: frozen benchmarks of a prompt. Other modules of this folder hold what is added below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from casebound.cli.bench_review import accept, review
from casebound.cli.common import debug_option, format_option, print_json, print_text

if TYPE_CHECKING:
    from casebound.contracts.bench_checks import CheckedSlot, CheckSummary

_FILE = click.Path(path_type=Path)


@click.group(help="Prepare and check frozen benchmarks of a prompt.")
def bench() -> None:
    """Hold the commands about benchmarks."""


bench.add_command(review)
bench.add_command(accept)


_repository = click.option(
    "--repository",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The repository whose state is measured; default: found from the corpus and the working folder.",
)


@bench.command(
    help="Freeze BENCHMARK in a new folder for people to review; no model is asked, and nothing here permits a call."
)
@click.argument("benchmark", metavar="BENCHMARK")
@click.option("--corpus", metavar="FILE", type=_FILE, help="A corpus; default: the one that the benchmark ships.")
@click.option("--output", metavar="DIR", type=_FILE, required=True, help="An absolute path outside the repository.")
@click.option("--self-review", metavar="FILE", type=_FILE, help="The receipt of an author of the corpus.")
@click.option("--review", metavar="FILE", type=_FILE, help="The receipt of an independent person.")
@click.option("--captures", metavar="FILE", type=_FILE, help="Saved outputs to check, as `bench check` does.")
@_repository
@format_option
@debug_option
def prepare(
    benchmark: str,
    corpus: Path | None,
    output: Path,
    self_review: Path | None,
    review: Path | None,
    captures: Path | None,
    repository: Path | None,
    as_json: bool,
) -> int:
    """Write a bundle; exit as `check` does where captures are given."""
    from casebound.bench.measurement import Sources
    from casebound.benchmarks import prepare as prepare_bundle

    sources = Sources(corpus, self_review, review, repository)
    done = prepare_bundle(benchmark, output, sources, captures=captures, each=_slot_printer(as_json))
    manifest = done.bundle.manifest
    ready = manifest.readiness
    if as_json:
        found = {"bundle": str(output), "measurementId": manifest.measurement_id, "readiness": ready.to_json()}
        print_json({**found, "checks": done.checks and done.checks.to_json()})
    else:
        print_text(f"{output}\nmeasurement {manifest.measurement_id}")
        print_text(f"author's review: {ready.author_review}; independent review: {ready.independent_review}")
        print_text(f"ready for exploration: {_yes(ready.exploratory_ready)}; as gold: {_yes(ready.gold_ready)}")
        if done.checks is not None:
            _print_summary(done.checks)
    return 0 if done.checks is None else done.checks.exit_status


@bench.command(
    help="Check saved outputs against a BUNDLE, layer by layer; no model is asked. Status 0 means that the structural"
    " checks are complete: it is neither semantic nor independent acceptance. Status 1: a slot was not attempted, or a"
    " record was not admitted; that an output disagrees with its reference does not fail."
)
@click.argument("bundle", metavar="BUNDLE", type=_FILE)
@click.option("--captures", metavar="FILE", type=_FILE, required=True, help="The `captures.json` of a run.")
@_repository
@format_option
@debug_option
def check(bundle: Path, captures: Path, repository: Path | None, as_json: bool) -> int:
    """Print every slot that is not admitted or disagrees (as JSON: every slot, one a line), then the sums."""
    from casebound.benchmarks import check as check_bundle

    summary = check_bundle(bundle, captures, repository=repository, each=_slot_printer(as_json))
    if as_json:
        print_json(summary.to_json())
    else:
        _print_summary(summary)
    return summary.exit_status


# --- printing -------------------------------------------------------------------------------------------------------


def _slot_printer(as_json: bool) -> Callable[[CheckedSlot], None]:
    return _print_slot_json if as_json else _print_slot


def _print_slot_json(slot: CheckedSlot) -> None:
    print_json(slot.to_json())


def _print_slot(slot: CheckedSlot) -> None:
    """Print what needs a look; a person does not read thousands of slots that are as they should be."""
    from casebound.text import visible

    if slot.state != "admitted":
        what = slot.state if slot.code is None else f"{slot.state} ({slot.code})"
    elif slot.agrees_with_author:
        return
    else:
        what = f"says {slot.assessment}, the author's reference {slot.author_reference}"
    print_text(f"{visible(slot.case_id)} repeat {slot.repeat}: {visible(what)}")


def _print_summary(summary: CheckSummary) -> None:
    print_text(
        f"planned {summary.planned}, recorded {summary.recorded}, unattempted {summary.unattempted}; call failures"
        f" {summary.call_failures}, cancelled {summary.cancelled}, outputs {summary.output_count}"
    )
    print_text(
        f"parse failures {summary.parse_failures} ({_rate(summary.parse_failure_rate)}), schema rejections"
        f" {summary.schema_rejections} ({_rate(summary.structure_rejection_rate)}), binding rejections"
        f" {summary.binding_rejections}, admitted {summary.admitted}"
    )
    print_text(
        f"agreement with the author's labels: {summary.author_reference_matches} of"
        f" {summary.author_reference_compared} admitted outputs"
    )
    print_text(f"cost: reported {_known(summary.reported_cost_usd)} USD, total {_known(summary.total_cost_usd)} USD")
    print_text(f"semantic review: {summary.semantic_review}; quality: {summary.quality_conclusion}")
    for limitation in summary.limitations:
        print_text(f"- {limitation}")


def _rate(value: str | None) -> str:
    return "a rate of nothing" if value is None else f"rate {value}"


def _known(value: str | None) -> str:
    return "unknown" if value is None else value


def _yes(value: bool) -> str:
    return "yes" if value else "no"
