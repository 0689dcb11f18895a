"""Reading a corpus: what it must hold before anything may be frozen.

The rules (each has its own sentence in the error): bytes are strict JSON of the benchmark's own model; case ids stand
once; a case uses the splits and assessments of its benchmark, and phenomena that the corpus explains; each split has
each assessment, and each phenomenon has a case; no project, no conversation and no selected text stands in two splits;
the bindings of every input hold.

They prevent exactly these leaks. Two splits may still mean the same in other words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from casebound.bench.files import read_file, read_json
from casebound.canonical import digest_of
from casebound.contracts.benchmark import Corpus, CorpusCase
from casebound.errors import SettingsError
from casebound.guard import plugin_guard
from casebound.pointer import json_pointer
from casebound.text import compose

C = TypeVar("C", bound=Corpus)
Problem = tuple[str, str]  # a JSON pointer into the corpus, and a clause that says what is wrong there


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A corpus as it was read.

    Attributes:
        path: where it stands.
        data: its raw bytes, which a measurement binds.
        digest: of those bytes.
        corpus: what they say.
    """

    path: Path
    data: bytes
    digest: str
    corpus: Corpus


def load_corpus(path: Path, model: type[Corpus]) -> CorpusFile:
    """Read, parse and check a corpus file.

    Raises:
        SettingsError: `BENCH_FILE` where it is no strict JSON, `BENCH_CORPUS` where it does not hold.
    """
    data = read_file(path)
    return CorpusFile(path, data, digest_of(data), parse_corpus(path, data, model))


def parse_corpus(path: Path, data: bytes, model: type[C]) -> C:
    """Return the corpus that `data`, the bytes of `path`, holds. Raises as `load_corpus`."""
    read_json(path, data)  # pydantic's own reader takes a key that stands twice
    try:
        corpus = model.model_validate_json(data, by_alias=True, by_name=False)
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _refusal(path, json_pointer(error["loc"]), error["msg"]) from exc
    for pointer, found in find_problems(corpus):
        raise _refusal(path, pointer, found)
    return corpus


def _refusal(path: Path, pointer: str, found: str) -> SettingsError:
    return SettingsError("BENCH_CORPUS", path=str(path), pointer=pointer or None, found=found)


def find_problems(corpus: Corpus) -> Iterator[Problem]:
    """Yield everything that does not hold in a corpus whose shape is right, in the order of the rules."""
    yield from _identities(corpus)
    yield from _names(corpus)
    yield from _coverage(corpus)
    for word, key, group in _GROUPS:
        yield from _crossings(corpus, word, key, group)
    yield from _same_texts(corpus)
    yield from _bindings(corpus)


def _identities(corpus: Corpus) -> Iterator[Problem]:
    places: dict[str, str] = {}
    for place, case in _placed(corpus):
        first = places.setdefault(case.case_id, place)
        if first != place:
            yield f"{place}/caseId", f"the case {case.case_id!r} stands at {first} already"
        checks = [check.check_id for check in case.semantic_checks]
        yield from (
            (f"{place}/semanticChecks/{index}/checkId", f"the check {check!r} stands twice in its case")
            for index, check in enumerate(checks)
            if check in checks[:index]
        )


def _names(corpus: Corpus) -> Iterator[Problem]:
    for place, case in _placed(corpus):
        if case.split not in corpus.SPLITS:
            yield f"{place}/split", f"the split {case.split!r}; splits are {', '.join(corpus.SPLITS)}"
        if case.expected_assessment not in corpus.ASSESSMENTS:
            known = ", ".join(corpus.ASSESSMENTS)
            yield f"{place}/expectedAssessment", f"the assessment {case.expected_assessment!r}; there are {known}"
        for index, tag in enumerate(case.tags):
            if tag not in corpus.phenomena:
                yield f"{place}/tags/{index}", f"the tag {tag!r}, which phenomena does not explain"
            if tag in case.tags[:index]:
                yield f"{place}/tags/{index}", f"the tag {tag!r} stands twice in its case"


def _coverage(corpus: Corpus) -> Iterator[Problem]:
    for split in corpus.SPLITS:
        had = {case.expected_assessment for case in corpus.in_split(split)}
        for assessment in corpus.ASSESSMENTS:
            if assessment not in had:
                yield "/cases", f"no case of the split {split!r} has the assessment {assessment!r}"
    tags = {tag for case in corpus.cases for tag in case.tags}
    for phenomenon in corpus.phenomena:
        if phenomenon not in tags:
            yield json_pointer(("phenomena", phenomenon)), f"no case covers the phenomenon {phenomenon!r}"


_GROUPS: tuple[tuple[str, str, Callable[[CorpusCase], str]], ...] = (
    ("project", "projectId", lambda case: case.project_id),
    ("conversation", "conversationId", lambda case: case.conversation_id),
)


def _crossings(corpus: Corpus, word: str, key: str, group: Callable[[CorpusCase], str]) -> Iterator[Problem]:
    splits: dict[str, str] = {}
    for place, case in _placed(corpus):
        name = group(case)
        first = splits.setdefault(name, case.split)
        if first != case.split:
            yield f"{place}/{key}", f"the {word} {name!r} stands in the splits {first!r} and {case.split!r}"


def _same_texts(corpus: Corpus) -> Iterator[Problem]:
    """Yield selected texts that stand in two splits, alike but for case, composition and white space."""
    seen: dict[str, CorpusCase] = {}
    for place, case in _placed(corpus):
        with plugin_guard(f"selected texts of {type(case.input).__name__}"):
            texts = case.input.selected()
        for text in texts:
            first = seen.setdefault(" ".join(compose(text).casefold().split()), case)
            if first.split != case.split:
                yield f"{place}/input", f"a selected text stands in the split {first.split!r} too, in {first.case_id!r}"


def _bindings(corpus: Corpus) -> Iterator[Problem]:
    for place, case in _placed(corpus):
        with plugin_guard(f"bindings of {type(case.input).__name__}"):
            problems = list(case.input.problems())
        yield from ((f"{place}/input{pointer}", found) for pointer, found in problems)


def _placed(corpus: Corpus) -> Iterator[tuple[str, CorpusCase]]:
    return ((f"/cases/{index}", case) for index, case in enumerate(corpus.cases))
