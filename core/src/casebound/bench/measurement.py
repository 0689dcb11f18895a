"""A measurement: a corpus under a benchmark, with its identity and the receipts of those who reviewed it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from casebound.bench.corpus import CorpusFile, load_corpus
from casebound.bench.files import read_file
from casebound.bench.identity import (
    CONSTRAINTS,
    derive_governed,
    differing_parts,
    measure_identity,
    measurement_id,
)
from casebound.bench.instrument import Instrument
from casebound.bench.place import find_repository
from casebound.bench.receipts import (
    Receipt,
    ReviewScope,
    parse_author_review,
    parse_independent_review,
    readiness,
)
from casebound.bench.subject import Subject, open_subject
from casebound.contracts.bench_identity import MeasurementIdentity
from casebound.contracts.bench_receipts import AuthorReview, IndependentReview, Readiness
from casebound.errors import SettingsError


@dataclass(frozen=True)
class Measurement:
    """What is frozen.

    Attributes:
        instrument: the benchmark, as it is installed.
        corpus: its cases.
        identity: what is bound.
        author, independent: the receipts, where there are any.
    """

    instrument: Instrument
    corpus: CorpusFile
    identity: MeasurementIdentity
    author: Receipt | None = None
    independent: Receipt | None = None

    @cached_property
    def measurement_id(self) -> str:
        """The digest of the identity, which receipts, captures and plans bind."""
        return measurement_id(self.identity)

    @property
    def scope(self) -> ReviewScope:
        """What a receipt must be about."""
        return review_scope(self.corpus, self.identity)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts that there are, the author's first."""
        return tuple(receipt for receipt in (self.author, self.independent) if receipt is not None)

    @property
    def readiness(self) -> Readiness:
        """What the receipts permit."""
        author = self.author and self.author.review
        independent = self.independent and self.independent.review
        assert author is None or isinstance(author, AuthorReview)  # noqa: S101  # as they were parsed
        assert independent is None or isinstance(independent, IndependentReview)  # noqa: S101  # likewise
        return readiness(author, independent)

    @cached_property
    def subject(self) -> Subject:
        """What outputs are checked against."""
        return open_subject(self.instrument.spec, self.corpus.corpus, self.measurement_id, self.instrument.host)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that a measurement is made of.

    Attributes:
        corpus: a corpus file; None: the published one.
        self_review, review: receipts that people filled in.
        repository: holds the constraints file; None: the one that the published corpus stands in, if any.
    """

    corpus: Path | None = None
    self_review: Path | None = None
    review: Path | None = None
    repository: Path | None = None


def freeze_measurement(instrument: Instrument, sources: Sources, now: datetime) -> Measurement:
    """Return the measurement of what is installed here.

    Raises:
        SettingsError: a file cannot be read or does not hold (`BENCH_FILE`, `BENCH_CORPUS`, `BENCH_RECEIPT`), or
            something that must be bound cannot be (`BENCH_IDENTITY`).
    """
    corpus = load_corpus(sources.corpus or instrument.corpus_path, instrument.model)
    identity = _measured(instrument, corpus, sources.repository)
    return with_receipts(Measurement(instrument, corpus, identity), sources.self_review, sources.review, now)


def with_receipts(
    measurement: Measurement, author: Path | None, independent: Path | None, now: datetime
) -> Measurement:
    """Return the measurement with the receipts in two files. Raises `SettingsError` (`BENCH_FILE`, `BENCH_RECEIPT`)."""
    scope = measurement.scope
    return replace(
        measurement,
        author=None if author is None else parse_author_review(read_file(author), author, scope, now),
        independent=(
            None if independent is None else parse_independent_review(read_file(independent), independent, scope, now)
        ),
    )


def review_scope(corpus: CorpusFile, identity: MeasurementIdentity) -> ReviewScope:
    """Return what a receipt of this corpus, under this identity, must be about."""
    cases = tuple(case.case_id for case in corpus.corpus.cases)
    return ReviewScope(measurement_id(identity), cases, corpus.corpus.authors)


def confirm_identity(measurement: Measurement, repository: Path | None = None) -> None:
    """Refuse a frozen measurement where what is installed here is another one.

    Args:
        measurement: as it was frozen.
        repository: as for `Sources`.

    Raises:
        SettingsError: `BENCH_IDENTITY`, with the parts that differ; where the scope of trees is one of them, that is
            BREAKING-COMPARABILITY, and nothing is converted.
    """
    found = _measured(measurement.instrument, measurement.corpus, repository)
    if parts := differing_parts(measurement.identity, found):
        raise SettingsError(
            "BENCH_IDENTITY",
            where=f"the measurement {measurement.measurement_id}",
            found=f"other bytes are installed here: {', '.join(parts)}",
            expected="exactly what was frozen",
        )


def _measured(instrument: Instrument, corpus: CorpusFile, repository: Path | None) -> MeasurementIdentity:
    governed = derive_governed(instrument, corpus.corpus)
    return measure_identity(instrument, corpus, governed, constraints=_constraints(instrument, repository))


def _constraints(instrument: Instrument, repository: Path | None) -> Path | None:
    """Return the constraints file; it never depends on the working folder, or an identity would."""
    place = repository or find_repository(instrument.corpus_path)
    return place / CONSTRAINTS if place is not None and (place / CONSTRAINTS).is_file() else None
