"""The benchmark `entity-link`: how well a model tells whether two entities of two cases are one object."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.specs import Benchmark, BenchmarkVersions, Guide

VERSIONS = BenchmarkVersions(
    guide="casebound-entity-link-annotation/v1",
    corpus="casebound-entity-link-quality/v1",
    checker="casebound-entity-link-checks/v1",
    measurement="casebound-entity-link-measurement/v1",
    captures="casebound-entity-link-captures/v1",
    author_review="casebound-entity-author-review/v1",
    independent_review="casebound-entity-annotation-review/v1",
    runtime="casebound-entity-measurement-runtime/v2",
)


@hookimpl
def casebound_benchmarks() -> list[Benchmark]:
    """Offer the benchmark `entity-link`."""
    corpus, checker = f"{__name__}.corpus", f"{__name__}.checker"
    return [
        Benchmark(
            name="entity-link",
            stage="entity_link",
            protocol_version=1,
            corpus=f"{corpus}:LinkCorpus",
            corpus_file=f"{__name__}:corpora/entity-link-review-v1.json",
            checker=f"{checker}:assessment_of",
            guides=(
                Guide("en", f"{__name__}:guides/entity-link.en.md"),
                Guide("zh", f"{__name__}:guides/entity-link.zh.md"),
            ),
            versions=VERSIONS,
            components=(__name__, corpus, checker),
        )
    ]
