"""The commands about cases, each in a process of its own: what they print where, and how they end."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import Protocol

import pytest
from casebound.errors import ProviderError
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import REPORT, Inventory, settings_text, write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.scripted import FixedClock, ScriptedProvider

LINE_KEYS = {
    "report", "case_id", "package", "state", "code", "resolver", "entities", "unresolved", "calls", "tokens",
}  # fmt: skip


class Run(Protocol):
    def __call__(self, *arguments: str) -> CompletedProcess[str]: ...


@pytest.fixture
def project(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path / "project", settings=behave("answer"))


@pytest.fixture
def run(tmp_path: Path, project: Inventory) -> Run:
    plugins = install_inventory(tmp_path / "plugins")

    def run(*arguments: str) -> CompletedProcess[str]:
        return run_casebound(arguments, plugins=plugins, cwd=project.folder)

    return run


def lines(done: CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- resolve ----------------------------------------------------------------------------------------------------------


def test_resolve_prints_one_json_line_and_tells_its_steps_on_standard_error(run: Run, project: Inventory) -> None:
    done = run("resolve", "report.md", "--format", "json")
    assert done.returncode == 0, done.stderr
    [line] = lines(done)
    assert set(line) == LINE_KEYS
    assert (line["report"], line["case_id"], line["state"], line["code"]) == ("report.md", "INC-7", "interpreted", None)
    assert line["resolver"] == "model"
    found = {(entity["type"], entity["id"]): entity for entity in line["entities"]}  # type: ignore[attr-defined]
    assert set(found) == {("service", "431"), ("host", "12"), ("host", "13")}
    assert found["service", "431"]["origin"] == "cited"
    assert found["host", "12"]["roles"] == [
        {"role": "affected_subject", "basis": "model_contextual_selection_not_causation"}
    ]
    assert found["host", "12"]["captures"] == ["V0001"]
    body = REPORT.split("---\n")[2]
    for mention in found["host", "13"]["mentions"]:
        assert body[mention["start"] : mention["end"]] == mention["text"] == "batch-runner"
    assert line["calls"] == {"plan": 1, "assessment": 1, "interpretation": 1}
    assert line["tokens"] == {"input": 300, "output": 30}
    steps = ["construction", "research", "plan", "look-up", "assessment", "interpretation"]
    assert done.stderr.splitlines() == [f"INC-7: {step}" for step in steps]


def test_piped_text_is_plain_and_says_where_everything_is(run: Run, project: Inventory) -> None:
    done = run("resolve", "report.md")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    package = project.folder / ".casebound" / "cases" / "INC-7"
    assert f"package  {package}\n" in done.stdout
    assert done.stdout.rstrip().endswith(str(package / "analysis/interpretations/0001/summary.md"))
    assert "host 12  edge-proxy-canary  affected_subject  resolved" in done.stdout
    assert "next  casebound explain INC-7" in done.stdout


def test_several_packages_of_a_report_are_told_apart(run: Run, project: Inventory) -> None:
    one, other = run("resolve", "report.md"), run("resolve", "report.md", "--package-id", "second")
    assert one.stdout.startswith("report.md  interpreted")
    assert other.stdout.startswith("report.md  package second  interpreted")
    assert run("explain", "second").stdout.startswith("INC-7  package second  ")
    assert run("show", "second").stdout.startswith("INC-7  package second  ")


def test_a_finished_report_is_answered_again_without_a_call(run: Run, project: Inventory) -> None:
    first = run("resolve", "report.md", "--format", "json")
    assert calls(project.folder) == ["plan", "assessment", "interpretation"]
    again = run("resolve", "report.md", "--format", "json")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")
    assert calls(project.folder) == ["plan", "assessment", "interpretation"]
    project.configure(behave("answer").replace("test-model", "other-model"))
    other = run("resolve", "report.md", "--format", "json")
    assert (other.returncode, other.stdout) == (0, first.stdout)
    assert "INC-7 was finished under other settings" in other.stderr
    assert "plan: model other-model, it was test-model" in other.stderr
    assert "`casebound revise INC-7` asks anew" in other.stderr
    assert len(calls(project.folder)) == 3


def test_results_come_in_the_order_given_and_one_bad_report_is_not_the_end(run: Run, project: Inventory) -> None:
    (project.folder / "binary.md").write_bytes(b"\x00\x01\x02 not text")
    (project.folder / "other.txt").write_text("batch-runner and edge-proxy-canary were slow today.")
    done = run("resolve", "binary.md", "missing.md", "report.md", "other.txt", "--format", "json")
    assert done.returncode == 1
    assert [(line["report"], line["state"], line["code"]) for line in lines(done)] == [
        ("binary.md", "refused", "REPORT_BINARY"),
        ("missing.md", "refused", "REPORT_UNREADABLE"),
        ("report.md", "interpreted", None),
        ("other.txt", "interpreted", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["resolve", "missing.md"], 2, "REPORT_UNREADABLE"),
        (["resolve", "inventory.db"], 2, "REPORT_FORMAT"),
        (["resolve", "report.md", "--stop-after", "lunch"], 2, "USAGE"),
        (["resolve", "report.md", "report.md", "--package-id", "p"], 2, "USAGE"),
        (["resolve", "report.md", "--package-id", "../p"], 2, "CASE_ID"),
        (["resolve", "report.md", "--project-config", "none.toml"], 2, "SETTINGS_FILE"),
        (["resolve"], 2, "Missing argument"),
        (["resume", "INC-8"], 2, "CASE_UNKNOWN"),
        (["revise", "INC-8"], 2, "CASE_UNKNOWN"),
        (["revise", "INC-7", "--stop-after", "lunch"], 2, "USAGE"),
        (["show", "../../etc"], 2, "CASE_UNKNOWN"),
        (["explain", "INC-7"], 2, "CASE_UNKNOWN"),
        (["verify", "."], 2, "PACKAGE_UNREADABLE"),
        (["demo", "nope"], 2, "SETTINGS_NAME"),
    ],
)
def test_wrong_input_is_told_in_one_message_and_nothing_is_sent(
    run: Run, project: Inventory, arguments: list[str], status: int, code: str
) -> None:
    done = run(*arguments)
    assert done.returncode == status, done.stderr
    assert code in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert calls(project.folder) == []
    assert not list((project.folder / ".casebound").glob("cases/*"))


@pytest.mark.parametrize("phase", ["admission", "construction", "research"])
def test_a_run_may_stop_early_and_go_on_later(run: Run, project: Inventory, phase: str) -> None:
    states = {"admission": "admitted", "construction": "built", "research": "researched"}
    done = run("resolve", "report.md", "--stop-after", phase, "--format", "json")
    assert (done.returncode, lines(done)[0]["state"], calls(project.folder)) == (0, states[phase], [])
    for command in ("show", "explain"):
        assert run(command, "INC-7").returncode == 0
    assert run("verify", ".casebound/cases/INC-7").returncode == 1
    on = run("resolve", "report.md", "--format", "json")
    assert (on.returncode, lines(on)[0]["state"]) == (0, "interpreted")


# --- what waits and what failed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "state", "code", "sent"),
    [
        ("LLM_QUOTA", "blocked", "LLM_QUOTA", 1),
        ("LLM_RATE_LIMITED", "retry_pending", "LLM_RATE_LIMITED", 1),
        ("nonsense", "review", "ENTITY_RESOLUTION_INVALID_RESPONSES", 3),
    ],
)
def test_a_case_that_waits_ends_with_one_and_is_not_asked_again(
    run: Run, project: Inventory, behaviour: str, state: str, code: str, sent: int
) -> None:
    project.configure(behave(behaviour))
    for _ in range(2):
        done = run("resolve", "report.md", "--format", "json")
        [line] = lines(done)
        assert (done.returncode, line["state"], line["code"]) == (1, state, code)
        assert calls(project.folder) == ["plan"] * sent
    text = run("resolve", "report.md")
    assert (text.returncode, "next  " in text.stdout) == (1, True)
    assert f"INC-7: nothing was tried: it waits ({state}, {code}) since " in text.stderr
    advice = {
        "blocked": "until {}; then `casebound resume INC-7` goes on",
        "retry_pending": "until {}; repeat the command then",
        "review": "`casebound revise INC-7` asks anew",
    }[state]
    assert advice.format(f"{line.get('retry_at')} at least") in text.stderr


def test_the_last_reply_that_was_refused_is_told_with_its_rule_and_its_place(run: Run, project: Inventory) -> None:
    project.configure(behave("nonsense"))
    done = run("resolve", "report.md", "--format", "json")
    [line] = lines(done)
    rejected = line["rejected"]
    outcome = project.folder / ".casebound/cases/INC-7" / rejected["attempt"] / "outcome.json"
    assert rejected["attempt"].endswith("/attempts/plan-0003")
    assert rejected["findings"]
    assert rejected["findings"][0]["code"] == json.loads(outcome.read_bytes())["code"]
    for text in (run("resolve", "report.md").stdout, run("show", "INC-7").stdout):
        assert f"the last reply for plan was refused  {rejected['attempt']}" in text
        assert rejected["findings"][0]["code"] in text
        assert rejected["findings"][0]["message"] in text


def test_the_next_command_finds_settings_and_cases_again(run: Run, project: Inventory) -> None:
    given = ["--project-config", "casebound.toml", "--workspace", "my cases"]
    shown = "explain INC-7 --project-config casebound.toml --workspace 'my cases'"
    done = run("resolve", "report.md", *given)
    assert f"next  casebound {shown}\n" in done.stdout
    assert f"next  casebound {shown}\n" in run("show", "INC-7", *given).stdout
    assert run(*shlex.split(shown)).returncode == 0


def test_what_waits_for_a_retry_is_never_to_be_revised_again(run: Run, project: Inventory) -> None:
    """A repeated `revise` would begin a further interpretation, and pay for every stage again."""
    assert run("resolve", "report.md").returncode == 0
    project.configure(behave("LLM_RATE_LIMITED"))
    without = run("revise", "INC-7")
    assert "next  resolve the same report again, not before " in without.stdout
    assert run("import", "report.md").returncode == 0  # from here on there is an index
    for command in ("revise", "show"):
        assert "next  casebound run --package-id INC-7, not before " in run(command, "INC-7").stdout
    fresh = run("resolve", "report.md", "--package-id", "fresh", "--stop-after", "admission").stdout
    assert "next  casebound run --package-id fresh: it goes on from here" in fresh


def test_resume_waits_for_its_time_and_then_goes_on(run: Run, project: Inventory) -> None:
    project.configure(behave("LLM_QUOTA"))
    assert run("resolve", "report.md").returncode == 1
    early = run("resume", "INC-7")
    assert (early.returncode, early.stdout, early.stderr.partition(":")[0]) == (1, "", "RETRY_LATER")
    assert calls(project.folder) == ["plan"]

    quota = {"plan": [ProviderError("LLM_QUOTA", retryable=False)]}
    project.configure(settings_text())
    long_ago = FixedClock(datetime(2020, 2, 2, tzinfo=UTC))
    [blocked] = project.project(ScriptedProvider(quota), clock=long_ago).resolve([project.report])
    assert blocked.state == "blocked"
    project.configure(behave("answer"))
    done = run("resume", "INC-7", "--workspace", "workspace", "--format", "json")
    assert (done.returncode, lines(done)[0]["state"]) == (0, "interpreted")
    assert run("verify", "workspace/cases/INC-7").returncode == 0


def test_resume_refuses_a_case_in_review(run: Run, project: Inventory) -> None:
    project.configure(behave("nonsense"))
    assert run("resolve", "report.md").returncode == 1
    refused = run("resume", "INC-7")
    assert (refused.returncode, refused.stdout, refused.stderr.partition(":")[0]) == (1, "", "RESUME_REFUSED")
    assert "`casebound revise INC-7`" in refused.stderr


def test_revise_asks_anew_under_the_settings_at_hand_and_says_where_the_answer_is(run: Run, project: Inventory) -> None:
    assert run("resolve", "report.md", "--stop-after", "research").returncode == 0
    refused = run("revise", "INC-7")
    assert (refused.returncode, refused.stdout, refused.stderr.partition(":")[0]) == (1, "", "REVISE_REFUSED")
    project.configure(behave("nonsense"))
    assert "next  casebound show INC-7, then casebound revise INC-7\n" in run("resolve", "report.md").stdout
    project.configure(behave("answer"))
    done = run("revise", "INC-7", "--format", "json")
    [line] = lines(done)
    assert (done.returncode, set(line), line["state"]) == (0, LINE_KEYS, "interpreted")
    assert done.stderr.splitlines()[-1] == "INC-7: interpretation"
    assert run("revise", "INC-7").stdout.rstrip().endswith("analysis/interpretations/0003/summary.md")
    assert run("verify", ".casebound/cases/INC-7").returncode == 0


def test_several_cases_are_revised_and_one_that_refuses_does_not_end_the_others(run: Run, project: Inventory) -> None:
    project.configure(behave("nonsense"))
    for name in ("one", "two"):
        assert run("resolve", "report.md", "--package-id", name).returncode == 1
    project.configure(behave("answer"))
    done = run("revise", "one", "nobody", "two", "--format", "json")
    assert [Path(str(line["package"])).name for line in lines(done)] == ["one", "two"]
    assert {line["state"] for line in lines(done)} == {"interpreted"}
    assert (done.returncode, done.stderr.count("CASE_UNKNOWN")) == (1, 1)
    assert run("revise", "one", "two", "--stop-after", "research").returncode == 0
    nobody = run("revise", "nobody", "none")
    assert (nobody.returncode, nobody.stdout, nobody.stderr.count("CASE_UNKNOWN")) == (2, "", 2)


def test_the_case_of_resume_is_optional_in_its_help(run: Run) -> None:
    assert "resume [OPTIONS] [CASE]" in run("resume", "--help").stdout


def test_a_database_that_is_away_blocks_the_case_and_is_no_miss(run: Run, project: Inventory) -> None:
    assert run("resolve", "report.md", "--stop-after", "construction").returncode == 0
    kept = project.damage()
    done = run("resolve", "report.md", "--format", "json")
    [line] = lines(done)
    assert (done.returncode, line["state"], line["code"]) == (1, "blocked", "RESEARCH_UNAVAILABLE")
    assert line["unresolved"] == []
    later = run("resume", "INC-7")
    assert (later.returncode, later.stderr.partition(":")[0]) == (1, "RETRY_LATER")
    nothing = run("catalogs", "search", "inventory.host", "edge")  # here nothing could be done at all
    assert (nothing.returncode, nothing.stdout, nothing.stderr.partition(":")[0]) == (3, "", "RESEARCH_UNAVAILABLE")
    project.database.write_bytes(kept)


# --- looking at a case ------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-123")
def test_show_holds_plan_candidates_assessment_and_interpretation_in_one_view(run: Run, project: Inventory) -> None:
    run("resolve", "report.md")
    shown = json.loads(run("show", "INC-7", "--format", "json").stdout)
    assert set(shown) == LINE_KEYS | {"answered_by", "plan", "candidates", "assessment", "interpretation"}
    who = {"provider": "scripted", "model": "test-model", "resolver": "model", "fallback": False}
    assert shown["answered_by"] == dict.fromkeys(("plan", "assessment", "interpretation"), who)
    assert shown["plan"]["reply"]["searches"][0]["term"] == "edge-proxy-canary"
    assert shown["candidates"]["searches"][0]["candidates"][0]["id"] == "12"
    assert shown["assessment"]["reply"]["resolutions"][0]["entity"] == {"type": "host", "id": "12"}
    assert shown["interpretation"]["reply"]["summary"]["text"] == "what it is about"
    text = run("show", "INC-7").stdout
    places = [text.index(f"\n{part}\n") for part in ("plan", "candidates", "assessment", "interpretation")]
    assert places == sorted(places)
    for part in ("“edge-proxy-canary”", "host 12  edge-proxy-canary", "selected  host 12", "what it is about"):
        assert part in text
    assert calls(project.folder) == ["plan", "assessment", "interpretation"]


def test_verify_names_file_and_pointer_and_says_what_it_proves(run: Run, project: Inventory) -> None:
    run("resolve", "report.md")
    package = ".casebound/cases/INC-7"
    holds = run("verify", package)
    assert (holds.returncode, holds.stdout.splitlines()[0].split("  ")[1]) == (0, "holds")
    assert "does not prove" in holds.stdout
    assert json.loads(run("verify", package, "--format", "json").stdout)["answer"] == "holds"
    case = project.folder / package / "case.json"
    case.chmod(0o644)
    case.write_bytes(case.read_bytes().replace(b"edge-proxy-canary", b"edge-proxy-kanary", 1))
    broken = run("verify", package, "nowhere")
    assert broken.returncode == 1
    assert "does not hold" in broken.stdout
    assert "consistency" not in broken.stdout  # said of what holds alone
    assert "Trust nothing in the package" in " ".join(broken.stdout.split())
    run("resolve", "report.md", "--package-id", "half", "--stop-after", "research")
    half = run("verify", ".casebound/cases/half").stdout
    assert ("Unfinished: what is there" in half, "consistency" in half) == (True, False)
    assert "case.json" in broken.stdout
    assert broken.stderr.startswith("PACKAGE_UNREADABLE: ")


def test_explain_as_json_is_the_chain_down_to_the_characters(run: Run, project: Inventory) -> None:
    run("resolve", "report.md")
    chain = json.loads(run("explain", "INC-7", "--format", "json").stdout)
    [first, _] = chain["searches"]
    assert first["assessment"]["alias"] == "N0001"
    assert [row["id"] for row in first["candidates"] if row["selected"]] == ["12"]
    assert {quote["text"] for quote in first["mentions"]} == {"edge-proxy-canary"}
    assert str(project.folder) not in json.dumps(chain)
