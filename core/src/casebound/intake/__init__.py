"""Intake: the bytes of a report → an admitted report → `case.json`. No model, no database, no clock.

Names load on first use (PEP 562), for listing the readers imports `casebound.intake.builtin` and must cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casebound.intake.admission import (
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

_HOMES = {
    "HEADING_KINDS": "build",
    "admit": "admission",
    "check_duplicate": "admission",
    "check_size": "admission",
    "choose_reader": "admission",
    "decode_report": "admission",
    "derive_builtin_headings": "headings",
    "derive_case": "build",
    "freeze_build": "build",
    "heading_key": "headings",
    "read_report": "admission",
    "read_text": "admission",
}

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


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'casebound.intake' has no attribute {name!r}")
    return getattr(import_module(f"casebound.intake.{home}"), name)
