"""A benchmark of four cases, as a plugin brings one: do two notes tell of one fault? For tests of the kit, and to copy.

It brings the stage that it measures as well: a prompt `same-fault-v1`, whose reply cites notes by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from casebound.contracts.base import CamelContract, SafeName
from casebound.contracts.bench_identity import TREE_SCOPE
from casebound.contracts.benchmark import CaseInput, Corpus, CorpusCase, Text
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import Prompt
from casebound.hookspecs import hookimpl
from casebound.host import Host, build_host
from casebound.installed import Installed
from casebound.protocols.parts.feedback import all_errors_v1
from casebound.protocols.parts.schemas import closed_object_v1, text_v1
from casebound.specs import Benchmark, BenchmarkVersions, Guide, PromptProtocol, RuleRef, RuleSet, Validator

STAGE = "same_fault"
SYSTEM = 'Do the two "notes" tell of one fault? All text in them is quoted. Answer with one JSON object that fits.'


# --- the corpus -----------------------------------------------------------------------------------------------------


class Note(CamelContract):
    """What somebody wrote about a fault."""

    note_id: SafeName
    text: Text


class Notes(CaseInput):
    """Two notes."""

    first: Note
    second: Note

    def selected(self) -> tuple[str, ...]:
        """Return both texts."""
        return (self.first.text, self.second.text)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the one binding that can be broken: two notes have two ids."""
        if self.first.note_id == self.second.note_id:
            yield "/second/noteId", f"the note {self.second.note_id!r} stands twice"


class NotesCase(CorpusCase):
    """Two notes with a reference."""

    input: Notes


class NotesCorpus(Corpus):
    """`small_benchmark.json`."""

    SPLITS = ("tuning", "holdout")
    ASSESSMENTS = ("same", "other")

    format: Literal["casebound-small-corpus/v1"]
    guide: Literal["casebound-small-guide/v1"]
    cases: tuple[NotesCase, ...]


def assessment_of(reply: Mapping[str, object]) -> str:
    """Return what an admitted reply says."""
    return str(reply["assessment"])


# --- the stage ------------------------------------------------------------------------------------------------------


def _schema(context: Mapping[str, object]) -> dict[str, object]:
    cites: dict[str, object] = {"type": "array", "minItems": 1, "items": text_v1()}
    assessment: dict[str, object] = {"type": "string", "enum": ["same", "other"]}
    return closed_object_v1({"assessment": assessment, "rationale": text_v1(), "cites": cites})


def _request(context: Mapping[str, object], feedback: Mapping[str, object] | None) -> Prompt:
    user: dict[str, object] = {"task": STAGE, "notes": context["notes"], "output_schema": _schema(context)}
    return Prompt(SYSTEM, user if feedback is None else {**user, "feedback": dict(feedback)})


def _cites_notes(reply: Mapping[str, Any], context: Mapping[str, Any]) -> Sequence[Finding]:
    known = tuple(note["noteId"] for note in context["notes"])
    return [
        Finding(code="ENTITY_RESOLUTION_UNREAD_SOURCE", path=f"/cites/{place}", message="no such note", allowed=known)
        for place, cited in enumerate(reply["cites"])
        if cited not in known
    ]


PROTOCOL = PromptProtocol(
    stage=STAGE,
    version=1,
    prompt_id="same-fault-v1",
    context=lambda given: {"notes": [given["first"], given["second"]]},
    request=_request,
    response_schema=_schema,
    rules=(RuleRef("ENTITY_RESOLUTION_UNREAD_SOURCE", 1),),
    feedback=all_errors_v1,
)


def answer(message: Mapping[str, Any]) -> dict[str, object]:
    """Return the reply of a program that knows one rule: notes with a long word in common tell of one fault."""
    words = [{word for word in note["text"].lower().split() if len(word) > 5} for note in message["notes"]]
    assessment = "same" if words[0] & words[1] else "other"
    return reply(assessment, message["notes"][0]["noteId"])


def reply(assessment: str, cited: str) -> dict[str, object]:
    """Return a reply that is admitted where `cited` is the id of a note of the case."""
    return {"assessment": assessment, "rationale": "The words of the notes.", "cites": [cited]}


# --- the plugin -----------------------------------------------------------------------------------------------------

VERSIONS = BenchmarkVersions(
    guide="casebound-small-guide/v1",
    corpus="casebound-small-corpus/v1",
    checker="casebound-small-checks/v1",
    measurement="casebound-small-measurement/v1",
    captures="casebound-small-captures/v1",
    author_review="casebound-small-author-review/v1",
    independent_review="casebound-small-annotation-review/v1",
    runtime=TREE_SCOPE,
)
BENCHMARK = Benchmark(
    name="small",
    stage=STAGE,
    protocol_version=1,
    corpus=f"{__name__}:NotesCorpus",
    corpus_file="casebound.testing:small_benchmark.json",
    checker=f"{__name__}:assessment_of",
    guides=(Guide("en", "casebound.testing:small_benchmark.md"),),
    versions=VERSIONS,
    components=(__name__,),
)


@hookimpl
def casebound_benchmarks() -> list[Benchmark]:
    """Offer the benchmark `small`."""
    return [BENCHMARK]


@hookimpl
def casebound_protocols() -> list[PromptProtocol]:
    """Offer the stage that it measures."""
    return [PROTOCOL]


@hookimpl
def casebound_validators() -> list[Validator]:
    """Offer its rule."""
    return [Validator(STAGE, "ENTITY_RESOLUTION_UNREAD_SOURCE", 1, check=_cites_notes)]


@hookimpl
def casebound_rules() -> list[RuleSet]:
    """Offer answers without a model."""
    return [RuleSet(STAGE, answer=f"{__name__}:answer")]


def small_host(*others: Installed) -> Host:
    """Return a host with this plugin, `others`, and nothing else that is installed."""
    return build_host(entry_points=(Installed("small", __name__, "casebound", "0"), *others))
