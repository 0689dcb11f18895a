"""A row of the index: what the files of a package say about its case, and who works on it.

Everything but the lease and the last run is derived, so that the rows can be made again from the packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Literal

from casebound.clock import format_time
from casebound.contracts.case import Admission
from casebound.contracts.model_call import Usage
from casebound.errors import REFUSALS, IntegrityError, SettingsError
from casebound.llm.attempts import Attempt, AttemptLog
from casebound.progress import State, begun_revisions, derive_progress, is_finished, newest
from casebound.specs import CORE_STAGES
from casebound.store import Package, layout
from casebound.store.layout import Revision

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
        input_tokens, output_tokens: what was reported, and no more.
        unreported_calls: how many calls did not report both, so that no sum looks whole that is not.
        unknown_calls: sent, without a reply that reached the disk.
        last_call_at: when the newest outcome was decided, as `format_time` writes it.
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
    input_tokens: int = 0
    output_tokens: int = 0
    unreported_calls: int = 0
    unknown_calls: int = 0
    last_call_at: str | None = None
    lease_owner: str | None = None
    lease_until: str | None = None
    last_run: str | None = None
    stopped: str | None = None
    changes: int = 0


_NOT_DERIVED = ("lease_owner", "lease_until", "last_run", "stopped", "changes")
DERIVED = tuple(each.name for each in fields(CaseRow) if each.name not in _NOT_DERIVED)
_NOTHING = Usage(input_tokens=0, output_tokens=0)  # what a call takes that the server refused to answer
MOST_TOKENS = 10**9  # of one call; a number beyond is a server's mistake, and no report


def derive_row(package: Package, phases: Iterable[str] = ()) -> CaseRow:
    """Return the row of a package from its files.

    Args:
        package: whose folder is there; nothing in it needs to be.
        phases: the names of what plugins put behind the interpretation.

    Returns:
        The row; one that is `broken` where files do not hold or cannot be read.
    """
    package_id = package.root.name
    try:
        with package.keep_open():
            return _derive(package, package_id, tuple(phases))
    except (IntegrityError, SettingsError) as exc:
        return CaseRow(package_id, state="broken", code=exc.code)


def _derive(package: Package, package_id: str, phases: tuple[str, ...]) -> CaseRow:
    admission = package.load_if(layout.ADMISSION, Admission)
    begun = begun_revisions(package)
    progress = derive_progress(package, newest(begun))
    calls = _Calls()
    for log, attempt in _attempts(package, begun):
        calls.add(log, attempt)
    return CaseRow(
        package_id,
        case_id=None if admission is None else admission.case_id,
        state=progress.state,
        code=progress.code,
        stage=None if progress.event is None else progress.event.stage,
        retry_at=None if progress.retry_at is None else format_time(progress.retry_at),
        finished=is_finished(package, progress, phases),
        **asdict(calls),
    )


@dataclass(slots=True)
class _Calls:
    """What is known of the calls of a case, as its row tells it."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unreported_calls: int = 0
    unknown_calls: int = 0
    last_call_at: str | None = None

    def add(self, log: AttemptLog, attempt: Attempt) -> None:
        """Count one more call. Raises `IntegrityError` for a reply that cannot be read."""
        outcome = attempt.outcome
        kind = None if outcome is None else outcome.kind
        usage = log.reply(attempt.number).usage if kind in ("accepted", "invalid") else Usage()
        if outcome is not None and kind == "provider_error" and outcome.code in REFUSALS:
            usage = _NOTHING
        reported = [
            count
            for count in (usage.input_tokens, usage.output_tokens)
            if count is not None and 0 <= count <= MOST_TOKENS
        ]
        self.calls += 1
        self.unknown_calls += kind == "unknown"
        if len(reported) == 2:
            self.input_tokens += reported[0]
            self.output_tokens += reported[1]
        else:
            self.unreported_calls += 1
        if outcome is not None:
            self.last_call_at = max(self.last_call_at or "", outcome.at)


def _attempts(package: Package, revisions: Iterable[Revision]) -> Iterator[tuple[AttemptLog, Attempt]]:
    """Yield every attempt of these interpretations with the log that it stands in."""
    for revision in revisions:
        for stage in CORE_STAGES:
            log = AttemptLog(package, revision, stage)
            yield from ((log, attempt) for attempt in log.all())
