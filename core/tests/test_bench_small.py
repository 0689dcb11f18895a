"""The benchmark for tests passes the suite of real ones, and a broken one does not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.bench.corpus import load_corpus, parse_corpus
from casebound.bench.instrument import open_instrument
from casebound.contracts.model_call import Prompt
from casebound.testing import small_benchmark
from casebound.testing.conformance.benchmark import BenchmarkConformance
from casebound.testing.small_benchmark import Notes, reply, small_host


class TestSmall(BenchmarkConformance):
    name = "small"

    @pytest.fixture
    def host(self):
        return small_host()

    def reply(self, given, assessment):
        return reply(assessment, given["second"]["noteId"])


# --- the suite can fail ---------------------------------------------------------------------------------------------


def opened():
    instrument = open_instrument(small_host(), "small")
    return instrument, load_corpus(instrument.corpus_path, instrument.model)


def changed(value):
    def read(change):
        copy = json.loads(json.dumps(value.to_json()))
        change(copy)
        return parse_corpus(Path("corpus.json"), json.dumps(copy).encode(), type(value))

    return read


def test_a_benchmark_that_hides_its_selected_texts_does_not_pass(monkeypatch):
    _, published = opened()
    monkeypatch.setattr(Notes, "selected", lambda self: ())
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        TestSmall().test_a_copied_input_is_found(published, changed(published.corpus))


def test_a_checker_that_reads_something_else_does_not_pass(monkeypatch):
    instrument, published = opened()
    monkeypatch.setattr(small_benchmark, "assessment_of", lambda reply: "same")
    with pytest.raises(AssertionError):
        TestSmall().test_the_checker_reads_every_assessment_of_an_admitted_reply(instrument, published, small_host())


def test_a_guide_that_leaves_an_assessment_out_does_not_pass():
    instrument, published = opened()
    guides = {
        language: replace(g, data=g.data.replace(b"`other`", b"else")) for language, g in instrument.guides.items()
    }
    instrument = replace(instrument, guides=guides)
    with pytest.raises(AssertionError, match="other"):
        TestSmall().test_its_guides_tell_every_decision_and_every_question(instrument.spec, instrument, published)


def test_a_protocol_whose_system_text_depends_on_the_case_does_not_pass():
    instrument, published = opened()
    protocol = replace(
        instrument.protocol,
        request=lambda context, feedback: Prompt(f"Read {context['notes'][0]['text']}", {"task": "same_fault"}),
    )
    with pytest.raises(AssertionError):
        TestSmall().test_system_text_and_schema_are_those_of_the_protocol_for_every_case(published, protocol)
