"""A further interpretation of a case: `analysis/interpretations/NNNN`, frozen under the settings at hand.

Rules:
- Report, case and facts stay: what was built and fetched is not built and fetched again.
- An interpretation before it is never touched, finished or not; the newest one speaks for the case.
- What it builds on must be what the newest seal says, by size and digest; `verify` derives, this only compares.
- It has begun as soon as anything is frozen. Until then nothing is written, whatever fails.
- One that was cut off, and froze just what the settings at hand freeze, is gone on with: what it paid for is kept.
"""

from __future__ import annotations

from casebound.canonical import digest_of
from casebound.contracts.capture import Facts
from casebound.contracts.case import Case
from casebound.contracts.interpretation import InterpretationInput, Seal
from casebound.contracts.plan import ResolutionInput
from casebound.engine import Engine
from casebound.errors import IntegrityError, SettingsError
from casebound.interpretation.freeze import freeze_interpretation
from casebound.progress import WAITING, begun_revisions, derive_progress, has_begun, latest_revision
from casebound.resolution.freeze import freeze_resolution
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.package import Package


def fresh_resolution(engine: Engine, case: Case, facts: Facts) -> ResolutionInput | None:
    """Return what a resolution under the settings at hand freezes; None where they have none.

    Raises:
        SettingsError: a catalog does not fit its table; or the database changed since the facts (`BINDING_CHANGED`).
        ResearchError: the database does not answer.
    """
    bound = engine.bound
    if bound.settings.entity_resolution is None:
        return None
    try:
        return freeze_resolution(bound, engine.source(), case, facts)
    except SettingsError as exc:
        raise exc.placed(str(bound.settings.path)) from None


def begin_revision(engine: Engine, package: Package) -> Revision | None:
    """Begin the next interpretation of a case; None where the newest one was cut off and is gone on with.

    Raises:
        SettingsError: no interpretation has begun yet (`REVISE_REFUSED`); else as `fresh_resolution`.
        ResearchError: the database does not answer.
        IntegrityError: report, case or facts are not what is sealed (`STORE_DIGEST`, `STORE_MISSING`).
    """
    newest = latest_revision(package)
    if not has_begun(package, newest):
        raise _nothing_to_revise(package)
    _refuse_altered(package)
    case, facts = package.load(layout.CASE, Case), package.load(layout.FACTS, Facts)
    resolution = fresh_resolution(engine, case, facts)
    input_ = freeze_interpretation(engine.policies(), case, facts, resolution)
    if _was_cut_off(package) and _froze(package, newest, resolution, input_):
        return None
    following = Revision(newest.number + 1)
    write_inputs(package, following, resolution, input_)
    return following


def write_inputs(
    package: Package, revision: Revision, resolution: ResolutionInput | None, input_: InterpretationInput
) -> None:
    """Freeze both inputs of `revision`: the one that the other names by digest first."""
    if resolution is not None:
        package.create_artifact(revision.resolution_input, resolution)
    package.create_artifact(revision.input, input_)


def asks_the_same(package: Package, one: Revision, other: Revision) -> bool:
    """Tell whether two interpretations that have begun froze the same: the later one asks what was asked before."""
    return [package.read(path) for path in (one.resolution_input, one.input)] == [
        package.read(path) for path in (other.resolution_input, other.input)
    ]


def _refuse_altered(package: Package) -> None:
    """Compare what a revision builds on with the newest seal; a package that no interpretation sealed has none."""
    seals = [revision.seal for revision in begun_revisions(package) if package.exists(revision.seal)]
    for file in package.load(seals[-1], Seal).files if seals else ():
        if file.path.startswith("analysis/"):
            continue
        data = package.read(file.path)
        place = str(package.root / file.path)
        if data is None:
            raise IntegrityError("STORE_MISSING", path=place, found=f"nothing, and {seals[-1]} knows it")
        if (len(data), digest_of(data)) != (file.size, file.digest):
            raise IntegrityError("STORE_DIGEST", path=place, found=f"bytes that {seals[-1]} does not know")


def _nothing_to_revise(package: Package) -> SettingsError:
    progress, name = derive_progress(package), package.root.name
    goes_on = f"`casebound resume {name}`" if progress.state == "blocked" else "resolve its report, it"
    return SettingsError(
        "REVISE_REFUSED",
        path=str(package.root),
        found=f"state {progress.state}, and no interpretation that has begun",
        hint=f"{goes_on} goes on with the first one",
    )


def _was_cut_off(package: Package) -> bool:
    return derive_progress(package).state not in ("interpreted", *WAITING)


def _froze(
    package: Package, revision: Revision, resolution: ResolutionInput | None, input_: InterpretationInput
) -> bool:
    """Tell whether these are the inputs that `revision` froze, as far as it came."""
    frozen = package.read(revision.resolution_input)
    wanted = None if resolution is None else resolution.to_bytes()
    return frozen == wanted and package.read(revision.input) in (None, input_.to_bytes())
