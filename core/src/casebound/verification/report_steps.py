"""From the report's bytes to `case.json` and `research/facts.json`, derived again."""

from __future__ import annotations

from dataclasses import dataclass

from casebound.canonical import digest_of
from casebound.contracts.capture import EntityCapture, Facts
from casebound.contracts.case import Admission, Build, Case
from casebound.contracts.interpretation import PackageIdentity
from casebound.errors import CaseboundError
from casebound.host import Host
from casebound.intake.admission import case_id_of, read_again
from casebound.intake.build import derive_case
from casebound.research.enrichment import derive_facts, pairs_of
from casebound.store import layout
from casebound.verification.evidence import Evidence, Stop


@dataclass(frozen=True, slots=True)
class ReportSteps:
    """What stands before every interpretation of a package."""

    case: Case
    facts: Facts


def verify_report(evidence: Evidence, host: Host) -> ReportSteps | None:
    """Verify everything before an interpretation; None where the package does not go that far.

    Raises:
        Stop: what follows cannot be derived.
    """
    identity = evidence.load(layout.PACKAGE, PackageIdentity)
    if not evidence.has(layout.ADMISSION):
        for path in evidence.below("source"):
            evidence.data(path)  # it is written first; the admission that binds it is still to come
        return None
    admission = evidence.load(layout.ADMISSION, Admission)
    evidence.expect(layout.PACKAGE, "/case_id", identity.case_id, admission.case_id)
    evidence.expect(layout.PACKAGE, "/package_id", identity.package_id, admission.package_id)
    stored = layout.source(admission.file)
    data = evidence.data(stored)
    if (len(data), digest_of(data)) != (admission.size, admission.digest):
        evidence.note("STORE_DIGEST", stored, "it is not what admission.json says")
        raise Stop
    if not evidence.has(layout.BUILD):
        return None
    build = evidence.load(layout.BUILD, Build)
    if not evidence.has(layout.CASE):
        return None
    case = _case(evidence, host, admission, data, build)
    if not evidence.has(layout.FACTS):
        for path in evidence.below(layout.ENTITY_CAPTURES):
            evidence.addressed(path, EntityCapture)
        return None
    return ReportSteps(case, _facts(evidence, case))


def _case(evidence: Evidence, host: Host, admission: Admission, data: bytes, build: Build) -> Case:
    try:
        report = read_again(data, admission, host.readers)
        evidence.expect(layout.ADMISSION, "/case_id", admission.case_id, case_id_of(report, admission.digest))
        derived = derive_case(admission, report, build)
    except CaseboundError as exc:
        evidence.note(exc.code, layout.CASE, str(exc))
        raise Stop from exc
    return evidence.derived(layout.CASE, derived)


def _facts(evidence: Evidence, case: Case) -> Facts:
    stored = evidence.load(layout.FACTS, Facts)
    captures = {}
    asked = {(rule.name, number): rule for rule, number in pairs_of(case, stored.rules)}
    for place, digest in enumerate(stored.captures):
        path = layout.entity_capture(digest)
        if not evidence.has(path):
            evidence.note("STORE_MISSING", layout.FACTS, f"it rests on {path}", f"/captures/{place}")
        capture = evidence.addressed(path, EntityCapture)
        captures[capture.rule.name, capture.entity_id] = capture
        rule = asked.get((capture.rule.name, capture.entity_id))
        limits = stored.limits and stored.limits.model_copy(update={"max_candidates": capture.limits.max_candidates})
        for name, found, expected in (
            ("rule", capture.rule, rule),
            ("binding", capture.binding, stored.binding),
            ("limits", capture.limits, limits),
        ):
            if found != expected:  # one of the two was changed, and nothing says which
                evidence.note("VERIFY_BINDING", path, f"{layout.FACTS} says otherwise", f"/{name}")
                evidence.note(
                    "VERIFY_BINDING", layout.FACTS, f"{path} says otherwise", "/rules" if name == "rule" else f"/{name}"
                )
    try:
        derived = derive_facts(case, stored.binding, stored.rules, captures, stored.limits)
    except CaseboundError as exc:
        evidence.note(exc.code, layout.FACTS, str(exc))
        raise Stop from exc
    return evidence.derived(layout.FACTS, derived)
