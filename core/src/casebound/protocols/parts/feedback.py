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
