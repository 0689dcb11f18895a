"""Intake: the bytes of a report → an admitted report → `case.json`. No model, no database, no clock."""

from __future__ import annotations

from casebound.intake.admit import (
    admit,
    check_duplicate,
    check_size,
    choose_reader,
    decode_report,
    read_report,
    read_text,
)
from casebound.intake.build import HEADING_KINDS, derive_case, freeze_build
from casebound.intake.headings import derive_builtin_headings, heading_key

__all__ = [
    "HEADING_KINDS",
    "admit",
    "check_duplicate",
    "check_size",
    "choose_reader",
    "decode_report",
    "derive_builtin_headings",
    "derive_case",
    "freeze_build",
    "heading_key",
    "read_report",
    "read_text",
]
