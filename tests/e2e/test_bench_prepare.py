"""`bench prepare` on the benchmark of entity links: what it writes, what it refuses, and that it asks nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from casebound.bench.subject import input_digest
from casebound.bench.wording import EXPOSED
from casebound.canonical import canonical_bytes, digest_of, readable_bytes
from casebound.cli.program import run
from casebound.clock import format_time
from casebound.contracts.bench_captures import CapturedOutput, CaptureRecord, Captures, RecordedLines
from casebound.testing.distributions import run_casebound
from casebound_bench_entity_link.corpus import LinkCorpus

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime.now(UTC)
REVIEWED, STARTED = (format_time(NOW - timedelta(hours=hours)) for hours in (3, 2))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("bench") / "bundle"
    assert run(["bench", "prepare", "entity-link", "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def corpus(bundle) -> LinkCorpus:
    return LinkCorpus.model_validate_json((bundle / "corpus.json").read_bytes(), by_alias=True, by_name=False)


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# --- what it writes -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-097", "B-101")
def test_a_bundle_is_written_with_guides_in_both_languages_and_an_input_a_case(bundle, corpus):
    names = set(files_of(bundle))
    assert {"manifest.json", "corpus.json", "guide.en.md", "guide.zh.md", "system.txt", "review.html"} < names
    assert {name for name in names if name.startswith("inputs/")} == {
        f"inputs/{case.case_id}.json" for case in corpus.cases
    }
    for case in corpus.cases:
        assert json.loads((bundle / f"inputs/{case.case_id}.json").read_bytes()).keys() == {"left", "right"}


def test_the_answer_for_a_program_names_the_measurement_and_what_is_pending(tmp_path, bundle):
    done = run_casebound(["bench", "prepare", "entity-link", "--output", str(tmp_path / "b"), "--format", "json"])
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    assert found["measurementId"] == manifest["measurementId"] == digest_of(canonical_bytes(manifest["identity"]))
    assert found["readiness"]["independentReview"] == "pending"
    assert found["checks"] is None
    assert files_of(tmp_path / "b") == files_of(bundle)


def test_a_given_corpus_with_the_published_bytes_is_the_same_measurement(tmp_path, bundle):
    given = tmp_path / "copy.json"
    given.write_bytes((bundle / "corpus.json").read_bytes())
    flags = ["--corpus", str(given), "--output", str(tmp_path / "b")]
    assert run(["bench", "prepare", "entity-link", *flags]) == 0
    assert files_of(tmp_path / "b") == files_of(bundle)


# --- what it refuses ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-099")
def test_no_bundle_is_written_into_either_repository_of_a_corpus_that_is_a_link(tmp_path, monkeypatch, capsys, bundle):
    one, other, outside = (tmp_path / name for name in ("one", "other", "outside"))
    for repository in (one, other):
        (repository / ".git").mkdir(parents=True)
    outside.mkdir()
    (other / "corpus.json").write_bytes((bundle / "corpus.json").read_bytes())
    (one / "corpus.json").symlink_to("../other/corpus.json")
    monkeypatch.chdir(outside)
    for repository in (one, other):
        flags = ["--corpus", str(one / "corpus.json"), "--output", str(repository / "bundle")]
        assert run(["bench", "prepare", "entity-link", *flags]) == 2
        assert f"a place in the repository {repository}" in capsys.readouterr().err
        assert not (repository / "bundle").exists()


@pytest.mark.spec("B-098", "B-099", "B-100", "B-104")
def test_a_place_that_will_not_do_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys, bundle):
    monkeypatch.chdir(ROOT)
    (tmp_path / "in").symlink_to(ROOT / "docs")
    (tmp_path / "other").mkdir()
    refused = [
        ("bundle", []),
        (str(ROOT / "bundle"), []),
        (str(tmp_path / "in" / "bundle"), []),
        (str(tmp_path / "nowhere" / "bundle"), []),
        (str(bundle), []),
        (str(tmp_path / "other" / "bundle"), ["--repository", str(tmp_path / "other")]),
    ]
    before = files_of(bundle)
    for output, flags in refused:
        assert run(["bench", "prepare", "entity-link", "--output", output, *flags]) == 2
        assert "BENCH_OUTPUT" in capsys.readouterr().err
    assert files_of(bundle) == before
    assert not (ROOT / "bundle").exists()
    assert not (ROOT / "docs" / "bundle").exists()
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.spec("B-099")
def test_the_repository_of_the_corpus_counts_wherever_one_works(tmp_path, monkeypatch, bundle):
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "corpus.json").write_bytes((bundle / "corpus.json").read_bytes())
    (tmp_path / "linked.json").symlink_to(repository / "corpus.json")
    monkeypatch.chdir("/")
    for corpus in (repository / "corpus.json", tmp_path / "linked.json"):
        flags = ["--corpus", str(corpus), "--output", str(repository / "bundle")]
        assert run(["bench", "prepare", "entity-link", *flags]) == 2
    assert not (repository / "bundle").exists()


BAD = {
    "truncated": lambda data: data[: len(data) // 2],
    "duplicate key": lambda data: data.replace(b'"guide"', b'"format": "x",\n  "guide"', 1),
    "wrong encoding": lambda data: data.decode().encode("utf-16"),
    "empty": lambda data: b"",
    "unknown key": lambda data: data.replace(b'"guide"', b'"surplus": 1, "guide"', 1),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("option", ["--corpus", "--self-review", "--review"])
def test_a_bad_file_gets_one_clear_error_and_nothing_is_written(tmp_path, capsys, bundle, bad, option):
    source = "corpus.json" if option == "--corpus" else "author-review.template.json"
    data = BAD[bad]((bundle / source).read_bytes().replace(b'"measurementId"', b'"guide"', option != "--corpus"))
    (tmp_path / "bad.json").write_bytes(data)
    flags = ["--output", str(tmp_path / "b"), option, str(tmp_path / "bad.json")]
    assert run(["bench", "prepare", "entity-link", *flags]) == 2
    error = capsys.readouterr().err
    assert error.startswith("BENCH_")
    assert error.count("BENCH_") == 1
    assert str(tmp_path / "bad.json") in error
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


# --- receipts and captures ------------------------------------------------------------------------------------------


def sign(bundle: Path, folder: Path, **statements) -> Path:
    form = json.loads((bundle / "author-review.template.json").read_bytes())
    form.update(reviewer="casebound-corpus-author", reviewedAt=REVIEWED, reviewedBeforeOutputs=True, **statements)
    for decision in form["decisions"]:
        decision.update(decision="approved", rationale="read against the guide")
    (folder / "author-review.json").write_bytes(readable_bytes(form))
    return folder / "author-review.json"


def suggestion(case) -> str:
    sides = {
        name: {"entityId": side.entity_id, "mentionIds": [side.mentions[0].mention_id]}
        for name, side in (("left", case.input.left), ("right", case.input.right))
    }
    said = {"version": "entity-link-suggestion/v1", "assessment": case.expected_assessment, "rationale": "as they say"}
    return json.dumps({**said, **sides})


def write_captures(folder: Path, bundle: Path, corpus: LinkCorpus, outputs: int = 6, **changed) -> Path:
    cases = corpus.in_split("development")
    lines = b"".join(
        CaptureRecord(
            case_id=case.case_id,
            repeat=1,
            input=input_digest(case.input),
            status="output",
            output=CapturedOutput(text=suggestion(case), finish_reason="stop"),
        ).to_bytes()
        + b"\n"
        for case in cases[:outputs]
    )
    fields = {
        "format": "casebound-entity-link-captures/v1",
        "measurement_id": json.loads((bundle / "manifest.json").read_bytes())["measurementId"],
        "plan_id": None,
        "split": "development",
        "case_ids": tuple(case.case_id for case in cases),
        "repeats": 1,
        "started_at": STARTED,
        "executor": "scripted",
        "model": None,
        "response_format": "json_schema",
        "receipts": (),
        "records": RecordedLines(count=outputs, bytes=len(lines), digest=digest_of(lines)),
        **changed,
    }
    (folder / "captures.jsonl").write_bytes(lines)
    (folder / "captures.json").write_bytes(Captures.model_validate(fields).to_bytes())
    return folder / "captures.json"


@pytest.mark.spec("B-097")
def test_a_reviewed_bundle_keeps_the_receipt_and_checks_captures_as_bench_check_does(
    tmp_path, capsysbinary, bundle, corpus
):
    receipt, captures = sign(bundle, tmp_path), write_captures(tmp_path, bundle, corpus)
    flags = ["--output", str(tmp_path / "b"), "--self-review", str(receipt), "--captures", str(captures)]
    assert run(["bench", "prepare", "entity-link", *flags, "--format", "json"]) == 0
    *slots, last = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert last["readiness"]["exploratoryReady"] is True
    assert run(["bench", "check", str(tmp_path / "b"), "--captures", str(captures), "--format", "json"]) == 0
    *same_slots, summary = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert (slots, last["checks"]) == (same_slots, summary)
    assert summary["admitted"] == summary["authorReferenceMatches"] == len(slots) == 6
    found = files_of(tmp_path / "b")
    assert found["author-review.json"] == receipt.read_bytes()
    assert found["checks.json"] == canonical_bytes(summary)
    manifest = json.loads(found["manifest.json"])
    assert manifest["captures"] == digest_of(captures.read_bytes())
    assert EXPOSED in manifest["limitations"]


@pytest.mark.spec("B-019")
def test_that_outputs_were_seen_is_recorded_and_changes_what_the_bundle_says(tmp_path, bundle, corpus):
    captures = write_captures(tmp_path, bundle, corpus)
    flags = ["--output", str(tmp_path / "b"), "--captures", str(captures)]
    assert run(["bench", "prepare", "entity-link", *flags]) == 0
    for name in ("manifest.json", "review.html"):
        assert (EXPOSED in (bundle / name).read_text(), EXPOSED in (tmp_path / "b" / name).read_text()) == (False, True)
    assert json.loads((bundle / "manifest.json").read_bytes())["captures"] is None
    assert "not those of an unseen validation" in EXPOSED


@pytest.mark.spec("B-097")
def test_an_unattempted_slot_fails_both_commands_alike(tmp_path, capsys, bundle, corpus):
    captures = write_captures(tmp_path, bundle, corpus, outputs=5)
    assert run(["bench", "check", str(bundle), "--captures", str(captures)]) == 1
    checked = capsys.readouterr().out
    flags = ["--output", str(tmp_path / "b"), "--captures", str(captures)]
    assert run(["bench", "prepare", "entity-link", *flags]) == 1
    assert "unattempted 1" in checked
    assert checked.splitlines()[-1] in capsys.readouterr().out


@pytest.mark.spec("B-095")
def test_captures_are_not_checked_where_other_bytes_are_installed_than_were_frozen(tmp_path, capsys, bundle, corpus):
    captures = write_captures(tmp_path, bundle, corpus)
    (tmp_path / "constraints.txt").write_text("pydantic==1\n")
    flags = ["--captures", str(captures), "--repository", str(tmp_path)]
    assert run(["bench", "check", str(bundle), *flags]) == 2
    error = capsys.readouterr().err
    assert "BENCH_IDENTITY" in error
    assert "other bytes are installed here: declarations" in error


@pytest.mark.spec("B-106", "B-107")
@pytest.mark.parametrize(
    "changed",
    [
        {"format": "casebound-entity-link-captures/v0"},
        {"measurement_id": digest_of(b"another")},
        {"split": "validation"},
        {"case_ids": ("dev-component-rename", "dev-component-rename")},
        {"case_ids": ("dev-component-rename", "val-spoken-alias")},
        {"case_ids": ("dev-component-rename", "dev-unknown")},
        {"case_ids": ("dev-component-rename",)},
        {"started_at": format_time(NOW + timedelta(hours=1))},
        {"records": RecordedLines(count=6, bytes=0, digest=digest_of(b""))},
    ],
)
def test_captures_that_bind_something_else_are_refused_and_nothing_is_written(
    tmp_path, capsys, bundle, corpus, changed
):
    captures = write_captures(tmp_path, bundle, corpus, **changed)
    for command in (
        ["bench", "check", str(bundle)],
        ["bench", "prepare", "entity-link", "--output", str(tmp_path / "b")],
    ):
        assert run([*command, "--captures", str(captures)]) == 2
        assert "BENCH_CAPTURES" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


@pytest.mark.spec("B-106")
def test_a_third_repeat_is_refused(tmp_path, capsys, bundle, corpus):
    captures = write_captures(tmp_path, bundle, corpus)
    captures.write_bytes(captures.read_bytes().replace(b'"repeats":1', b'"repeats":3'))
    assert run(["bench", "check", str(bundle), "--captures", str(captures)]) == 2
    assert "/repeats" in capsys.readouterr().err


# --- nobody is asked ------------------------------------------------------------------------------------------------

GUARD = """
import sys

EVENTS = ("socket.", "subprocess.", "os.system", "os.fork", "os.exec", "os.spawn", "os.posix_spawn", "pty.", "urllib.")
MODULES = ("httpx", "aiohttp", "requests", "casebound.llm.http", "casebound.llm.stage", "casebound.llm.guarded")


def refuse(event, arguments):
    if event.startswith(EVENTS):
        raise RuntimeError(f"asked somebody: {event}")
    if event == "import":
        name = arguments[0]
        if name.split(".")[0] in MODULES or name in MODULES or (name.startswith("casebound_llm_") and "." in name):
            raise RuntimeError(f"imported a provider: {name}")


sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Path:
    """A folder that makes Python refuse sockets, processes and providers, whoever asks for them."""
    folder = tmp_path_factory.mktemp("guard")
    (folder / "sitecustomize.py").write_text(GUARD)
    return folder


@pytest.mark.spec("B-102", "B-105")
def test_preparing_and_checking_work_where_no_socket_process_or_provider_can_be_had(tmp_path, guarded, bundle, corpus):
    receipt, captures = sign(bundle, tmp_path), write_captures(tmp_path, bundle, corpus)
    flags = ["--output", str(tmp_path / "b"), "--self-review", str(receipt), "--captures", str(captures)]
    done = run_casebound(["bench", "prepare", "entity-link", *flags], plugins=guarded)
    assert (done.returncode, done.stderr) == (0, "")
    done = run_casebound(["bench", "check", str(tmp_path / "b"), "--captures", str(captures)], plugins=guarded)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import casebound_llm_offline.provider",
        "import casebound.llm.http",
    ],
)
def test_the_guard_itself_bites(guarded, code):
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(guarded)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "RuntimeError" in done.stderr
