"""`verify`: three answers, and every failure with its file and pointer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from casebound.contracts.findings import VerificationFinding
from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.package import Package
from casebound.verification.evidence import Evidence, Stop
from casebound.verification.report_steps import verify_report
from casebound.verification.revision_steps import verify_events, verify_revision
from casebound.verification.sealing import verify_explained, verify_files

Answer = Literal["holds", "does_not_hold", "unfinished"]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found; true only where a finished package holds.

    Attributes:
        package: the folder.
        answer: `holds`; `does_not_hold`, with findings; `unfinished`: what is there holds.
        findings: everything that does not hold.
        checked: how many files were looked at.
    """

    package: str
    answer: Answer
    findings: tuple[VerificationFinding, ...]
    checked: int

    def __bool__(self) -> bool:
        return self.answer == "holds"

    @property
    def only_plugins_missing(self) -> bool:
        """Whether nothing was found but plugins that are not installed: then nobody could judge what they made."""
        return {finding.code for finding in self.findings} == {"PLUGIN_MISSING"}

    def to_json(self) -> dict[str, object]:
        """Return the verification as JSON data."""
        return {
            "package": self.package,
            "answer": self.answer,
            "findings": [finding.to_json() for finding in self.findings],
            "checked": self.checked,
        }


def verify_package(root: Path, host: Host) -> Verification:
    """Verify one package.

    Raises:
        SettingsError: there is no package at `root`, or it cannot be read (`PACKAGE_UNREADABLE`).
    """
    package = Package(root)
    if not package.exists(layout.PACKAGE) and not package.exists(layout.ADMISSION):
        raise SettingsError("PACKAGE_UNREADABLE", path=str(root), found="no package.json")
    evidence = Evidence(root)
    revisions = [Revision(number) for number in _numbers([*evidence.paths, *evidence.folders])]
    verify_files(evidence, revisions)
    with failures_noted(evidence, layout.PACKAGE):
        report = verify_report(evidence, host)
        for place, revision in enumerate(revisions):
            _verify_place(evidence, revisions[:place], revision)
            with failures_noted(evidence, revision.input):
                verify_events(evidence, revision)
                if report is not None:
                    verify_revision(evidence, host, report, revision)
    if not evidence.findings:
        verify_explained(evidence)
    return Verification(str(root), _answer(evidence, revisions), tuple(evidence.findings), len(evidence.paths))


@contextmanager
def failures_noted(evidence: Evidence, file: str) -> Iterator[None]:
    """Turn whatever a derivation ends with into a finding about `file`: a package is data, and may hold anything."""
    try:
        yield
    except Stop:
        pass  # what is wrong is noted; what depends on it cannot be derived, another revision may still hold
    except CaseboundError as exc:
        evidence.note(exc.code, file, str(exc), exc.pointer or "")
    except (Exception, SystemExit) as exc:  # noqa: BLE001  # a protocol of a plugin may raise anything at what it did not expect
        evidence.note("VERIFY_FAILED", file, f"what follows cannot be derived ({type(exc).__name__})")


def _numbers(paths: Iterable[str]) -> list[int]:
    parts = (path.split("/") for path in paths if path.startswith(layout.INTERPRETATIONS + "/"))
    return sorted({int(part[2]) for part in parts if len(part) > 3 and part[2].isdecimal()})


def _has_begun(evidence: Evidence, revision: Revision) -> bool:
    return any(evidence.has(path) for path in revision.beginnings)


def _verify_place(evidence: Evidence, before: Sequence[Revision], revision: Revision) -> None:
    """Note an interpretation where none can have come about: each further one follows one that had begun.

    That one need not be finished: a case that waits, or was cut off, may be revised. An empty folder is what a process
    leaves that was killed before it froze anything.
    """
    if revision.number != len(before) + 1 or not all(_has_begun(evidence, one) for one in before):
        evidence.note("VERIFY_EXTRA", revision.folder, "an interpretation before it is missing, or never began")
    elif before and evidence.below(revision.folder) and not _has_begun(evidence, revision):
        evidence.note("VERIFY_EXTRA", revision.folder, "it holds files, and never began")


def _answer(evidence: Evidence, revisions: Sequence[Revision]) -> Answer:
    if evidence.findings:
        return "does_not_hold"
    begun = [revision for revision in revisions if _has_begun(evidence, revision)]
    return "holds" if begun and evidence.has(begun[-1].seal) else "unfinished"
