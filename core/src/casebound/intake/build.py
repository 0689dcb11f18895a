"""From an admitted report to `case.json`: a pure function of the report's text and of `build.json`.

Nothing here reads a clock, an environment, a locale or a file; nothing depends on the order of a set. The same bytes in
give the same bytes out on every machine, and `verify` runs the same function again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from casebound.canonical import digest_of
from casebound.contracts.case import (
    Admission,
    Build,
    BuildPattern,
    Case,
    ExpectedBehavior,
    Provenance,
    Report,
    Source,
    SourceKind,
    Unknown,
)
from casebound.errors import SettingsError
from casebound.intake.headings import derive_builtin_headings, heading_key
from casebound.intake.sources import derive_fields, derive_sources
from casebound.intake.typed_ids import derive_entities
from casebound.specs import ReferencePattern

HEADING_KINDS: tuple[str, ...] = tuple(kind for kind in get_args(SourceKind) if kind != "title")
"""What a heading may be mapped to; `markup` hides what stands under it from the model."""

NOT_ESTABLISHED = "formally expected behaviour is not established"


def freeze_build(patterns: Sequence[ReferencePattern], *headings: Mapping[str, str]) -> Build:
    """Return `build.json`: all that the builder uses beside the report, as sorted data.

    Args:
        patterns: the reference patterns of all plugins, each compiled and found sound by the host.
        headings: tables of heading text → source kind; a later one overrides an earlier one and all override the
            built-in table. The caller gives the plugins' first, the operator's last.

    Raises:
        SettingsError: `SETTINGS_VALUE` for a kind that does not exist, a heading without a letter, or one table that
            gives two kinds to headings which differ only in case or marks.
    """
    merged: dict[str, SourceKind] = derive_builtin_headings()
    for table in headings:
        merged |= _checked(table)
    frozen = [
        BuildPattern(
            name=pattern.name,
            entity_type=pattern.entity_type,
            pattern=pattern.pattern,
            ignore_case=pattern.ignore_case,
        )
        for pattern in sorted(patterns, key=lambda pattern: (pattern.name, pattern.entity_type, pattern.pattern))
    ]
    return Build(headings=dict(sorted(merged.items())), patterns=tuple(frozen))


def derive_case(admission: Admission, report: Report, build: Build) -> Case:
    """Return the case that `report` makes: sources, cited ids, what is expected, open questions.

    Never raises for an admitted report. Its time is linear in the length of the text as long as the patterns' is.
    """
    fields = derive_fields(report)
    sources = derive_sources(report, build)
    expected = _expected_behavior(sources)
    is_open = expected.completeness == "not_established"
    return Case(
        case_id=admission.case_id,
        source_digest=admission.digest,
        build_digest=digest_of(build.to_bytes()),
        fields=fields,
        sources=sources,
        entities=derive_entities(fields, sources, build),
        expected_behavior=expected,
        unknowns=(Unknown(id="Q0001", text=NOT_ESTABLISHED),) if is_open else (),
    )


def _expected_behavior(sources: Sequence[Source]) -> ExpectedBehavior:
    provenance: dict[Provenance, None] = {source.provenance: None for source in sources if source.provenance}
    return ExpectedBehavior(completeness="declared" if provenance else "not_established", provenance=tuple(provenance))


def _checked(table: Mapping[str, str]) -> dict[str, SourceKind]:
    checked: dict[str, SourceKind] = {}
    for text, kind in table.items():
        pointer = f'intake.headings."{text}"'
        key = heading_key(text)
        if kind not in HEADING_KINDS:
            raise SettingsError("SETTINGS_VALUE", found=kind, pointer=pointer, allowed=HEADING_KINDS)
        if not key:
            raise SettingsError(
                "SETTINGS_VALUE", found=text[:200], pointer=pointer, expected="a heading of at most 120 characters"
            )
        if checked.setdefault(key, cast("SourceKind", kind)) != kind:
            raise SettingsError(
                "SETTINGS_VALUE",
                found=f"{kind}, and {checked[key]} for the same heading in another spelling",
                pointer=pointer,
                expected="one kind a heading",
            )
    return checked
