"""Recorded replies answer again: the same requests, their own outcomes, and nobody else is asked."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import NativeRecord, Outcome
from casebound.contracts.recording import Recording
from casebound.errors import ProviderError, SettingsError
from casebound.llm.attempts import AttemptLog
from casebound.llm.replay import REPLAYED
from casebound.progress import latest_revision
from casebound.recording import MOST_BYTES, load_recording, write_recording
from casebound.testing.inventory import REPORT, settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider, native_error, native_reply
from casebound.verification import verify_package
from hypothesis import given, settings
from hypothesis import strategies as st

STAGES = ("plan", "assessment", "interpretation")
RESULTS = (
    "entity-resolution/plan.json",
    "entity-resolution/candidates.json",
    "entity-resolution/assessment.json",
    "context.json",
    "interpretation.json",
    "summary.md",
    "hypothesis-context.json",
)
REFUSED = native_reply("", finish_reason="refusal")
CUT = native_reply('{"searches":[{"catal', finish_reason="length")


@pytest.fixture
def live(tmp_path):
    return write_inventory(tmp_path / "live")


@pytest.fixture
def elsewhere(tmp_path):
    return write_inventory(tmp_path / "elsewhere")


def record(inventory, model=None, name="replies.json"):
    """Resolve with `model`, record the package, and return the file."""
    inventory.resolve(model or InventoryModel())
    return write(inventory, name)


def write(inventory, name="replies.json"):
    file = inventory.folder.parent / name
    write_recording(inventory.package().root, file, inventory.host())
    return file


def replay(inventory, source):
    project = inventory.project(RaisingProvider(), replay_from=source)
    (result,) = project.resolve([inventory.report])
    project.close()
    return result


def outcomes(inventory):
    package = inventory.package()
    revision = latest_revision(package)
    return [
        (stage, attempt.number, attempt.outcome.kind, attempt.outcome.code, attempt.outcome.findings)
        for stage in STAGES
        for attempt in AttemptLog(package, revision, stage).all()
    ]


def file_names(inventory):
    return [path for path in inventory.package().paths() if "attempts" in path]


# --- the same again ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-045", "A-113m")
@pytest.mark.parametrize("form", ["file", "package"])
def test_replayed_replies_end_in_the_same_accepted_bytes(live, elsewhere, form):
    file = record(live)
    result = replay(elsewhere, file if form == "file" else live.package().root)
    assert result.state == "interpreted"
    folder = "analysis/interpretations/0001"
    for name in RESULTS:
        assert elsewhere.package().read(f"{folder}/{name}") == live.package().read(f"{folder}/{name}"), name
    for path in file_names(live):
        if not path.endswith(("native.json", "outcome.json")):
            assert elsewhere.package().read(path) == live.package().read(path), path
    assert outcomes(elsewhere) == outcomes(live)


def test_a_replayed_package_says_so_and_holds(live, elsewhere):
    file = record(live)
    recording = load_recording(file, live.host())
    result = replay(elsewhere, file)
    package = elsewhere.package()
    assert verify_package(package.root, elsewhere.host()).answer == "holds"
    assert result.replayed == result.to_json()["replayed"]
    natives = [path for path in file_names(elsewhere) if path.endswith("native.json")]
    marks = [package.load(path, NativeRecord).headers[REPLAYED] for path in natives]
    assert sorted(marks) == sorted(f"{result.replayed} {stage}-0001" for stage in STAGES)
    assert "replayed" not in live.resolve(RaisingProvider()).to_json()
    kept = load_recording(package.root, elsewhere.host())
    assert [attempt.reply for attempt in kept.attempts] == [attempt.reply for attempt in recording.attempts]


def test_a_recording_is_the_same_bytes_whoever_makes_it_and_holds_no_request(live, tmp_path):
    first = record(live).read_bytes()
    assert write(live, "again.json").read_bytes() == first
    other = write_inventory(tmp_path / "other")
    assert record(other, name="other.json").read_bytes() == first
    for text in ("You interpret", "sqlite", str(tmp_path), "2026-"):
        assert text.encode() not in first


def test_errors_refusals_and_cut_replies_are_replayed_with_their_own_outcome(live, elsewhere):
    slow = ProviderError("LLM_RATE_LIMITED", retryable=True, retry_after=7, found="a test")
    plan = [slow, REFUSED, CUT, native_error("LLM_UNAVAILABLE", retryable=True)]
    model = InventoryModel(scripted={"plan": plan, "interpretation": [{"nonsense": True}, "no JSON"]})
    states = []
    for _ in range(3):
        states.append(live.resolve(model).state)
        live.clock.advance(120)
    assert states == ["retry_pending", "retry_pending", "interpreted"]
    file = write(live)
    again = []
    for _ in range(3):
        again.append(replay(elsewhere, file).state)
        elsewhere.clock.advance(120)
    assert again == states
    assert outcomes(elsewhere) == outcomes(live)
    assert [code for _, _, _, code, _ in outcomes(elsewhere)][:5] == [
        "LLM_RATE_LIMITED", "LLM_REFUSED", "LLM_INCOMPLETE_OUTPUT", "LLM_UNAVAILABLE", None,
    ]  # fmt: skip
    kept = elsewhere.package().load(
        "analysis/interpretations/0001/entity-resolution/attempts/plan-0001/outcome.json", Outcome
    )
    assert (kept.retryable, kept.retry_after_ms) == (True, 7000)
    assert "a test" in kept.message
    assert "replayed from: sha256:" in kept.message
    assert verify_package(elsewhere.package().root, elsewhere.host()).answer == "holds"


def test_a_call_whose_reply_never_arrived_is_unknown_again(live, elsewhere):
    class Dead(BaseException):
        """Ends the run where it stands."""

    class Dying(RaisingProvider):
        async def send(self, request):
            raise Dead

    with pytest.raises(Dead):
        live.resolve(Dying())
    result = replay(elsewhere, record(live))
    assert result.state == "interpreted"
    assert [item[:4] for item in outcomes(elsewhere)] == [item[:4] for item in outcomes(live)]
    assert outcomes(elsewhere)[0][2] == "unknown"
    assert verify_package(elsewhere.package().root, elsewhere.host()).answer == "holds"


def test_a_blocked_case_is_resumed_by_a_replay(live, elsewhere):
    model = InventoryModel(scripted={"assessment": [native_error("LLM_QUOTA")]})
    assert live.resolve(model).state == "blocked"
    live.clock.advance(120)
    assert live.project(model).resume("INC-7").state == "interpreted"
    file = write(live)
    assert replay(elsewhere, file).state == "blocked"
    elsewhere.clock.advance(120)
    assert elsewhere.project(RaisingProvider(), replay_from=file).resume("INC-7").state == "interpreted"
    assert outcomes(elsewhere) == outcomes(live)


def test_a_replayed_package_may_be_replayed_in_its_turn(live, elsewhere, tmp_path):
    slow = ProviderError("LLM_TIMEOUT", retryable=True, found="a test")
    assert live.resolve(InventoryModel(scripted={"interpretation": [slow]})).state == "retry_pending"
    live.clock.advance(120)
    live.resolve(InventoryModel())
    for before, after in pairwise([live, elsewhere, write_inventory(tmp_path / "third")]):
        assert replay(after, before.package().root).state == "retry_pending"
        after.clock.advance(120)
        result = replay(after, before.package().root)
        assert (result.state, result.replayed is None) == ("interpreted", False)
        assert outcomes(after) == outcomes(live)


def test_a_fallback_that_answered_answers_again_and_nobody_else(tmp_path):
    llm = 'fallback = ["second"]\n[llm.profile.second]\nmodel = "{}"\n'
    text = settings_text(llm=llm.format("second"))
    live, again = (write_inventory(tmp_path / name, settings=text) for name in ("live", "again"))
    result = live.resolve(InventoryModel(scripted={"plan": [native_error("LLM_QUOTA")]}))
    assert result.answered_by["plan"]["fallback"]
    file = write(live)
    replayed = replay(again, file)
    assert (replayed.state, replayed.answered_by) == (result.state, result.answered_by)
    other = write_inventory(tmp_path / "other", settings=settings_text(llm=llm.format("third")))
    refused = replay(other, file)
    assert refused.code == "REPLAY_MISMATCH"
    assert "another model (third, recorded: second)" in refused.error
    assert len({path.split("/")[-2] for path in file_names(other)}) == 1  # the first attempt; nothing of the second


def test_the_latest_interpretation_of_a_revised_case_is_what_is_recorded(live, elsewhere):
    live.resolve(InventoryModel(scripted={"plan": ["no JSON"] * 3}))
    assert live.project(InventoryModel()).revise("INC-7").state == "interpreted"
    recording = load_recording(write(live), live.host())
    assert [(attempt.stage, attempt.outcome.kind) for attempt in recording.attempts] == [
        (stage, "accepted") for stage in STAGES
    ]
    assert replay(elsewhere, live.package().root).state == "interpreted"


SCRIPTS = st.lists(
    st.sampled_from(
        [
            REFUSED,
            CUT,
            "no JSON",
            {"searches": "none"},
            ProviderError("LLM_TIMEOUT", retryable=True),
            native_error("LLM_RATE_LIMITED", retryable=True, retry_after_s=90),
            native_error("LLM_AUTH"),
        ]
    ),
    max_size=4,
)


@settings(max_examples=5, deadline=None)
@given(SCRIPTS, st.sampled_from(STAGES))
def test_whatever_was_answered_is_answered_again(script, stage):
    with TemporaryDirectory() as folder:
        live, elsewhere = (write_inventory(Path(folder) / name) for name in ("live", "elsewhere"))
        states = go_on(live, provider=InventoryModel(scripted={stage: script}))
        assert go_on(elsewhere, provider=RaisingProvider(), replay_from=write(live)) == states
        assert outcomes(elsewhere) == outcomes(live)
        assert verify_package(elsewhere.package().root, elsewhere.host()).findings == ()


def go_on(inventory, **options):
    """Resolve, and resume as long as the case waits for anything but a person; return the states on the way."""
    states = []
    while not states or states[-1] not in ("interpreted", "review"):
        project = inventory.project(options["provider"], replay_from=options.get("replay_from"))
        if states and states[-1] == "blocked":
            states.append(project.resume("INC-7").state)
        else:
            states += [result.state for result in project.resolve([inventory.report])]
        project.close()
        inventory.clock.advance(120)
    return states


def test_a_replay_costs_nothing_of_the_budget(live, elsewhere):
    file = record(live)
    elsewhere.configure(settings_text(more="[budget]\nrun_calls = 1\ncase_calls = 1\n"))
    assert replay(elsewhere, file).state == "interpreted"


def test_a_case_in_review_is_replayed_to_its_review(live, elsewhere):
    file = record(live, InventoryModel(scripted={"assessment": ["no JSON"] * 3}))
    result = replay(elsewhere, file)
    assert (result.state, result.code) == ("review", "ENTITY_RESOLUTION_INVALID_RESPONSES")


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "report", "part"),
    [
        (settings_text(), REPORT.replace("stopped", "ceased"), "user.sources"),
        (settings_text(resolution={"max_searches": 3}), REPORT, "user.limits"),
        (settings_text(llm='response_format = "text"'), REPORT, "response_format (text"),
    ],
)
def test_another_request_is_refused_with_the_part_that_differs(live, tmp_path, text, report, part):
    file = record(live)
    other = write_inventory(tmp_path / "other", settings=text, report=report)
    result = replay(other, file)
    assert (result.code, result.exit_status) == ("REPLAY_MISMATCH", 1)
    where, found = result.error.splitlines()[1:3]
    assert where == "  where: stage plan, attempt 1"
    assert part in found.removeprefix("  found: another ").split(", ")
    assert file_names(other) == []
    assert verify_package(other.package().root, other.host()).answer == "unfinished"


def test_settings_that_name_another_model_are_refused_before_anything_is_written(live, tmp_path):
    file = record(live)
    other = write_inventory(tmp_path / "other", settings=settings_text(model="another-model"))
    with pytest.raises(SettingsError) as caught:
        replay(other, file)
    assert caught.value.code == "REPLAY_MISMATCH"
    assert "stage plan\n  found: another model (another-model, recorded: test-model)" in str(caught.value)
    assert not other.workspace.exists()


def test_what_was_not_recorded_is_asked_of_nobody(live, elsewhere):
    full = record(live)
    attempts = [attempt for attempt in load_recording(full, live.host()).attempts if attempt.stage != "interpretation"]
    part = full.with_name("part.json")
    part.write_bytes(Recording.of(attempts).to_bytes())
    result = replay(elsewhere, part)
    assert (result.code, result.state) == ("REPLAY_MISSING", "assessed")
    assert "stage interpretation, attempt 1" in result.error
    assert not [path for path in file_names(elsewhere) if "interpretation-" in path]
    assert replay(elsewhere, full).state == "interpreted"


def test_a_correction_that_was_not_recorded_leaves_no_file(live, elsewhere):
    full = record(live, InventoryModel(scripted={"plan": ["no JSON"]}))
    attempts = load_recording(full, live.host()).attempts
    part = full.with_name("part.json")
    part.write_bytes(Recording.of([attempts[0]]).to_bytes())
    assert (attempts[0].stage, replay(elsewhere, part).code) == ("plan", "REPLAY_MISSING")
    before = list(elsewhere.package().paths())
    assert [path for path in before if "feedback" in path or "plan-0002" in path] == []
    assert replay(elsewhere, full).state == "interpreted"


def kill_before_reading(inventory):
    """Leave what a process that was killed between the last native bytes and what is read from them leaves."""
    folder = inventory.package().root / "analysis/interpretations/0001"
    for name in ("seal.json", "interpretation.json", "summary.md", "hypothesis-context.json"):
        (folder / name).unlink()
    for name in ("outcome.json", "reply.json"):
        (folder / "attempts/interpretation-0001" / name).unlink()
    return folder / "attempts/interpretation-0001"


def test_a_replay_that_was_killed_goes_on_with_its_own_recording_only(live, elsewhere, tmp_path):
    file = record(live)
    other = record(write_inventory(tmp_path / "other"), InventoryModel(scripted={"plan": ["no JSON"]}), "other.json")
    replay(elsewhere, file)
    attempt = kill_before_reading(elsewhere)
    assert replay(elsewhere, other).code == "REPLAY_MISMATCH"
    assert sorted(path.name for path in attempt.iterdir()) == ["native.bin", "native.json", "request.json"]
    assert replay(elsewhere, file).state == "interpreted"
    assert verify_package(elsewhere.package().root, elsewhere.host()).answer == "holds"


# --- recordings that are none -----------------------------------------------------------------------------------------


def test_every_altered_byte_of_a_recording_is_refused(live, elsewhere):
    file = record(live)
    data = file.read_bytes()
    step = len(data) // 150
    for place in [*range(0, len(data), step), len(data) - 1]:
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SettingsError) as caught:
            replay(elsewhere, file)
        assert caught.value.code == "REPLAY_SOURCE", place
    assert not elsewhere.workspace.exists()


def poison(value):
    value["attempts"][0]["reply"]["finish_reason"] = "stop"


def swap_body(value):
    value["attempts"][0]["body"] = value["attempts"][1]["body"]


def another_version(value):
    value["format"] = "casebound-recording/v2"


@pytest.mark.parametrize(
    ("change", "found"),
    [(poison, "/content"), (swap_body, "/content"), (another_version, "casebound-recording/v2")],
)
def test_a_poisoned_recording_is_refused(live, elsewhere, change, found):
    file = record(live, InventoryModel(scripted={"plan": [REFUSED]}))
    value = json.loads(file.read_bytes())
    change(value)
    file.write_bytes(canonical_bytes(value))
    with pytest.raises(SettingsError, match="REPLAY_SOURCE") as caught:
        replay(elsewhere, file)
    assert found in str(caught.value)


def test_a_body_that_its_own_digest_denies_is_refused_under_a_new_content_digest(live, elsewhere):
    file = record(live)
    first, second, *_ = load_recording(file, live.host()).attempts
    file.write_bytes(Recording.of([first.model_copy(update={"body": second.body}), second]).to_bytes())
    with pytest.raises(SettingsError, match="the body is not what its digest says"):
        replay(elsewhere, file)


def test_a_package_that_does_not_hold_gives_no_replies(live, elsewhere):
    live.resolve(InventoryModel())
    path = next(live.package().root.rglob("plan-0001/reply.json"))
    path.write_bytes(path.read_bytes().replace(b"it is named", b"it is wrong"))
    with pytest.raises(SettingsError, match="REPLAY_SOURCE") as caught:
        replay(elsewhere, live.package().root)
    assert "plan-0001/reply.json" in str(caught.value)


def test_a_file_that_is_there_stays_and_a_package_without_replies_is_told(live, tmp_path):
    file = record(live)
    kept = file.read_bytes()
    with pytest.raises(SettingsError, match="OUTPUT_FILE"):
        write(live)
    assert file.read_bytes() == kept
    with pytest.raises(SettingsError, match="OUTPUT_FILE"):
        write(live, "no/such/folder.json")
    empty = write_inventory(tmp_path / "empty")
    empty.resolve(RaisingProvider(), stop_after="research")
    with pytest.raises(SettingsError, match="without any reply"):
        write(empty)
    with pytest.raises(SettingsError, match="PACKAGE_UNREADABLE"):
        load_recording(tmp_path / "empty", empty.host())
    with pytest.raises(SettingsError, match="REPLAY_SOURCE"):
        load_recording(tmp_path / "missing.json", empty.host())
    assert sorted(path.name for path in tmp_path.glob(".casebound-*")) == []


def test_a_recording_that_is_no_regular_file_or_too_large_is_refused_at_once(live, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes: whoever opens it as a file waits for ever
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    for source, found in [
        (tmp_path / "pipe", "no regular file"),
        (tmp_path / "sparse", f"more than {MOST_BYTES} bytes"),
        (Path("/dev/zero"), "no regular file"),
        (tmp_path / "a\0b", "null"),
    ]:
        with pytest.raises(SettingsError, match="REPLAY_SOURCE") as caught:
            load_recording(source, live.host())
        assert found in str(caught.value)


@pytest.mark.parametrize("place", [".", "analysis", "..", "../../link"])
def test_no_recording_is_written_into_a_package_or_among_the_cases(live, place):
    live.resolve(InventoryModel())
    root = live.package().root
    (root / "../../link").symlink_to(root)
    before = sorted(live.folder.rglob("*"))
    with pytest.raises(SettingsError, match="OUTPUT_FILE"):
        write_recording(root, root / place / "replies.json", live.host())
    assert sorted(live.folder.rglob("*")) == before
    assert verify_package(root, live.host()).findings == ()


def test_a_recording_may_lie_beside_a_package_json_of_somebody_else(live, tmp_path):
    (tmp_path / "package.json").write_text("{}")
    assert record(live).exists()
