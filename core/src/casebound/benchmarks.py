"""What the offline commands about benchmarks do, as Python calls: nothing here imports a provider or asks anybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from casebound.bench.acceptance import accept as accept_run
from casebound.bench.bundle import Bundle, load_bundle, write_bundle
from casebound.bench.captures import load_captures
from casebound.bench.checks import check_captures
from casebound.bench.instrument import open_instrument
from casebound.bench.measurement import Measurement, Sources, confirm_identity, freeze_measurement
from casebound.bench.place import find_repositories, find_repository, refuse_output, write_folder
from casebound.bench.review import form_files, load_reviews
from casebound.clock import Clock, SystemClock
from casebound.contracts.bench_checks import CheckedSlot, CheckSummary
from casebound.contracts.bench_review import Acceptance
from casebound.host import build_host
from casebound.render.benchmark import review_page

EachSlot = Callable[[CheckedSlot], object]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A new bundle, and the layered results where captures were given."""

    bundle: Bundle
    checks: CheckSummary | None


def prepare(
    name: str,
    output: Path,
    sources: Sources,
    *,
    captures: Path | None = None,
    each: EachSlot = lambda slot: None,
    clock: Clock | None = None,
) -> Prepared:
    """Freeze the benchmark `name` in a new folder.

    Args:
        name: of an installed benchmark.
        output: the new folder, by its absolute path, outside the repository.
        sources: the files that it is made of.
        captures: outputs of exactly this measurement, to be checked.
        each: called with every checked slot.
        clock: tells what would be in the future.

    Raises:
        SettingsError: the place, a file or a receipt is refused; nothing is written.
        PluginError: a plugin that the measurement needs is missing or broken.
    """
    instrument = open_instrument(build_host(), name)
    corpus = sources.corpus or instrument.corpus_path
    around = [place for start in (Path.cwd(), corpus) for place in find_repositories(start)]
    refuse_output(output, [sources.repository] if sources.repository else around)
    clock = clock or SystemClock()
    measurement = freeze_measurement(instrument, sources, clock.now())
    checks = None if captures is None else _check(measurement, captures, each, clock)
    return Prepared(write_bundle(output, measurement, review_page, checks), checks)


def check(
    bundle: Path,
    captures: Path,
    *,
    repository: Path | None = None,
    each: EachSlot = lambda slot: None,
    clock: Clock | None = None,
) -> CheckSummary:
    """Check saved outputs against a bundle that exists; nothing is written.

    Args:
        bundle: its folder.
        captures: `captures.json` of a run; its lines stand beside it.
        repository: holds the constraints file, as when the bundle was prepared.
        each: called with every checked slot.
        clock: tells what would be in the future.

    Raises:
        SettingsError: bundle or captures do not hold, or other bytes are installed than were frozen.
        PluginError: a rule or the checker itself failed: that is no failure of the model.
    """
    clock = clock or SystemClock()
    return _check(_confirmed(bundle, repository, clock), captures, each, clock)


def write_review_forms(
    bundle: Path, captures: Path, output: Path, *, repository: Path | None = None, clock: Clock | None = None
) -> int:
    """Write a blank form for each admitted output into a new folder; return how many there are.

    Args:
        bundle: its folder.
        captures: `captures.json` of a run.
        output: the new folder, by its absolute path, outside the repository.
        repository: as for `check`.
        clock: tells what would be in the future.

    Raises:
        SettingsError: as `check`; the place is refused (`BENCH_OUTPUT`). Then nothing is written.
    """
    clock = clock or SystemClock()
    around = repository or find_repository(Path.cwd())
    refuse_output(output, [] if around is None else [around])
    measurement = _confirmed(bundle, repository, clock)
    loaded = load_captures(captures, measurement.subject, measurement.receipts, clock.now())
    files = form_files(loaded, measurement.subject)
    write_folder(output, files)
    return len(files)


def accept(
    bundle: Path, captures: Path, reviews: Path, *, repository: Path | None = None, clock: Clock | None = None
) -> Acceptance:
    """Return the truth table of strict acceptance; nothing is written, and no count changes.

    Args:
        bundle: its folder.
        captures: `captures.json` of a run.
        reviews: the folder of forms that people filled in.
        repository: as for `check`.
        clock: tells what would be in the future.

    Raises:
        SettingsError: as `check`; a form does not hold (`BENCH_REVIEW`).
    """
    clock = clock or SystemClock()
    measurement = _confirmed(bundle, repository, clock)
    loaded = load_captures(captures, measurement.subject, measurement.receipts, clock.now())
    run = load_reviews(reviews, loaded, measurement.subject, clock.now())
    checks = check_captures(loaded, measurement.subject)
    return accept_run(checks, measurement.readiness, run, bound_receipts=loaded.bound_receipts)


def _confirmed(bundle: Path, repository: Path | None, clock: Clock) -> Measurement:
    measurement = load_bundle(bundle, build_host(), clock.now()).measurement
    confirm_identity(measurement, repository)
    return measurement


def _check(measurement: Measurement, captures: Path, each: EachSlot, clock: Clock) -> CheckSummary:
    loaded = load_captures(captures, measurement.subject, measurement.receipts, clock.now())
    return check_captures(loaded, measurement.subject, each)
