"""What the commands about live runs and comparisons do, as Python calls. Only `execute` calls a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from casebound.bench.bundle import Bundle, load_bundle
from casebound.bench.captures import load_captures
from casebound.bench.compare import Run, compare, refuse_unequal_identities
from casebound.bench.live import Execution
from casebound.bench.live import execute as execute_slots
from casebound.bench.live_evidence import Means, confirm_run
from casebound.bench.live_folder import CAPTURES, PLAN, LiveFolder, request_path
from casebound.bench.live_plan import (
    Selection,
    choose_executor,
    derive_plan,
    planned_executor,
    reading_choice,
    refuse_changes,
)
from casebound.bench.live_records import Read
from casebound.bench.live_status import derive_status
from casebound.bench.measurement import confirm_identity
from casebound.bench.place import find_repository, refuse_inside, refuse_output, write_folder
from casebound.bench.subject import Subject
from casebound.binding import build_provider
from casebound.clock import Clock, SystemClock, format_time, parse_time
from casebound.contracts.bench_compare import Comparison
from casebound.contracts.bench_live import LivePlan, LiveStatus
from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host, build_host
from casebound.llm.provider import Provider
from casebound.loop import Loop

CODE = "BENCH_LIVE"


@dataclass(frozen=True, slots=True)
class Order:
    """What a live run is to be.

    Attributes:
        bundle: a bundle that its author approved.
        out: the new folder of the run, by its absolute path, outside the repository.
        selection: which slots.
        executor: an installed provider.
        model: as it names it; None only where the answers are rules.
        llm_config: a TOML file with an `[llm]` table; None: the defaults.
        repository: as for `bench prepare`.
    """

    bundle: Path
    out: Path
    selection: Selection
    executor: str
    model: str | None = None
    llm_config: Path | None = None
    repository: Path | None = None


def prepare(order: Order, *, host: Host | None = None, clock: Clock | None = None) -> LivePlan:
    """Write the plan of a live run, and exactly what it would send. Nobody is asked.

    Args:
        order: what it is to be.
        host: the plugins; None: all that are installed.
        clock: tells what would be in the future.

    Raises:
        SettingsError: the place, the bundle, the executor or the selection is refused; nothing is written.
    """
    refuse_output(order.out, _repositories(order.repository))
    host = host or build_host()
    bundle = _confirmed(order.bundle.absolute(), host, order.repository, clock or SystemClock())
    stage = bundle.measurement.instrument.protocol.stage
    choice = choose_executor(host, stage, order.executor, model=order.model, llm_config=order.llm_config)
    planned = derive_plan(bundle, choice, order.selection)
    requests = {
        request_path(slot.number): request.to_bytes()
        for slot, request in zip(planned.plan.slots, planned.requests, strict=True)
    }
    write_folder(order.out, {**requests, PLAN: planned.plan.to_bytes()}, private=True)
    return planned.plan


def execute(
    out: Path,
    confirmed: str,
    *,
    repository: Path | None = None,
    host: Host | None = None,
    clock: Clock | None = None,
    provider: Callable[[Provider], Provider] = lambda provider: provider,
) -> LiveStatus:
    """Execute a confirmed plan, as far as it goes; what was called already is not called again.

    Args:
        out: the folder of the run.
        confirmed: the id of exactly this plan, by whoever read it.
        repository: as for `bench prepare`.
        host: the plugins; None: all that are installed.
        clock: tells when.
        provider: wraps the provider, so that a test can watch it.

    Raises:
        SettingsError: the id is another, something that the plan binds has changed (`BENCH_CHANGED`,
            `BENCH_IDENTITY`, …), or a file does not hold; nothing is called.
        UnavailableError: another process executes the plan, or the folder cannot be written.
        PluginError: the provider, a rule or the checker failed.
    """
    clock = clock or SystemClock()
    refuse_inside(out.absolute(), _repositories(repository))
    folder = LiveFolder(out, writing=True)
    plan, path = folder.plan(), out / PLAN
    if confirmed != plan.plan_id:
        raise SettingsError(CODE, pointer="--confirm-plan", found=repr(confirmed), expected=f"the id of {path}")
    host = host or build_host()
    bundle = _confirmed(Path(plan.bundle), host, repository, clock)
    choice = planned_executor(plan, host, path)
    refuse_changes(plan, bundle, choice, path)
    _refuse_early(bundle, clock)
    for slot in plan.slots:
        folder.request(slot)
    loop, built = Loop(), build_provider(choice, host, path)
    try:
        loop.run(_run(Execution(folder, plan, bundle.measurement.subject, provider(built), clock)))
    finally:
        loop.close()
    return derive_status(folder, Means(bundle.measurement.subject, built.read))


def cancelled_slots(out: Path) -> tuple[int, ...]:
    """Return the numbers of the slots whose call somebody ended; none where the folder holds no run that holds."""
    try:
        return tuple(slot.number for slot in derive_status(LiveFolder(out)).slots if slot.state == "cancelled")
    except CaseboundError:
        return ()


async def _run(run: Execution) -> None:
    try:
        await execute_slots(run)
    finally:
        with suppress(asyncio.CancelledError):
            await run.provider.aclose()


def check(
    out: Path, *, repository: Path | None = None, host: Host | None = None, clock: Clock | None = None
) -> LiveStatus:
    """Return what became of a live run; nothing is called or written.

    Args:
        out: the folder of the run.
        repository: as for `bench prepare`.
        host: the plugins; None: all that are installed.
        clock: tells what would be in the future.

    Raises:
        SettingsError: the folder holds no live run, or a file of it does not hold.
    """
    refuse_inside(out.absolute(), [] if repository is None else [repository])
    folder = LiveFolder(out)
    plan, host = folder.plan(), host or build_host()
    try:
        subject = _planned_subject(plan, host, repository, clock or SystemClock())
    except CaseboundError:
        return derive_status(folder)
    with _reader(plan, host, out / PLAN) as read:
        return derive_status(folder, Means(subject, read))


def _planned_subject(plan: LivePlan, host: Host, repository: Path | None, clock: Clock) -> Subject | None:
    """Return what the outputs were checked against, None where another bundle stands in its place."""
    subject = _confirmed(Path(plan.bundle), host, repository, clock).measurement.subject
    return subject if subject.measurement_id == plan.measurement_id else None


@contextmanager
def _reader(plan: LivePlan, host: Host, path: Path) -> Iterator[Read | None]:
    """Yield what reads native replies as the executor did, None where it is not installed as it was."""
    try:
        choice = reading_choice(plan, host, path)
        built = None if choice is None else build_provider(choice, host, path)
    except CaseboundError:
        built = None
    if built is None:
        yield None
        return
    loop = Loop()
    try:
        yield built.read
    finally:
        loop.run(built.aclose())
        loop.close()


def compare_runs(
    named: tuple[Path, Path],
    bundles: Sequence[Path] = (),
    *,
    complete_requests: bool = False,
    repository: Path | None = None,
    host: Host | None = None,
    clock: Clock | None = None,
) -> Comparison:
    """Return two runs side by side; nothing is called or written.

    Args:
        named: two folders of live runs, or `captures.json` files.
        bundles: of both, or of each in order; none: those that the plans beside the captures name.
        complete_requests: prompt, schema and output mode may differ; the report says so.
        repository: as for `bench check`.
        host: the plugins; None: all that are installed.
        clock: tells what would be in the future.

    Raises:
        SettingsError: the runs cannot stand side by side (`BENCH_COMPARE`), or one of them does not hold by itself.
    """
    clock, host = clock or SystemClock(), host or build_host()
    heads = [place / CAPTURES if place.is_dir() else place for place in named]
    plans = [_plan_beside(head) for head in heads]
    both = [load_bundle(_bundle_of(place, plans, bundles), host, clock.now()) for place in (0, 1)]
    refuse_unequal_identities(*(bundle.measurement.identity for bundle in both), names=tuple(map(str, named)))
    runs = []
    for head, plan, bundle in zip(heads, plans, both, strict=True):
        measurement = bundle.measurement
        confirm_identity(measurement, repository)
        captures = load_captures(head, measurement.subject, measurement.receipts, clock.now())
        if plan is not None:
            with _reader(plan, host, head.parent / PLAN) as read:
                confirm_run(LiveFolder(head.parent), plan, Means(measurement.subject, read))
        runs.append(Run(str(head), measurement.identity, measurement.subject, captures, _bounds(plan)))
    return compare(*runs, complete_requests=complete_requests)


def _plan_beside(head: Path) -> LivePlan | None:
    folder = LiveFolder(head.parent)
    return folder.plan() if (head.parent / PLAN).is_file() else None


def _bundle_of(place: int, plans: Sequence[LivePlan | None], bundles: Sequence[Path]) -> Path:
    if len(bundles) > len(plans):
        raise SettingsError("USAGE", pointer="--bundle", found=f"{len(bundles)} bundles", expected="one, or one a run")
    if bundles:
        return bundles[min(place, len(bundles) - 1)]
    plan = plans[place]
    if plan is None:
        expected = "the bundle of captures beside which no plan stands"
        raise SettingsError("USAGE", pointer="--bundle", found="nothing", expected=expected)
    return Path(plan.bundle)


def _bounds(plan: LivePlan | None) -> dict[str, object]:
    """Return what bounded the requests of a run, where its plan says so."""
    if plan is None:
        return {}
    return {"maxOutputTokens": plan.policy.max_output_tokens, "timeoutS": plan.policy.timeout_s}


def _confirmed(path: Path, host: Host, repository: Path | None, clock: Clock) -> Bundle:
    bundle = load_bundle(path, host, clock.now())
    confirm_identity(bundle.measurement, repository)
    return bundle


def _repositories(repository: Path | None) -> list[Path]:
    found = repository or find_repository(Path.cwd())
    return [] if found is None else [found]


def _refuse_early(bundle: Bundle, clock: Clock) -> None:
    """Refuse to begin at or before a review: captures that do not follow it would not count."""
    now = clock.now()
    for receipt in bundle.measurement.receipts:
        if parse_time(receipt.review.reviewed_at) >= parse_time(format_time(now)):
            found, expected = format_time(now), f"later than the review of {receipt.review.reviewed_at}"
            raise SettingsError(CODE, path=str(receipt.path), found=found, expected=expected)
