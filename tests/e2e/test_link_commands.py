"""`casebound link` on two finished cases, answered by the offline provider: every command, as a person runs it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from casebound.cli.program import run
from casebound.testing.inventory import settings_text, write_inventory

RENAMED = """\
---
id: INC-8
title: batch-runner is slow
---

host=13, batch-runner, is slow. On Monday edge-proxy-canary was renamed to batch-runner.
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    text = settings_text().replace('provider = "scripted"\nmodel = "test-model"', 'provider = "offline"')
    inventory = write_inventory(tmp_path_factory.mktemp("links") / "inventory", settings=text)
    (inventory.folder / "renamed.md").write_text(RENAMED, encoding="utf-8")
    reports = [str(inventory.report), str(inventory.folder / "renamed.md")]
    assert run(["resolve", "--project", str(inventory.folder / "casebound.toml"), *reports]) == 0
    return inventory.folder


@pytest.fixture
def link(finished: Path, tmp_path: Path, capfd):
    """Return what runs `casebound link …` in a copy of the project: its status, output and messages."""
    folder = shutil.copytree(finished, tmp_path / "inventory")

    def command(*arguments: str):
        name, *others = arguments
        capfd.readouterr()
        status = run(["link", name, "--project", str(folder / "casebound.toml"), *others])
        said = capfd.readouterr()
        return status, said.out, said.err

    return command


GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "links.md").read_text(encoding="utf-8")
PROPOSE = ("propose", "INC-7", "host:12", "INC-8", "host:13")


def test_rules_propose_a_person_decides_and_everything_is_shown(link):
    status, out, _ = link(*PROPOSE, "--format", "json")
    line = json.loads(out)
    assert (status, line["state"], line["suggestion"]["assessment"]) == (0, "suggested", "same_object")
    assert (line["answered_by"]["resolver"], line["decision"], line["semantic_review"]) == ("rules", None, "pending")
    name = line["link"][:16]

    status, out, _ = link("decide", name, "--accept", "--rationale", "the rename is in the log", "--by", "Kim")
    assert status == 0
    assert "decision  accepted" in out
    assert "nothing was merged" in out

    status, out, _ = link("show", name)
    assert status == 0
    assert "On Monday edge-proxy-canary was renamed to batch-runner." in out
    assert "limitation: Rules selected the row by context; no person has confirmed it." in out
    status, out, _ = link("show", name, "--format", "json")
    assert json.loads(out)["all_decisions"][0]["decided_by"] == "Kim"

    status, out, _ = link("list")
    assert (status, out.count("same_object  accepted")) == (0, 1)
    status, out, _ = link("status", "--format", "json")
    assert json.loads(out)["decisions"] == {
        "suggestions": 1,
        "accepted": 1,
        "rejected": 0,
        "undecided": 0,
        "superseded": 0,
    }
    assert link("status")[0] == 0
    status, out, _ = link("verify", name, "--format", "json")
    assert (status, json.loads(out)["answer"]) == (0, "holds")


def test_what_only_shares_a_row_is_not_decided_by_rules(link):
    status, out, _ = link("propose", "INC-7", "host:12", "INC-8", "host:12", "--format", "json")
    assert (status, json.loads(out)["suggestion"]["assessment"]) == (0, "insufficient_evidence")


def test_two_links_are_two_lines(link):
    link(*PROPOSE)
    link("propose", "INC-8", "host:13", "INC-7", "host:12")
    status, out, _ = link("list", "--format", "json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, len(lines)) == (0, 2)
    assert [line["link"] for line in lines] == sorted(line["link"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("propose", "INC-7", "host:99", "INC-8", "host:13"), "ENTITY_LINK_SUBJECT"),
        (("propose", "INC-99", "host:12", "INC-8", "host:13"), "CASE_UNKNOWN"),
        (("show", "abcdef12"), "ENTITY_LINK_UNKNOWN"),
        (("decide", "abcdef12", "--reject", "--rationale", "x", "--by", "Kim"), "ENTITY_LINK_UNKNOWN"),
        (("decide", "abcdef12", "--rationale", "x", "--by", "Kim"), "USAGE"),
        (("decide", "abcdef12", "--accept", "--reject", "--rationale", "x", "--by", "Kim"), "USAGE"),
        (("propose", "INC-7", "host:12", "INC-8"), "takes 2 values"),
    ],
)
def test_a_wrong_word_is_one_message_and_status_2(link, arguments, code):
    status, out, err = link(*arguments)
    assert (status, out) == (2, "")
    assert code in err
    assert "Traceback" not in err


@pytest.mark.parametrize("gone", [False, True])
def test_a_damaged_link_is_one_row_and_hides_no_other(link, gone):
    damaged = json.loads(link(*PROPOSE, "--format", "json")[1])
    whole = json.loads(link("propose", "INC-8", "host:13", "INC-7", "host:12", "--format", "json")[1])
    file = Path(damaged["folder"]) / "input.json"
    file.unlink() if gone else file.write_bytes(b"")
    code = "STORE_MISSING" if gone else "STORE_JSON"

    status, out, err = link("list")
    assert (status, out.count("does not hold"), out.count("suggested")) == (1, 1, 1)
    assert (code in out, damaged["folder"] in out, str(file) in err) == (True, True, True)
    status, out, _ = link("list", "--format", "json")
    states = {line["link"]: line["state"] for line in map(json.loads, out.splitlines())}
    assert (status, states) == (1, {damaged["link"]: "does_not_hold", whole["link"]: "suggested"})

    status, out, _ = link("status")
    assert (status, out.count("does not hold"), damaged["folder"] in out) == (1, 1, True)
    status, out, _ = link("status", "--format", "json")
    figures = json.loads(out)
    assert (status, figures["reviews"]["links"]) == (1, 1)
    named = {"link": damaged["link"], "folder": damaged["folder"], "code": code}
    assert figures["does_not_hold"] == [named]


@pytest.mark.parametrize("words", [("--accept", "--reject"), ("--reject", "--accept"), ()])
def test_nothing_is_decided_but_by_exactly_one_word(link, words):
    name = json.loads(link(*PROPOSE, "--format", "json")[1])["link"]
    status, out, err = link("decide", name, *words, "--rationale", "x", "--by", "Kim")
    assert (status, out) == (2, "")
    assert "exactly one of the two" in err
    assert json.loads(link("show", name, "--format", "json")[1])["all_decisions"] == []


# --- the guide ------------------------------------------------------------------------------------------------------


def test_the_commands_of_the_guide_run_as_it_shows_them(link):
    (block,) = re.findall(r"```\n(casebound.*?)```", GUIDE, re.DOTALL)
    lines = [shlex.split(line)[2:] for line in block.splitlines()]
    assert [line[0] for line in lines] == ["propose", "list", "show", "decide", "status", "verify"]
    assert tuple(lines[0]) == PROPOSE
    name = None
    for line in lines:
        status, out, err = link(*(name if word == "LINK" else word for word in line))
        assert status == 0, err
        name = name or out.split()[0]


def test_a_line_has_the_keys_of_the_guide(link):
    (shown,) = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    line = json.loads(link(*PROPOSE, "--format", "json")[1])
    expected = json.loads(shown)
    assert line.keys() == expected.keys()
    for key in ("left", "right", "suggestion", "answered_by"):
        assert line[key].keys() == expected[key].keys()
    figures = json.loads(link("status", "--format", "json")[1])
    wholes = {"reviews": "links", "invocations": "calls", "admissions": "outputs", "decisions": "suggestions"}
    for group, whole in wholes.items():
        assert f"`{group}` over" in GUIDE
        others = [count for name, count in figures[group].items() if name not in (whole, "superseded")]
        assert figures[group][whole] == sum(others) == 1
