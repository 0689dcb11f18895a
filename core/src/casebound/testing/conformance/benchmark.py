"""The suite that every benchmark passes, ours and yours.

Subclass `BenchmarkConformance`, name the class `Test…`, and say which benchmark it is and what a good reply looks like:

    class TestLinks(BenchmarkConformance):
        name = "links"

        def reply(self, given, assessment):
            return {"assessment": assessment, "rationale": "…", "cites": [given["first"]["noteId"]]}
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from casebound.bench.corpus import CorpusFile, load_corpus, parse_corpus
from casebound.bench.instrument import Instrument, open_instrument
from casebound.bench.measurement import Sources, freeze_measurement
from casebound.bench.prompt import prompt_of, response_schema_of
from casebound.bench.subject import open_subject
from casebound.canonical import canonical_bytes
from casebound.clock import SystemClock
from casebound.contracts.benchmark import Corpus
from casebound.contracts.model_call import ModelReply
from casebound.errors import SettingsError
from casebound.host import Host, build_host
from casebound.specs import Benchmark, PromptProtocol

CANARY = "canary-7f3a"
Change = Callable[[Callable[[Any], object]], Corpus]


class BenchmarkConformance:
    """What is promised in `casebound.specs.Benchmark`, test by test."""

    name: ClassVar[str]

    # --- what the author supplies -----------------------------------------------------------------------------------

    def reply(self, given: dict[str, Any], assessment: str) -> dict[str, Any]:
        """Supply: a reply to a case's input that is admitted and says `assessment`."""
        raise NotImplementedError("override `reply`")

    @pytest.fixture
    def host(self) -> Host:
        """A host that knows the benchmark and the protocol that it measures; all that is installed."""
        return build_host()

    # --- what follows from it ---------------------------------------------------------------------------------------

    @pytest.fixture
    def instrument(self, host: Host) -> Instrument:
        """The benchmark, opened: its spec, model, guides, and the protocol that it measures."""
        return open_instrument(host, self.name)

    @pytest.fixture
    def benchmark(self, instrument: Instrument) -> Benchmark:
        """The benchmark under test."""
        return instrument.spec

    @pytest.fixture
    def protocol(self, instrument: Instrument) -> PromptProtocol:
        """What it measures."""
        return instrument.protocol

    @pytest.fixture
    def published(self, instrument: Instrument) -> CorpusFile:
        """Its corpus as it is published; reading it applies every rule of the parser."""
        return load_corpus(instrument.corpus_path, instrument.model)

    @pytest.fixture
    def changed(self, published: CorpusFile) -> Change:
        """Change the parsed file, and read it again."""

        def read(change: Callable[[Any], object]) -> Corpus:
            value = json.loads(published.data)
            change(value)
            return parse_corpus(published.path, json.dumps(value).encode(), type(published.corpus))

        return read

    # --- names and files --------------------------------------------------------------------------------------------

    def test_its_formats_have_published_names(self, benchmark: Benchmark, published: CorpusFile) -> None:
        """Everything that is kept says what it is. Repair: eight names, each of its own, with a version."""
        names = astuple(benchmark.versions)
        assert all(re.fullmatch(r"[a-z0-9-]+/v[0-9]+", name) for name in names)
        assert len(set(names)) == len(names)
        value = json.loads(published.data)
        assert (value["format"], value["guide"]) == (benchmark.versions.corpus, benchmark.versions.guide)

    def test_its_guides_tell_every_decision_and_every_question(
        self, benchmark: Benchmark, instrument: Instrument, published: CorpusFile
    ) -> None:
        """Who reviews reads one of them. Repair: name the version, each assessment and each aspect, in each guide."""
        words = {benchmark.versions.guide, *published.corpus.ASSESSMENTS}
        words |= {check.aspect for case in published.corpus.cases for check in case.semantic_checks}
        for guide in instrument.guides.values():
            text = guide.data.decode()
            assert [word for word in sorted(words) if f"`{word}`" not in text] == []

    def test_its_components_are_modules_and_hold_what_judges(self, benchmark: Benchmark) -> None:
        """Their bytes are bound. Repair: list every module of yours that decides what is counted."""
        for module in benchmark.components:
            assert Path(str(import_module(module).__file__)).is_file()

    # --- the corpus -------------------------------------------------------------------------------------------------

    def test_cases_of_two_splits_share_no_group(self, published: CorpusFile, changed: Change) -> None:
        """A model could learn the one from the other. Repair: give each split projects and conversations of its own."""
        here, there = two_splits(published)

        def share(value: dict[str, Any], key: str) -> None:
            value["cases"][there][key] = value["cases"][here][key]

        for key in ("projectId", "conversationId"):
            with pytest.raises(SettingsError, match="stands in the splits") as caught:
                changed(partial(share, key=key))
            assert (caught.value.code, caught.value.path) == ("BENCH_CORPUS", str(published.path))

    def test_a_copied_input_is_found(self, published: CorpusFile, changed: Change) -> None:
        """Selected text may stand in one split only. Repair: `selected` returns every text that is evidence."""
        here, there = two_splits(published)
        with pytest.raises(SettingsError, match="a selected text stands in the split"):
            changed(lambda value: value["cases"][there].update(input=value["cases"][here]["input"]))

    def test_an_unknown_key_is_refused_everywhere(self, published: CorpusFile, changed: Change) -> None:
        """What nobody reads may not look as if somebody did. Repair: derive your models from `CamelContract`."""

        def add(value: Any, place: str) -> None:  # noqa: ANN401  # any part of the corpus
            for token in place.split("/")[1:]:
                value = value[int(token) if token.isdigit() else token]
            value["surplus"] = 1

        for place in objects_of(json.loads(published.data)):
            if place != "/phenomena":
                with pytest.raises(SettingsError) as caught:
                    changed(partial(add, place=place))
                assert caught.value.pointer == f"{place}/surplus"

    # --- what is measured -------------------------------------------------------------------------------------------

    def test_equal_bytes_are_one_measurement_and_a_changed_byte_is_another(
        self, instrument: Instrument, published: CorpusFile, tmp_path: Path
    ) -> None:
        """Receipts and captures bind an identity. Repair: nothing of yours; report it as a bug of the kit."""
        copied, altered = tmp_path / "copied.json", tmp_path / "altered.json"
        copied.write_bytes(published.data)
        altered.write_bytes(published.data + b"\n")
        language, guide = next(iter(instrument.guides.items()))
        guides = {**instrument.guides, language: replace(guide, data=guide.data + b"\n")}
        first = frozen(instrument, published.path)
        assert frozen(instrument, copied) == first
        assert len({first, frozen(instrument, altered), frozen(replace(instrument, guides=guides), copied)}) == 3

    def test_freezing_opens_no_connection_and_starts_no_program(
        self, instrument: Instrument, published: CorpusFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Preparing is no authority to call. Repair: `selected`, `problems` and the checker work on their arguments."""

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("something was opened")

        for name in ("socket.socket", "socket.create_connection", "subprocess.Popen", "os.posix_spawn"):
            monkeypatch.setattr(name, refuse)
        assert frozen(instrument, published.path)

    # --- what is asked ----------------------------------------------------------------------------------------------

    def test_nothing_but_the_input_reaches_a_request(
        self,
        published: CorpusFile,
        protocol: PromptProtocol,
        changed: Change,
    ) -> None:
        """A reference in a request would answer it. Repair: make the request of the context alone."""
        marked = changed(partial(mark_all_but_inputs, model=type(published.corpus)))
        for case, plain in zip(marked.cases, published.corpus.cases, strict=True):
            assert (case.split, case.expected_assessment) != (plain.split, plain.expected_assessment)
            assert CANARY in canonical_bytes(case.to_json()).decode()
            asked = request_bytes(case.input, protocol)
            assert CANARY.encode() not in asked
            assert asked == request_bytes(plain.input, protocol)

    def test_system_text_and_schema_are_those_of_the_protocol_for_every_case(
        self, published: CorpusFile, protocol: PromptProtocol
    ) -> None:
        """A measurement binds one of each. Repair: put what differs into the user message."""
        cases = published.corpus.cases
        assert len({prompt_of(case.input, protocol).system for case in cases}) == 1
        assert len({canonical_bytes(response_schema_of(case.input, protocol)) for case in cases}) == 1

    def test_asking_changes_no_input(self, published: CorpusFile, protocol: PromptProtocol) -> None:
        """A bundle digests inputs. Repair: build new values."""
        for case in published.corpus.cases:
            given = case.input.to_json()
            before = copy.deepcopy(given)
            protocol.request(protocol.context(given), None)
            assert given == before

    # --- what is answered -------------------------------------------------------------------------------------------

    def test_the_checker_reads_every_assessment_of_an_admitted_reply(
        self, instrument: Instrument, published: CorpusFile, host: Host
    ) -> None:
        """Agreement is counted by it. Repair: return one of the corpus's assessments, exactly as the reply has it."""
        subject = open_subject(instrument.spec, published.corpus, published.digest, host)
        for case in published.corpus.cases:
            for assessment in published.corpus.ASSESSMENTS:
                text = json.dumps(self.reply(case.input.to_json(), assessment))
                verdict = subject.admit(ModelReply(text=text, finish_reason="stop"), case.input)
                assert verdict.findings == ()
                assert verdict.value is not None
                assert subject.assessment_of(verdict.value) == assessment


def frozen(instrument: Instrument, corpus: Path) -> str:
    """Return the id of the measurement of a corpus file with what is installed here."""
    return freeze_measurement(instrument, Sources(corpus), SystemClock().now()).measurement_id


def two_splits(published: CorpusFile) -> tuple[int, int]:
    """Return the places of two cases of two splits."""
    splits = [case.split for case in published.corpus.cases]
    return 0, next(place for place, split in enumerate(splits) if split != splits[0])


def objects_of(value: object, place: str = "") -> Iterator[str]:
    """Yield the pointer of every object in a JSON value."""
    if isinstance(value, dict):
        yield place
        for key, item in value.items():
            yield from objects_of(item, f"{place}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects_of(item, f"{place}/{index}")


def mark_all_but_inputs(value: dict[str, Any], model: type[Corpus]) -> None:
    """Plant a canary in every text outside of the inputs; what is one of a few gets the next one of them."""
    value["authors"] = [f"{CANARY}-author"]
    value["provenance"] += CANARY
    value["limitations"] = [text + CANARY for text in value["limitations"]]
    value["phenomena"] = {CANARY + tag: text + CANARY for tag, text in value["phenomena"].items()}
    for case in value["cases"]:
        case["split"] = next_of(model.SPLITS, case["split"])
        case["expectedAssessment"] = next_of(model.ASSESSMENTS, case["expectedAssessment"])
        for key in ("caseId", "projectId", "conversationId"):
            case[key] = f"{CANARY}-{case[key]}"
        case["tags"] = [CANARY + tag for tag in case["tags"]]
        case["referenceRationale"] += CANARY
        for check in case["semanticChecks"]:
            check.update(checkId=f"{CANARY}-{check['checkId']}", text=check["text"] + CANARY)


def next_of(names: Sequence[str], name: str) -> str:
    """Return the name after `name`, the first one after the last."""
    return names[(names.index(name) + 1) % len(names)]


def request_bytes(given: Any, protocol: PromptProtocol) -> bytes:  # noqa: ANN401  # the input of any benchmark
    """Return everything that a request would show a model."""
    prompt = prompt_of(given, protocol)
    return canonical_bytes([prompt.system, prompt.user, response_schema_of(given, protocol)])
