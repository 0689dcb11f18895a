"""Parts: what a model is told about its last reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casebound.contracts.findings import Finding


def all_errors_v1(findings: Sequence[Finding], context: Mapping[str, object]) -> dict[str, object]:
    """Return every finding with its code, exact path, and what is permitted there, and what to do."""
    errors: list[dict[str, object]] = []
    for finding in findings:
        error = {**finding.details, "code": finding.code, "path": finding.path, "message": finding.message}
        if finding.allowed:
            error["permitted"] = list(finding.allowed)
        errors.append(error)
    return {
        "errors": errors,
        "instruction": "Your last reply was refused for the errors above. Return one complete corrected reply.",
    }


_SOURCE_KINDS = (
    "INTERPRETATION_UNKNOWN_SOURCE",
    "INTERPRETATION_OBSERVATION_SOURCE",
    "INTERPRETATION_EXPECTATION_SOURCE",
)


def source_kinds_first_v1(findings: Sequence[Finding], context: Mapping[str, object]) -> dict[str, object]:
    """Return, as `all_errors_v1` does, only the findings about kinds of sources where there are any, else the rest."""
    about_kinds = [finding for finding in findings if finding.code in _SOURCE_KINDS]
    return all_errors_v1(about_kinds or findings, context)
