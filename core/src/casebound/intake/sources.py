"""The fields of a report and their readable pieces: `S0001` … with kinds and exact ranges.

Rules:
- Order: title, body, comments, declared expectations; within a field by place. Aliases count from `S0001` in that
  order.
- The title is one source. Headings give the pieces of the body their kinds; without one a piece is an `observation`.
- A remark stays a `comment` whatever headings it uses, and a declared expectation stays an `expectation`: only the body
  is the reporter's statement about what happens and what should.
- An expectation in the body is the `tester_declaration` of whoever wrote the report.
- HTML comments are `markup` in every field but the title, which is plain text.
- A field of more than `MOST_PIECES` pieces (a pasted table, a million one-letter lines) gets coarser ones: neighbours
  of one kind are taken together, as evenly as that goes. Nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from casebound.contracts.aliases import alias
from casebound.contracts.case import Build, Expectation, Fields, Provenance, Report, Source
from casebound.intake.blocks import Piece, is_visible, split_markdown, split_text

MOST_PIECES = 100_000


def derive_fields(report: Report) -> Fields:
    """Return the decoded fields that every range of the case points into: the report's strings, unchanged."""
    return Fields(
        title=report.title,
        body=report.body,
        comments=report.comments,
        expectations=tuple(expectation.text for expectation in report.expectations),
    )


def derive_sources(report: Report, build: Build) -> tuple[Source, ...]:
    """Return the sources of `report`, split and named with the headings that `build` froze."""
    return tuple(
        Source(
            id=alias("S", number),
            kind=piece.kind,
            field=field,
            start=piece.start,
            end=piece.end,
            provenance=_provenance(piece, declared),
            reference=declared.reference if declared and piece.kind == "expectation" else None,
        )
        for number, (field, piece, declared) in enumerate(_pieces(report, build), 1)
    )


def _provenance(piece: Piece, declared: Expectation | None) -> Provenance | None:
    if piece.kind != "expectation":
        return None
    return declared.provenance if declared else "tester_declaration"


def _pieces(report: Report, build: Build) -> Iterator[tuple[str, Piece, Expectation | None]]:
    split = split_markdown if report.body_format == "markdown" else split_text
    title = report.title or ""
    if is_visible(title, 0, len(title)):
        start = len(title) - len(title.lstrip())
        yield "title", Piece("title", start, len(title.rstrip())), None
    for piece in _coarse(split(report.body, "observation", build.headings)):
        yield "body", piece, None
    for number, comment in enumerate(report.comments):
        for piece in _coarse(split(comment, "comment", {})):
            yield f"comments[{number}]", piece, None
    for number, declared in enumerate(report.expectations):
        for piece in _coarse(split(declared.text, "expectation", {})):
            yield f"expectations[{number}]", piece, declared


def _coarse(pieces: Sequence[Piece]) -> Iterator[Piece]:
    together = -(-len(pieces) // MOST_PIECES)
    if together <= 1:
        yield from pieces
        return
    for kind, neighbours in groupby(pieces, key=lambda piece: piece.kind):
        run = list(neighbours)
        for place in range(0, len(run), together):
            part = run[place : place + together]
            yield Piece(kind, part[0].start, part[-1].end)
