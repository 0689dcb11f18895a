"""`bench check`, `bench review` and `bench accept` on the benchmark of entity links, as people use them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from casebound.bench.subject import input_digest
from casebound.canonical import digest_of, readable_bytes
from casebound.cli.bench import bench
from casebound.cli.program import run
from casebound.clock import format_time
from casebound.contracts.bench_captures import CapturedOutput, CaptureRecord, Captures, RecordedLines
from casebound.host import build_host
from casebound_bench_entity_link.corpus import LinkCorpus

VERSIONS = build_host().benchmarks["entity-link"].versions
NOW = datetime.now(UTC)
REVIEWED, STARTED, LATER = (format_time(NOW - timedelta(hours=hours)) for hours in (3, 2, 1))


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A bundle with both receipts, and its development cases."""
    root = tmp_path_factory.mktemp("bench")
    assert run(["bench", "prepare", "entity-link", "--output", str(root / "blank")]) == 0
    corpus = LinkCorpus.model_validate_json((root / "blank" / "corpus.json").read_bytes(), by_alias=True, by_name=False)
    own = {"reviewer": corpus.authors[0]}
    other = {"reviewer": "Iris Reader", "reviewKind": "independent-human", "independenceAttestation": True}
    receipts = [sign(root, "author-review", own), sign(root, "independent-review", other)]
    flags = ["--self-review", str(receipts[0]), "--review", str(receipts[1])]
    assert run(["bench", "prepare", "entity-link", "--output", str(root / "bundle"), *flags]) == 0
    return root / "bundle", corpus.in_split("development"), [digest_of(path.read_bytes()) for path in receipts]


def sign(root, name, statements):
    form = json.loads((root / "blank" / f"{name}.template.json").read_bytes())
    form.update(statements, reviewedAt=REVIEWED, reviewedBeforeOutputs=True)
    for decision in form["decisions"]:
        decision.update(decision="approved", rationale="read against the guide")
    path = root / f"{name}.json"
    path.write_bytes(readable_bytes(form))
    return path


def suggestion(case, **changed):
    sides = {
        name: {"entityId": side.entity_id, "mentionIds": [side.mentions[0].mention_id]}
        for name, side in (("left", case.input.left), ("right", case.input.right))
    }
    return {
        "version": "entity-link-suggestion/v1",
        "assessment": case.expected_assessment,
        "rationale": "as the mentions say",
        **sides,
        **changed,
    }


def record(case, text):
    output = CapturedOutput(text=text, finish_reason="stop")
    return CaptureRecord(case_id=case.case_id, repeat=1, input=input_digest(case.input), status="output", output=output)


def write_captures(folder, kit, texts):
    bundle, cases, receipts = kit
    lines = b"".join(record(case, text).to_bytes() + b"\n" for case, text in zip(cases, texts, strict=False))
    head = Captures(
        format=VERSIONS.captures,
        measurement_id=json.loads((bundle / "manifest.json").read_bytes())["measurementId"],
        plan_id=None,
        split="development",
        case_ids=tuple(case.case_id for case in cases),
        repeats=1,
        started_at=STARTED,
        executor="scripted",
        model=None,
        response_format="json_schema",
        receipts=tuple(receipts),
        records=RecordedLines(count=len(texts), bytes=len(lines), digest=digest_of(lines)),
    )
    (folder / "captures.jsonl").write_bytes(lines)
    path = folder / "captures.json"
    path.write_bytes(head.to_bytes())
    return str(path)


def texts_of(kit, **changed):
    """Return a good answer of each case, but of those that are given."""
    return [changed.get(case.case_id.replace("-", "_"), json.dumps(suggestion(case))) for case in kit[1]]


def asked(capsys, *arguments):
    capsys.readouterr()
    status = run(["bench", *map(str, arguments), "--format", "json"])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.spec("B-062", "B-063", "B-064")
def test_check_tells_every_slot_and_fails_only_for_what_is_missing_or_not_admitted(kit, tmp_path, capsys):
    case = kit[1][0]
    wrong = "different_objects" if case.expected_assessment == "same_object" else "same_object"
    one = json.dumps(suggestion(case, assessment=wrong))
    captures = write_captures(tmp_path, kit, [one, *texts_of(kit)[1:]])
    status, lines = asked(capsys, "check", kit[0], "--captures", captures)
    assert (status, len(lines)) == (0, 7)
    assert [slot["agreesWithAuthor"] for slot in lines[:-1]] == [False] + [True] * 5
    assert {slot["rationaleReview"] for slot in lines[:-1]} == {"pending"}
    summary = lines[-1]
    assert (summary["authorReferenceMatches"], summary["semanticReview"]) == (5, "pending")
    missing = write_captures(tmp_path, kit, texts_of(kit)[:5])
    status, lines = asked(capsys, "check", kit[0], "--captures", missing)
    assert (status, lines[-2]["state"], lines[-1]["unattempted"]) == (1, "unattempted", 1)
    run(["bench", "check", "--help"])
    assert "neither semantic nor independent acceptance" in " ".join(capsys.readouterr().out.split())


@pytest.mark.spec("B-047", "B-048")
def test_binding_is_exact_ids_unique_mentions_and_those_of_that_side(kit, tmp_path, capsys):
    first = kit[1][0]
    good = suggestion(first)
    mention = good["left"]["mentionIds"][0]
    faults = [
        {"left": good["right"], "right": good["left"]},
        {"left": {**good["left"], "entityId": "another"}},
        {"left": {**good["left"], "mentionIds": [mention, mention]}},
        {"left": {**good["left"], "mentionIds": good["right"]["mentionIds"]}},
        {"right": {**good["right"], "mentionIds": ["m-nowhere"]}},
    ]
    for fault in faults:
        captures = write_captures(tmp_path, kit, [json.dumps({**good, **fault}), *texts_of(kit)[1:]])
        status, lines = asked(capsys, "check", kit[0], "--captures", captures)
        assert (status, lines[0]["state"], lines[0]["assessment"]) == (1, "binding_rejection", None), fault
        assert (lines[-1]["bindingRejections"], lines[-1]["structureRejectionRate"]) == (1, "0")


@pytest.mark.spec("B-036", "B-081", "B-137d", "B-139a", "B-139c", "B-139d")
def test_people_review_outputs_and_acceptance_is_a_truth_table(kit, tmp_path, capsys):
    captures = write_captures(tmp_path, kit, texts_of(kit))
    forms = tmp_path / "forms"
    assert run(["bench", "review", str(kit[0]), "--captures", captures, "--output", str(forms)]) == 0
    assert len(list(forms.iterdir())) == 6
    arguments = ("accept", kit[0], "--captures", captures, "--reviews", forms)
    status, (blank,) = asked(capsys, *arguments)
    assert (status, blank["accepted"], blank["standing"]) == (1, False, "exploratory")
    assert [item["name"] for item in blank["conditions"] if not item["holds"]] == ["outputs_reviewed"]
    for path in forms.iterdir():
        form = json.loads(path.read_bytes())
        form.update(reviewKind="independent-human", reviewer="Iris Reader", reviewedAt=LATER)
        form["independenceAttestation"] = True
        for answer in (*form["aspects"].values(), *form["checks"]):
            answer["verdict"] = "holds"
        path.write_bytes(readable_bytes(form))
    status, (found,) = asked(capsys, *arguments)
    assert (status, found["accepted"], found["standing"]) == (0, True, "strictly_accepted")
    assert found["checks"] == blank["checks"]
    assert run(["bench", *map(str, arguments)]) == 0
    told = capsys.readouterr().out
    assert "strict acceptance: yes" in told
    assert "do not establish overall accuracy" in told


def test_forms_are_never_written_over_anything(kit, tmp_path, capsys):
    captures = write_captures(tmp_path, kit, texts_of(kit))
    for place in (tmp_path, "forms", tmp_path / "none" / "forms"):
        assert run(["bench", "review", str(kit[0]), "--captures", captures, "--output", str(place)]) == 2
        assert "BENCH_OUTPUT" in capsys.readouterr().err
    (tmp_path / "captures.jsonl").write_bytes(b"")
    place = tmp_path / "forms"
    assert run(["bench", "review", str(kit[0]), "--captures", captures, "--output", str(place)]) == 2
    assert "captures.jsonl" in capsys.readouterr().err
    assert not place.exists()


@pytest.mark.spec("B-074", "B-077", "B-082")
def test_no_option_and_no_variable_makes_an_authors_review_an_independent_one(kit, tmp_path, capsys, monkeypatch):
    known = {
        "prepare": {"benchmark", "corpus", "output", "self_review", "review", "captures", "repository", "as_json"},
        "check": {"bundle", "captures", "repository", "as_json"},
        "review": {"bundle", "captures", "output", "repository"},
        "accept": {"bundle", "captures", "reviews", "repository", "as_json"},
    }
    for name, options in known.items():  # a new option has to be thought about here
        assert {option.name for option in bench.commands[name].params} - {"debug"} == options
        assert {option.envvar for option in bench.commands[name].params} == {None}
        assert (bench.commands[name].context_settings or {}).get("auto_envvar_prefix") is None
    for name in ("REVIEW", "REVIEW_KIND", "INDEPENDENT", "GOLD"):
        monkeypatch.setenv(f"CASEBOUND_{name}", "1")
        monkeypatch.setenv(f"CASEBOUND_BENCH_PREPARE_{name}", "1")
    own = kit[0].parent / "author-review.json"
    posing = json.loads((kit[0].parent / "independent-review.json").read_bytes())
    author = json.loads(own.read_bytes())["reviewer"]
    forged = tmp_path / "forged.json"
    for changed in ({"reviewer": author.upper()}, {"reviewKind": "model"}, {"independenceAttestation": False}):
        forged.write_bytes(readable_bytes({**posing, **changed}))
        for review in (own, forged):
            place = tmp_path / "new"
            flags = ["--self-review", str(own), "--review", str(review)]
            assert run(["bench", "prepare", "entity-link", "--output", str(place), *flags]) == 2
            assert "BENCH_RECEIPT" in capsys.readouterr().err
            assert not place.exists()
