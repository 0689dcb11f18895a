"""A benchmark of the tests: is the second word the first one, another one, or can nobody tell?

It is as small as one can be, and has every layer: schema, binding rule, label. Captures are written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal

from casebound.bench.receipts import ReviewScope
from casebound.bench.subject import Subject, input_digest
from casebound.canonical import digest_of
from casebound.contracts.bench_captures import (
    CallFailure,
    CapturedOutput,
    CaptureRecord,
    Captures,
    RecordedLines,
)
from casebound.contracts.benchmark import CaseInput, Corpus, CorpusCase, SemanticCheck
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import Prompt
from casebound.specs import BenchmarkVersions, PromptProtocol, RuleRef, Validator

SAME, OTHER, UNKNOWN = "same", "other", "unknown"
MEASUREMENT = digest_of(b"a measurement")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
REVIEWED, STARTED = "2026-11-10T08:00:00.000Z", "2026-11-11T08:00:00.000Z"
AUTHORS = ("Ada-Author", "Bo.Writer")
VERSIONS = BenchmarkVersions(
    guide="pairs-guide/v1",
    corpus="pairs-corpus/v1",
    checker="pairs-checks/v1",
    measurement="pairs-measurement/v1",
    captures="pairs-captures/v1",
    author_review="casebound-entity-author-review/v1",
    independent_review="casebound-entity-annotation-review/v1",
    runtime="pairs-runtime/v1",
)
SCHEMA: dict[str, object] = {
    "type": "object",
    "required": ["label", "words"],
    "additionalProperties": False,
    "properties": {
        "label": {"type": "string", "enum": [SAME, OTHER, UNKNOWN]},
        "words": {"type": "array", "items": {"type": "string"}},
    },
}


class PairInput(CaseInput):
    """Two words."""

    first: str
    second: str

    def selected(self) -> tuple[str, ...]:
        """Return both words."""
        return (self.first, self.second)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: words are bound to nothing."""
        return iter(())


class PairCase(CorpusCase):
    """A pair of words with its reference."""

    input: PairInput


class PairCorpus(Corpus):
    """Pairs of words."""

    SPLITS: ClassVar[tuple[str, ...]] = ("development", "validation")
    ASSESSMENTS: ClassVar[tuple[str, ...]] = (SAME, OTHER, UNKNOWN)

    format: Literal["pairs-corpus/v1"] = "pairs-corpus/v1"
    cases: tuple[PairCase, ...]


def _unknown_words(reply: Mapping[str, object], context: Mapping[str, object]) -> Sequence[Finding]:
    words = reply["words"]
    assert isinstance(words, list)
    odd = [word for word in words if word not in context.values()]
    return [Finding(code="PAIR_WORD", path="/words", message=f"no word of the pair: {word}") for word in odd]


RULE = Validator("pair", "PAIR_WORD", 1, _unknown_words)
PROTOCOL = PromptProtocol(
    stage="pair",
    version=1,
    prompt_id="pair-v1",
    context=dict,  # the input as it is
    request=lambda context, feedback: Prompt("Compare.", {"task": "compare", **context}),
    response_schema=lambda context: SCHEMA,
    rules=(RuleRef("PAIR_WORD", 1),),
    feedback=lambda findings, context: {},
)


def pair_case(case_id: str, label: str, split: str = "development") -> PairCase:
    """Return a case whose words are made from its id."""
    return PairCase(
        case_id=case_id,
        split=split,
        project_id=f"project-{split}",
        conversation_id=f"conversation-{case_id}",
        tags=("words",),
        input=PairInput(first=f"{case_id} one", second=f"{case_id} two"),
        expected_assessment=label,
        reference_rationale="as the words say",
        semantic_checks=(SemanticCheck(check_id="reason", aspect="evidence", text="names both words"),),
    )


def pair_corpus(cases: Sequence[PairCase] = ()) -> PairCorpus:
    """Return a corpus: of three development cases `a`, `b`, `c` and one of validation, unless other cases are given."""
    usual = (pair_case("a", SAME), pair_case("b", OTHER), pair_case("c", UNKNOWN), pair_case("v", SAME, "validation"))
    return PairCorpus(
        guide="pairs-guide/v1",
        authors=AUTHORS,
        provenance="written for the tests",
        limitations=("words only",),
        phenomena={"words": "pairs of words"},
        cases=tuple(cases) or usual,
    )


def pair_subject(
    corpus: Corpus | None = None,
    *,
    rules: tuple[Validator, ...] = (RULE,),
    assessment_of: Callable[[Mapping[str, object]], str] = lambda reply: str(reply["label"]),
) -> Subject:
    """Return the measurement of the tests."""
    return Subject(MEASUREMENT, VERSIONS, corpus or pair_corpus(), PROTOCOL, rules, assessment_of)


def pair_scope(subject: Subject | None = None) -> ReviewScope:
    """Return what receipts of the tests' corpus must be about."""
    subject = subject or pair_subject()
    return ReviewScope(subject.measurement_id, tuple(subject.cases), subject.corpus.authors)


def answer(label: str, *words: str) -> str:
    """Return a reply's text."""
    return json.dumps({"label": label, "words": list(words)})


def record(subject: Subject, case_id: str, text: str | None, repeat: int = 1, **facts: object) -> CaptureRecord:
    """Return a line: with an output where `text` is given, `failure="CODE"` for a failed call, else cancelled."""
    failure = facts.pop("failure", None)
    finish = facts.pop("finish", "stop")
    output = None if text is None else {"text": text, "finishReason": finish}
    return CaptureRecord.model_validate(
        {
            "case_id": case_id,
            "repeat": repeat,
            "input": input_digest(subject.cases[case_id].input),
            "status": "output" if output else "call_failure" if failure else "cancelled",
            "output": CapturedOutput.model_validate_json(json.dumps(output)) if output else None,
            "failure": CallFailure(code=str(failure)) if failure else None,
            **facts,
        }
    )


def write_captures(folder: Path, subject: Subject, lines: Sequence[CaptureRecord | bytes], **changed: object) -> Path:
    """Write captures of the development split and return where their head is; `changed` replaces fields of it."""
    data = b"".join(line if isinstance(line, bytes) else line.to_bytes() + b"\n" for line in lines)
    fields: dict[str, object] = {
        "format": subject.versions.captures,
        "measurement_id": subject.measurement_id,
        "plan_id": None,
        "split": "development",
        "case_ids": tuple(case.case_id for case in subject.corpus.in_split("development")),
        "repeats": 1,
        "started_at": STARTED,
        "executor": "scripted",
        "model": "tiny-1",
        "response_format": "json_schema",
        "receipts": (),
        "records": RecordedLines(count=len(lines), bytes=len(data), digest=digest_of(data)),
        **changed,
    }
    folder.mkdir(parents=True, exist_ok=True)
    head = folder / "captures.json"
    head.write_bytes(Captures.model_validate(fields).to_bytes())
    head.with_name("captures.jsonl").write_bytes(data)
    return head
