"""`bench live prepare|execute|check` and `bench compare`: confirmed calls, and two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from casebound.cli.common import debug_option, format_option, print_json, print_table, print_text

if TYPE_CHECKING:
    from casebound.contracts.bench_compare import Comparison, Share, SlotSide
    from casebound.contracts.bench_live import LivePlan, LiveStatus

_FILE = click.Path(path_type=Path)
_repository = click.option(
    "--repository",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The repository whose state is measured, as for `bench prepare`.",
)
_out = click.option("--out", metavar="DIR", type=_FILE, required=True, help="The folder of the run.")


@click.group(
    help="Ask a model about the cases of a bundle: a plan, its confirmation, each slot at most once. Nothing else"
    " permits a call."
)
def live() -> None:
    """Hold the commands about live runs."""


@live.command(
    help="Write a plan and exactly what it would send into a new folder; nobody is asked. --max-calls must be the"
    " number of cases: it caps the calls of this run, not a provider's requests, tokens or money."
)
@click.option("--bundle", metavar="DIR", type=_FILE, required=True, help="A bundle that its author approved.")
@click.option("--out", metavar="DIR", type=_FILE, required=True, help="An absolute path outside the repository.")
@click.option("--executor", metavar="NAME", required=True, help="An installed provider.")
@click.option("--model", metavar="NAME", help="As the provider names it; not needed for rules.")
@click.option("--max-calls", metavar="N", type=int, required=True, help="How many calls; exactly one a case.")
@click.option("--split", metavar="NAME", required=True, help="One split of the corpus.")
@click.option("--cases", metavar="ID,ID…", required=True, help="Cases of that split.")
@click.option("--llm-config", metavar="FILE", type=_FILE, help="A TOML file with an [llm] table: bounds, output mode.")
@_repository
@format_option
@debug_option
def prepare(
    bundle: Path,
    out: Path,
    executor: str,
    model: str | None,
    max_calls: int,
    split: str,
    cases: str,
    llm_config: Path | None,
    repository: Path | None,
    as_json: bool,
) -> None:
    """Print the plan's id, which is to be confirmed by whoever has read the plan."""
    from casebound.bench.live_plan import Selection
    from casebound.live_runs import Order
    from casebound.live_runs import prepare as prepare_run

    selection = Selection(split, tuple(case.strip() for case in cases.split(",") if case.strip()), max_calls)
    plan = prepare_run(Order(bundle, out, selection, executor, model, llm_config, repository))
    if as_json:
        print_json(plan.to_json())
    else:
        _print_plan(plan, out)


@live.command(
    help="Execute a plan whose id is confirmed. A slot that was called is never called again; a failure, an output that"
    " is not admitted, a tool, unreported usage or an unknown slot ends the run for good, without a retry. Status 0:"
    " complete and not stopped, which is no acceptance."
)
@_out
@click.option("--confirm-plan", metavar="sha256:…", required=True, help="The planId of the plan that you have read.")
@_repository
@format_option
@debug_option
def execute(out: Path, confirm_plan: str, repository: Path | None, as_json: bool) -> int:
    """Print what became of each slot."""
    from casebound.live_runs import cancelled_slots
    from casebound.live_runs import execute as execute_run

    try:
        status = execute_run(out, confirm_plan, repository=repository)
    except KeyboardInterrupt:
        for number in cancelled_slots(out):
            click.echo(f"slot {number} was cancelled, and the run is over: it is never called again", err=True)
        raise
    _print_status(status, as_json)
    return 0 if status.complete and not status.stopped else 1


@live.command(
    help="Report how far a run is, and whether it stopped; nobody is asked and nothing is written. Status 0 says that"
    " the files hold: it is neither a complete run nor acceptance. See `complete` and `stopped`."
)
@_out
@_repository
@format_option
@debug_option
def check(out: Path, repository: Path | None, as_json: bool) -> None:
    """Print what became of each slot."""
    from casebound.live_runs import check as check_run

    _print_status(check_run(out, repository=repository), as_json)


@click.command(
    help="Show two runs side by side: A and B are folders of live runs, or captures.json files. Corpus, guides,"
    " checker, scope, split, cases and repeats must be equal. Counts of a few cases rank nobody."
)
@click.argument("a", metavar="A", type=_FILE)
@click.argument("b", metavar="B", type=_FILE)
@click.option(
    "--bundle",
    "bundles",
    metavar="DIR",
    type=_FILE,
    multiple=True,
    help="The bundle of both, or twice: of A, of B; default: as their plans say.",
)
@click.option(
    "--complete-requests",
    is_flag=True,
    help="Prompt, schema or output mode may differ; the report is then of complete requests, and isolates no effect.",
)
@_repository
@format_option
@debug_option
def compare(
    a: Path, b: Path, bundles: tuple[Path, ...], complete_requests: bool, repository: Path | None, as_json: bool
) -> None:
    """Print every slot of both runs, then the sums."""
    from casebound.live_runs import compare_runs

    found = compare_runs((a, b), bundles, complete_requests=complete_requests, repository=repository)
    if as_json:
        print_json(found.to_json())
    else:
        _print_comparison(found)


# --- printing -------------------------------------------------------------------------------------------------------


def _print_plan(plan: LivePlan, out: Path) -> None:
    policy = plan.policy
    print_text(f"{out}\nplan {plan.plan_id}\nmeasurement {plan.measurement_id}")
    print_text(f"executor: {policy.name} ({policy.offered_by.distribution} {policy.offered_by.version})")
    for name, text in plan.executor.program.items():
        print_text(f"{name}: {text}")
    print_text(f"split {plan.split}: {', '.join(slot.case_id for slot in plan.slots)}")
    print_text(f"at most {plan.max_calls} calls, each with {policy.max_output_tokens} tokens and {policy.timeout_s} s")
    for limitation in plan.limitations:
        print_text(f"- {limitation}")
    print_text("read plan.json and requests/, then: casebound bench live execute --out … --confirm-plan …")


def _print_status(status: LiveStatus, as_json: bool) -> None:
    if as_json:
        print_json(status.to_json())
        return
    rows = [(str(slot.number), slot.case_id, slot.state, slot.code or "", slot.stops or "") for slot in status.slots]
    print_table(("slot", "case", "state", "code", "stops the run"), rows)
    print_text(f"plan {status.plan_id}: {status.called} of at most {status.max_calls} calls")
    print_text(f"complete: {_yes(status.complete)}; stopped: {_yes(status.stopped)}; running: {_yes(status.running)}")
    for limitation in status.limitations:
        print_text(f"- {limitation}")


def _print_comparison(found: Comparison) -> None:
    from casebound.text import visible

    kind = {"one_measurement": "one measurement", "complete_requests": "complete requests"}[found.kind]
    print_text(f"comparison of {kind}; differs: {', '.join(found.differs) or 'nothing that was recorded'}")
    for name, run in (("A", found.a), ("B", found.b)):
        print_text(visible(f"{name}: {run.executor} {run.model or ''} {run.response_format} {run.captures}"))
    rows = [
        (f"{slot.case_id} {slot.repeat}", slot.author_reference, _side(slot.a), _side(slot.b)) for slot in found.slots
    ]
    print_table(("slot", "author's reference", "A", "B"), rows)
    print_table(("count", "A", "B"), [(each.name, _share(each.a), _share(each.b)) for each in found.shares])
    both = found.agreement
    print_text(
        f"admitted in both: {both.both_admitted}; same assessment {both.same_assessment}; as the author's label: both"
        f" {both.both_match_author}, only A {both.only_a_matches_author}, only B {both.only_b_matches_author}, neither"
        f" {both.neither_matches_author}"
    )
    for sentence in (found.interval_method, *found.limitations):
        print_text(f"- {sentence}")


def _side(side: SlotSide) -> str:
    if side.state != "admitted":
        return side.state if side.code is None else f"{side.state} ({side.code})"
    return f"{side.assessment}{'' if side.agrees_with_author else ' (disagrees)'}"


def _share(share: Share) -> str:
    interval = "" if share.interval is None else f" [{share.interval[0]}, {share.interval[1]}]"
    return f"{share.count} of {share.of}{'' if share.rate is None else f' = {share.rate}'}{interval}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
