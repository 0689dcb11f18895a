"""The report as fields, its admission, and the case that is built from it."""

from __future__ import annotations

from typing import Literal

from casebound.contracts.base import Artifact, Contract, Digest, SafeName

SourceKind = Literal[
    "title", "observation", "expectation", "reproduction", "environment", "reference", "comment", "markup", "text"
]
Provenance = Literal["tester_declaration", "external_research"]


class Expectation(Contract):
    """A formal expectation that a report declares apart from its text."""

    text: str
    provenance: Provenance = "tester_declaration"
    reference: str | None = None


class Report(Contract):
    """What a reader makes of a report's text; every string is exactly what the report holds.

    Attributes:
        case_id: the operator's own id, if the report names one (front matter `id`, JSON `id`).
        title: one line; None where the report has none.
        body: the main text.
        comments: later remarks, in order.
        expectations: declared formal expectations.
        body_format: `markdown` bodies have headings, lists and HTML comments; `text` bodies have paragraphs only.
    """

    case_id: str | None = None
    title: str | None = None
    body: str = ""
    comments: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    body_format: Literal["markdown", "text"] = "markdown"


class Admission(Artifact):
    """`admission.json`: which bytes were let in, and by which reader."""

    format: Literal["casebound-admission/v1"] = "casebound-admission/v1"
    case_id: SafeName
    package_id: SafeName
    reader: str
    file: str
    size: int
    digest: Digest


class BuildPattern(Contract):
    """A reference pattern as it was when the case was built."""

    name: str
    entity_type: str
    pattern: str
    ignore_case: bool


class Build(Artifact):
    """`build.json`: everything that the builder used beside the report, as data."""

    format: Literal["casebound-build/v1"] = "casebound-build/v1"
    builder: Literal["case_builder/1"] = "case_builder/1"
    headings: dict[str, SourceKind]
    patterns: tuple[BuildPattern, ...]


class Source(Contract):
    """A piece of the report: half-open code-point range `[start, end)` in the decoded `field`.

    Attributes:
        id: `S0001` …, in order of field (title, body, comments, expectations) and place.
        kind: what the piece is; `markup` is kept and never shown to a model.
        field: `title`, `body`, `comments[0]`, `expectations[0]`.
        provenance: of an expectation, else None.
        reference: where an expectation comes from, if stated.
    """

    id: str
    kind: SourceKind
    field: str
    start: int
    end: int
    provenance: Provenance | None = None
    reference: str | None = None


class Mention(Contract):
    """An exact place: `source` holds it, `start` and `end` count code points from the start of `field`.

    For a `P` source `field` is None and the range counts from the start of its text.
    """

    source: str
    field: str | None
    start: int
    end: int


class CitedEntity(Contract):
    """A typed id that the report itself cites.

    Attributes:
        id: `E0001` …, in order of first mention.
        type: entity type.
        canonical_id: the id as a string.
        mentions: where it stands; a mention covers the whole reference (link, `host=…`), not only the digits.
    """

    id: str
    type: str
    canonical_id: str
    mentions: tuple[Mention, ...]


class Unknown(Contract):
    """An open question of the case."""

    id: str
    text: str


class ExpectedBehavior(Contract):
    """What the case knows about formally expected behaviour.

    Attributes:
        completeness: `declared` where at least one expectation source exists, else `not_established`.
        provenance: the provenances of the expectation sources, in order of first appearance.
    """

    completeness: Literal["declared", "not_established"]
    provenance: tuple[Provenance, ...]


class Fields(Contract):
    """The decoded fields that ranges point into."""

    title: str | None
    body: str
    comments: tuple[str, ...]
    expectations: tuple[str, ...]

    def text(self, field: str) -> str:
        """Return the text of `field` as sources name it. Raises `KeyError` for a field that is not there."""
        if field == "title" and self.title is not None:
            return self.title
        if field == "body":
            return self.body
        name, bracket, rest = field.partition("[")
        texts = {"comments": self.comments, "expectations": self.expectations}.get(name, ())
        if bracket and rest[:-1].isdecimal() and int(rest[:-1]) < len(texts):
            return texts[int(rest[:-1])]
        raise KeyError(field)


class Case(Artifact):
    """`case.json`: the report taken apart, deterministically; no later step changes it."""

    format: Literal["casebound-case/v1"] = "casebound-case/v1"
    case_id: SafeName
    source_digest: Digest
    build_digest: Digest
    fields: Fields
    sources: tuple[Source, ...]
    entities: tuple[CitedEntity, ...]
    expected_behavior: ExpectedBehavior
    unknowns: tuple[Unknown, ...]

    def text_of(self, source: Source) -> str:
        """Return exactly the characters that `source` covers."""
        return self.fields.text(source.field)[source.start : source.end]
