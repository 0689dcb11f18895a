"""A row of the index: what the files of a package say about its case, and who works on it.

Everything but the lease and the last run is derived, so that the rows can be made again from the packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from casebound.canonical import MAX_SAFE_INTEGER
from casebound.clock import format_time
from casebound.contracts.case import Admission
from casebound.contracts.model_call import Usage
from casebound.errors import IntegrityError
from casebound.llm.attempts import AttemptLog
from casebound.progress import State, begun_revisions, derive_progress, latest_revision
from casebound.specs import CORE_STAGES
from casebound.store import Package, layout

RowState = State | Literal["broken"]


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case, as the index tells it.

    Attributes:
        package_id: of the package.
        case_id: None as long as nothing is admitted.
        state: where the case stands; `broken`: its files do not hold, and `code` says why.
        code: why it waits.
        stage: for which stage it waits.
        retry_at: not before this time may it go on, as `format_time` writes it.
        finished: nothing is left to do, the phases of plugins included.
        calls: made for all its interpretations, those whose reply never came included.
        input_tokens, output_tokens: as reported; None where some call did not report.
        unknown_calls: sent, without a reply that reached the disk.
        lease_owner, lease_until: who works on it, and until when nobody else may; not derived, nor is what follows.
        last_run: the run that had it last.
        stopped: with which code that run left it as it was.
        changes: how often the row was written; 0: it was not read from an index.
    """

    package_id: str
    case_id: str | None = None
    state: RowState = "new"
    code: str | None = None
    stage: str | None = None
    retry_at: str | None = None
    finished: bool = False
    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    unknown_calls: int = 0
    lease_owner: str | None = None
    lease_until: str | None = None
    last_run: str | None = None
    stopped: str | None = None
    changes: int = 0


DERIVED = (
    "package_id",
    "case_id",
    "state",
    "code",
    "stage",
    "retry_at",
    "finished",
    "calls",
    "input_tokens",
    "output_tokens",
    "unknown_calls",
)


def derive_row(package: Package, phases: Iterable[str] = ()) -> CaseRow:
    """Return the row of a package from its files.

    Args:
        package: whose folder is there; nothing in it needs to be.
        phases: the names of what plugins put behind the interpretation.

    Raises:
        SettingsError: `PACKAGE_UNREADABLE`, `WORKSPACE_LINK`. Files that do not hold make a row that is `broken`.
    """
    package_id = package.root.name
    try:
        with package.keep_open():
            return _derive(package, package_id, tuple(phases))
    except IntegrityError as exc:
        return CaseRow(package_id, state="broken", code=exc.code, input_tokens=None, output_tokens=None)


def _derive(package: Package, package_id: str, phases: tuple[str, ...]) -> CaseRow:
    admission = package.load_if(layout.ADMISSION, Admission)
    progress = derive_progress(package)
    revision = latest_revision(package)
    marks = (layout.phase_mark(name, revision) for name in phases)
    usages, unknown = _calls(package)
    return CaseRow(
        package_id,
        case_id=None if admission is None else admission.case_id,
        state=progress.state,
        code=progress.code,
        stage=None if progress.event is None else progress.event.stage,
        retry_at=None if progress.retry_at is None else format_time(progress.retry_at),
        finished=progress.state == "interpreted" and all(map(package.exists, marks)),
        calls=len(usages),
        input_tokens=_sum(usage.input_tokens for usage in usages),
        output_tokens=_sum(usage.output_tokens for usage in usages),
        unknown_calls=unknown,
    )


def _calls(package: Package) -> tuple[list[Usage], int]:
    """Return what each call of all interpretations reported, and how many of them are known to have got no reply."""
    usages, unknown = [], 0
    for revision in begun_revisions(package):
        for stage in CORE_STAGES:
            log = AttemptLog(package, revision, stage)
            for attempt in log.all():
                kind = None if attempt.outcome is None else attempt.outcome.kind
                usages.append(log.reply(attempt.number).usage if kind in ("accepted", "invalid") else Usage())
                unknown += kind == "unknown"
    return usages, unknown


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None or count < 0:
            return None
        total += count
    return total if total <= MAX_SAFE_INTEGER else None
