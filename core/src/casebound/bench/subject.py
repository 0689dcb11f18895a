"""What outputs are checked against: the frozen cases, and the admission of the protocol that is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from casebound.bench.prompt import context_of, measured_protocol
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.benchmark import CaseInput, Corpus, CorpusCase
from casebound.contracts.model_call import ModelReply
from casebound.guard import guarded
from casebound.host import Host
from casebound.llm.judge import Verdict, judge
from casebound.specs import Benchmark, BenchmarkVersions, PromptProtocol, Validator


@dataclass(frozen=True)
class Subject:
    """One frozen measurement.

    Attributes:
        measurement_id: its identity.
        versions: the names of the benchmark's formats.
        corpus: cases and references.
        protocol, rules: what admits a reply.
        assessment_of: an admitted reply → its assessment.
    """

    measurement_id: str
    versions: BenchmarkVersions
    corpus: Corpus
    protocol: PromptProtocol
    rules: tuple[Validator, ...]
    assessment_of: Callable[[Mapping[str, object]], str]

    @cached_property
    def cases(self) -> dict[str, CorpusCase]:
        """The cases by id."""
        return {case.case_id: case for case in self.corpus.cases}

    def admit(self, reply: ModelReply, given: CaseInput) -> Verdict:
        """Judge a reply to `given`, exactly as production does. Raises `PluginError` where a rule itself fails."""
        context = context_of(given, self.protocol)
        return judge(reply, self.protocol.response_schema(context), self.rules, context)


def input_digest(given: CaseInput) -> str:
    """Return the digest of an input's canonical JSON, by which captures name it."""
    return digest_of(canonical_bytes(given.to_json()))


def open_subject(benchmark: Benchmark, corpus: Corpus, measurement_id: str, host: Host) -> Subject:
    """Return the subject of a benchmark; protocol, rules and checker come from the host.

    Raises:
        CaseboundError: a plugin that offers one of them is missing or broken.
    """
    protocol = measured_protocol(benchmark, host)
    checker = host.load_named("benchmarks", benchmark.name, benchmark.checker)
    return Subject(
        measurement_id,
        benchmark.versions,
        corpus,
        protocol,
        host.validators_of(benchmark.stage, protocol.rules),
        guarded(checker, str, f"checker of the benchmark {benchmark.name}"),
    )
