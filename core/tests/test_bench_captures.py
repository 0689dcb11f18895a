"""Captures that are refused: one clear error that names file and place, before anything is judged."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from casebound.bench import captures as captures_module
from casebound.bench.captures import load_captures
from casebound.bench.checks import check_captures
from casebound.bench.receipts import Receipt
from casebound.canonical import canonical_bytes, digest_of
from casebound.clock import format_time
from casebound.contracts.bench_captures import CapturedOutput, CaptureRecord
from casebound.contracts.bench_receipts import AuthorReview
from casebound.contracts.model_call import ModelReply
from casebound.errors import IntegrityError, SettingsError
from casebound.testing.bench_pairs import (
    MEASUREMENT,
    NOW,
    REVIEWED,
    SAME,
    STARTED,
    answer,
    pair_corpus,
    pair_subject,
    record,
    write_captures,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SUBJECT = pair_subject()
GOOD = record(SUBJECT, "a", answer(SAME))


def refusal(head: Path, subject=SUBJECT, receipts=(), now=NOW) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_captures(head, subject, receipts, now)
    error = caught.value
    assert error.exit_status == 2
    assert str(head.parent) in str(error)
    return error


def refused(folder: Path, lines, **changed) -> SettingsError:
    return refusal(write_captures(folder, SUBJECT, lines, **changed))


def receipt(reviewed_at: str) -> Receipt:
    review = AuthorReview(
        self_review_version="casebound-entity-author-review/v1",
        measurement_id=MEASUREMENT,
        reviewer="Ada-Author",
        reviewed_at=reviewed_at,
        reviewed_before_outputs=True,
        decisions=(),
    )
    return Receipt(Path("self-review.json"), b"{}", digest_of(b"{}"), review)


# --- the head -------------------------------------------------------------------------------------------------------

HEADS = {
    "of another format": ({"format": "casebound-other/v1"}, "/format"),
    "of another measurement": ({"measurement_id": digest_of(b"another")}, "/measurementId"),
    "of no split": ({"split": "test"}, "/split"),
    "of two splits": ({"case_ids": ("a", "v")}, "/caseIds/1"),
    "with a case that nobody knows": ({"case_ids": ("a", "z")}, "/caseIds/1"),
    "with a case twice": ({"case_ids": ("a", "b", "a")}, "/caseIds/2"),
    "of the future": ({"started_at": "2026-11-20T12:00:00.001Z"}, "/startedAt"),
}


@pytest.mark.spec("B-024", "B-106", "B-107")
@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_binds_something_else_is_refused(name, tmp_path):
    changed, pointer = HEADS[name]
    error = refused(tmp_path, [GOOD], **changed)
    assert (error.code, error.pointer) == ("BENCH_CAPTURES", pointer)


@pytest.mark.spec("B-106")
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"repeats": 3}, "/repeats"),
        ({"repeats": 0}, "/repeats"),
        ({"repeats": "1"}, "/repeats"),
        ({"caseIds": []}, "/caseIds"),
        ({"startedAt": "2026-11-11 08:00"}, "/startedAt"),
        ({"executor": " "}, "/executor"),
        ({"executor": None}, "/executor"),
        ({"measurementID": MEASUREMENT}, "/measurementID"),
        ({"records": {"count": 1}}, "/records/bytes"),
    ],
)
def test_a_head_of_another_shape_is_refused(change, pointer, tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    head.write_bytes(canonical_bytes({**json.loads(head.read_bytes()), **change}))
    error = refusal(head)
    assert (error.code, error.pointer) == ("BENCH_CAPTURES", pointer)


@pytest.mark.spec("B-106")
@pytest.mark.parametrize("key", ["measurementId", "split", "repeats", "startedAt", "executor", "model", "records"])
def test_a_head_without_a_binding_is_refused(key, tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    value = json.loads(head.read_bytes())
    del value[key]
    head.write_bytes(canonical_bytes(value))
    assert refusal(head).pointer == f"/{key}"


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (lambda data: data[:-1], "BENCH_FILE"),
        (lambda data: b"\xef\xbb\xbf" + data, "BENCH_FILE"),
        (lambda data: data.decode().encode("utf-16"), "BENCH_FILE"),
        (lambda data: data.replace(b'"repeats":1', b'"repeats":1,"repeats":1'), "BENCH_FILE"),
        (lambda data: data.replace(b'"repeats":1', b'"repeats":NaN'), "BENCH_FILE"),
        (lambda data: b"[" * 100_000, "BENCH_FILE"),
        (lambda data: b"[]", "BENCH_CAPTURES"),
        (lambda data: data + b"\n", "BENCH_CAPTURES"),
        (lambda data: b"", "BENCH_FILE"),
    ],
)
def test_a_head_that_is_no_canonical_json_is_refused(broken, code, tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    head.write_bytes(broken(head.read_bytes()))
    assert refusal(head).code == code


@pytest.mark.spec("B-024", "B-073")
@pytest.mark.parametrize(
    ("reviewed", "holds"), [(REVIEWED, True), (STARTED, False), ("2026-11-12T08:00:00.000Z", False)]
)
def test_captures_begin_after_every_review(reviewed, holds, tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    if holds:
        assert not load_captures(head, SUBJECT, [receipt(reviewed)], NOW).bound_receipts
        return
    error = refusal(head, receipts=[receipt(REVIEWED), receipt(reviewed)])
    assert (error.code, error.pointer) == ("BENCH_CAPTURES", "/startedAt")
    assert STARTED in error.found
    assert reviewed in error.found


def test_a_start_that_equals_now_is_no_future_and_the_message_shows_both_times(tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD], started_at=format_time(NOW))
    load_captures(head, SUBJECT, (), NOW)
    early = NOW.replace(hour=11)
    error = refusal(head, now=early)
    assert (format_time(NOW) in error.found, format_time(early) in error.found, "1:00:00" in error.found) == (True,) * 3


def test_only_receipts_that_the_run_was_bound_to_are_shown_to_come_first(tmp_path):
    first, later = receipt(REVIEWED), replace(receipt(REVIEWED), digest=digest_of(b"written afterwards"))
    head = write_captures(tmp_path, SUBJECT, [GOOD], receipts=(first.digest,))
    assert load_captures(head, SUBJECT, [first], NOW).bound_receipts
    assert not load_captures(head, SUBJECT, [first, later], NOW).bound_receipts


# --- the lines ------------------------------------------------------------------------------------------------------

OTHER_INPUT = GOOD.model_copy(update={"input": digest_of(b"changed")})
STRANGE = GOOD.model_copy(update={"case_id": "z"})
LINES = {
    "unknown": ([STRANGE], {}, "/caseId", "which the corpus does not have"),
    "duplicate": ([GOOD, GOOD], {}, None, "a second time"),
    "changed-input": ([OTHER_INPUT], {}, "/input", "another input"),
    "unplanned case": ([GOOD], {"case_ids": ("b", "c")}, "/caseId", "which was not planned"),
    "unplanned split": ([record(SUBJECT, "v", answer(SAME))], {}, "/caseId", "which was not planned"),
    "unplanned repeat": ([record(SUBJECT, "a", answer(SAME), 2)], {}, "/repeat", "repeat 2, where 1 were planned"),
}


@pytest.mark.spec("B-040", "B-107")
@pytest.mark.parametrize("name", LINES)
def test_a_record_that_was_not_planned_as_it_stands_is_refused(name, tmp_path):
    lines, changed, pointer, found = LINES[name]
    error = refused(tmp_path, lines, **changed)
    assert (error.code, error.pointer, error.where) == ("BENCH_CAPTURES", pointer, f"line {len(lines)}")
    assert found in error.found
    assert error.path.endswith("captures.jsonl")


@pytest.mark.spec("B-038")
def test_captures_do_not_hold_for_a_corpus_whose_input_changed(tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    case, *others = SUBJECT.corpus.cases
    changed = case.model_copy(update={"input": case.input.model_copy(update={"first": "another word"})})
    assert refusal(head, pair_subject(pair_corpus([changed, *others]))).pointer == "/input"


BYTES = {
    "no object": b"[]\n",
    "not canonical": GOOD.to_bytes().replace(b'"repeat":1', b'"repeat": 1') + b"\n",
    "a key twice": GOOD.to_bytes().replace(b'"repeat":1', b'"repeat":1,"repeat":1') + b"\n",
    "a null that should be absent": GOOD.to_bytes().replace(b'"repeat":1', b'"native":null,"repeat":1') + b"\n",
    "a cost as a number": GOOD.to_bytes().replace(b'"caseId":"a"', b'"caseId":"a","costUSD":0') + b"\n",
    "an output of a failed call": GOOD.to_bytes().replace(b'"status":"output"', b'"status":"cancelled"') + b"\n",
    "a Python key": GOOD.to_bytes().replace(b'"caseId"', b'"case_id"') + b"\n",
    "no end": GOOD.to_bytes(),
    "an empty line": GOOD.to_bytes() + b"\n\n",
    "bad UTF-8": b"\xff\n",
}


def test_a_line_that_is_not_canonical_says_where(tmp_path):
    data = record(SUBJECT, "a", answer(SAME), usage={"tokens": 1}).to_bytes()
    error = refused(tmp_path, [data.replace(b'"tokens":1', b'"tokens":1.5') + b"\n"])
    assert (error.pointer, "float" in error.found) == ("/usage/tokens", True)
    error = refused(tmp_path, [data.replace(b'"status"', b'"native":null,"status"') + b"\n"])
    assert (error.pointer, error.found) == ("/native", "a value that is written otherwise, or missing")


LINE = record(SUBJECT, "a", answer(SAME), usage={"deep": [{"n": 1}]}, duration_ms=1, cost_usd="0.1").to_bytes() + b"\n"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_happens_to_a_byte_of_the_lines_is_refused_and_of_the_head_read_or_refused(data):
    with tempfile.TemporaryDirectory() as folder:
        head = write_captures(Path(folder), SUBJECT, [LINE])
        path = data.draw(st.sampled_from([head, head.with_name("captures.jsonl")]))
        whole = path.read_bytes()
        at = data.draw(st.integers(0, len(whole) - 1))
        new = data.draw(st.sampled_from([b"", b"\0", b'"', b"9", b"\xff", b"{", whole]))
        kept = data.draw(st.sampled_from([whole[at + 1 :], whole[at:], b""]))
        path.write_bytes(whole[:at] + new + kept)
        changed = path.read_bytes() != whole
        try:
            check_captures(load_captures(head, SUBJECT, (), NOW), SUBJECT)
            refused_at = None
        except SettingsError as exc:
            refused_at = (exc.exit_status, Path(exc.path).parent)
        assert refused_at in (None, (2, Path(folder)))
        assert path == head or (refused_at is not None) == changed


@pytest.mark.parametrize("name", BYTES)
def test_a_line_that_is_no_record_is_refused_with_its_number(name, tmp_path):
    error = refused(tmp_path, [BYTES[name]])
    assert error.code in ("BENCH_CAPTURES", "BENCH_FILE")
    assert error.where in ("line 1", "line 2")
    assert error.path.endswith("captures.jsonl")


def test_a_line_of_any_length_is_refused_before_it_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(captures_module, "MOST_LINE_BYTES", len(GOOD.to_bytes()))
    error = refused(tmp_path, [GOOD])
    assert "more than" in error.found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda data: data[:-20], "bytes, where the head binds"),
        (lambda data: data + data, "bytes, where the head binds"),
        (lambda data: data.replace(b"tiny", b"tall"), "other bytes than the head binds"),
        (lambda data: data.replace(b"\n", b"\r"), "a line that does not end"),
    ],
)
def test_lines_that_the_head_does_not_bind_are_refused(change, found, tmp_path):
    line = record(SUBJECT, "a", answer(SAME), usage={"note": "tiny"})
    head = write_captures(tmp_path, SUBJECT, [line])
    lines = head.with_name("captures.jsonl")
    lines.write_bytes(change(lines.read_bytes()))
    error = refusal(head)
    assert (error.code, found in error.found) == ("BENCH_CAPTURES", True)


def test_a_count_that_differs_is_refused(tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    value = json.loads(head.read_bytes())
    value["records"]["count"] = 2
    head.write_bytes(canonical_bytes(value))
    assert "1 lines, where the head says 2" in refusal(head).found


@pytest.mark.parametrize("name", ["captures.json", "captures.jsonl"])
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_is_no_regular_file_is_refused_and_nobody_waits_for_it(kind, name, tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    (tmp_path / name).unlink()
    if kind == "folder":
        (tmp_path / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(tmp_path / name)
    assert refusal(head).code == "BENCH_FILE"


def test_lines_that_change_between_loading_and_judging_end_the_check(tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    loaded = load_captures(head, SUBJECT, (), NOW)
    head.with_name("captures.jsonl").write_bytes(record(SUBJECT, "b", answer(SAME)).to_bytes() + b"\n")
    with pytest.raises(IntegrityError) as caught:
        check_captures(loaded, SUBJECT)
    assert caught.value.code == "STORE_DIGEST"


@pytest.mark.spec("B-055")
def test_loading_and_checking_write_nothing(tmp_path):
    head = write_captures(tmp_path, SUBJECT, [GOOD])
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    check_captures(load_captures(head, SUBJECT, (), NOW), SUBJECT)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == before


def test_an_output_is_judged_as_the_reply_that_it_was():
    reply = ModelReply(text="{}", finish_reason="other", native_finish_reason="x", served_model="m", tools=("shell",))
    assert CapturedOutput.of(reply).reply() == reply
    assert CaptureRecord.from_bytes(GOOD.to_bytes()) == GOOD
