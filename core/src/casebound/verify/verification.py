"""`verify`: three answers, and every failure with its file and pointer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from casebound.contracts.findings import VerificationFinding
from casebound.errors import CaseboundError, SettingsError
from casebound.host import Host
from casebound.progress import derive_progress
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.verify.evidence import Evidence, Stop
from casebound.verify.report_steps import verify_report
from casebound.verify.revision_steps import verify_revision
from casebound.verify.sealing import verify_files

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
        SettingsError: there is no package at `root` (`PACKAGE_UNREADABLE`).
    """
    if not (root / layout.PACKAGE).exists() and not (root / layout.ADMISSION).exists():
        raise SettingsError("PACKAGE_UNREADABLE", path=str(root), found="no package.json")
    evidence = Evidence(root)
    numbers = sorted({int(path.split("/")[2]) for path in evidence.paths if _in_interpretation(path)})
    revisions = [Revision(number) for number in numbers]
    verify_files(evidence, revisions)
    try:
        report = verify_report(evidence, host)
        if report is not None:
            for revision in revisions:
                _guarded(evidence, host, report, revision)
    except Stop:
        pass  # what is wrong is noted; what depends on it cannot be derived
    return Verification(str(root), _answer(evidence), tuple(evidence.findings), len(evidence.paths))


def _guarded(evidence: Evidence, host: Host, report: object, revision: Revision) -> None:
    try:
        verify_revision(evidence, host, report, revision)  # type: ignore[arg-type]  # the caller has it from verify_report
    except Stop:
        pass  # noted; another revision may still hold
    except CaseboundError as exc:
        evidence.note(exc.code, exc.path or revision.folder, str(exc), exc.pointer or "")


def _in_interpretation(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 3 and path.startswith(layout.INTERPRETATIONS + "/") and parts[2].isdecimal()


def _answer(evidence: Evidence) -> Answer:
    if evidence.findings:
        return "does_not_hold"
    return "holds" if derive_progress(evidence.package).state == "interpreted" else "unfinished"
