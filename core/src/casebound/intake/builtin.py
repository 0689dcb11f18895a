"""Registers the report readers of core, through the same hook as any plugin's."""

from __future__ import annotations

from collections.abc import Sequence

from casebound.hookspecs import hookimpl
from casebound.specs import ReportReader

READERS = (
    ReportReader("markdown", (".md", ".markdown"), read="casebound.intake.readers.markdown:read"),
    ReportReader("text", (".txt", ".text"), read="casebound.intake.readers.text:read"),
    ReportReader("json", (".json",), read="casebound.intake.readers.json:read"),
    ReportReader("record", (".jsonl", ".ndjson"), read="casebound.intake.readers.record:read"),
    ReportReader("github", (".github.json",), read="casebound.intake.readers.github:read"),
)


@hookimpl
def casebound_readers() -> Sequence[ReportReader]:
    """Offer the readers for Markdown, plain text, JSON, records of an export, and issues of GitHub."""
    return READERS
