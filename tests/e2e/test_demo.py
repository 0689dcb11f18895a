"""The demo tells its story: with no key, no server, no settings, every claim down to the report and the row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from casebound.demo import run_demo
from casebound.errors import SettingsError
from casebound.host import build_host
from casebound.testing.distributions import plugins_in, run_casebound, write_distribution

GOLDEN = Path(__file__).parents[1] / "golden" / "demo" / "explain.txt"


def without_digests(text: str) -> str:
    """Number the digests by appearance: that of a SQLite file, and so of its captures, depends on SQLite's version."""
    numbers: dict[str, int] = {}
    return re.sub(
        r"sha256:[0-9a-f]{64}", lambda found: f"sha256:<{numbers.setdefault(found[0], len(numbers) + 1)}>", text
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where the demo lies, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    done = run_casebound(["demo", "--workspace", str(folder)])
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def options(folder: Path) -> list[str]:
    return ["--project-config", str(folder / "casebound.toml"), "--workspace", str(folder)]


def test_demo_finds_who_is_meant_and_leaves_the_broad_name_open(demo: tuple[Path, str]) -> None:
    folder, _ = demo
    done = run_casebound(["resolve", str(folder / "report.md"), *options(folder), "--format", "json"])
    assert (done.returncode, done.stderr) == (0, "")
    line = json.loads(done.stdout)
    entities = {(entity["type"], entity["id"]): entity for entity in line["entities"]}
    roles = {key: [link["role"] for link in entity["roles"]] for key, entity in entities.items()}
    assert roles["creature", "23487"] == ["affected_subject"]
    assert roles["creature", "23486"] == ["quest_giver"]
    assert entities["quest", "11431"]["origin"] == "cited"
    assert entities["quest", "11431"]["names"] == ["Catch the Wild Wolpertinger!"]
    assert ("creature", "22943") not in entities
    broad = [item for item in line["unresolved"] if item["term"] == "Wolpertinger"]
    assert [item["status"] for item in broad] == ["ambiguous"]
    assert {row["id"] for row in broad[0]["candidates"]} == {"22943", "23487"}
    assert line["resolver"] == "rules"
    assert line["tokens"] == {"input": 0, "output": 0}
    for entity in line["entities"]:
        assert entity["mentions"], entity


def test_demo_ends_with_the_paths_of_package_and_summary(demo: tuple[Path, str]) -> None:
    folder, printed = demo
    package = folder / "cases" / "brewfest-wolpertinger"
    summary = package / "analysis" / "interpretations" / "0001" / "summary.md"
    *_, first, second = printed.rstrip("\n").split("\n")
    assert (first.split("  ")[-1], second.split("  ")[-1]) == (str(package), str(summary))
    assert "Wild Wolpertinger" in summary.read_text("utf-8")
    verified = run_casebound(["verify", str(package), "--format", "json"])
    assert (verified.returncode, json.loads(verified.stdout)["answer"]) == (0, "holds")


def test_demo_explains_itself_as_the_golden_says(demo: tuple[Path, str]) -> None:
    folder, printed = demo
    explained = run_casebound(["explain", "brewfest-wolpertinger", *options(folder)])
    assert explained.returncode == 0, explained.stderr
    assert str(folder) not in explained.stdout
    assert printed.startswith(explained.stdout)
    assert without_digests(explained.stdout).encode() == GOLDEN.read_bytes(), (
        "the demo explains itself otherwise; where that is meant: `python scripts/demo_golden.py`, and read the diff"
    )


def test_demo_without_arguments_keeps_a_new_folder_each_time(tmp_path: Path) -> None:
    done = [run_casebound(["demo", "vcore"], environment={"TMPDIR": str(tmp_path)}) for _ in range(2)]
    assert [one.returncode for one in done] == [0, 0]
    folders = sorted(tmp_path.glob("casebound-*"))
    assert len(folders) == 2
    for folder in folders:
        listed = run_casebound(["show", "brewfest-wolpertinger"], cwd=folder)
        assert listed.returncode == 0, listed.stderr


def test_demo_touches_no_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = run_casebound(["demo", "--workspace", str(tmp_path)])
    assert (done.returncode, done.stdout, done.stderr.partition(":")[0]) == (2, "", "USAGE")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_no_demo_and_several_demos_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer = "from casebound.hookspecs import hookimpl\nfrom casebound.specs import Demo\n@hookimpl\n"
    source = f"{offer}def casebound_demos():\n    return [Demo('a', 'm:f'), Demo('b', 'm:f')]\n"
    write_distribution(tmp_path, "casebound-two", source)
    monkeypatch.syspath_prepend(tmp_path)
    nobody, several = (), plugins_in(tmp_path)
    for installed, code, said in (
        (nobody, "SETTINGS_NAME", "casebound plugins"),
        (several, "USAGE", "accepted: a, b"),
    ):
        host = build_host(entry_points=installed)
        monkeypatch.setattr("casebound.demo.build_host", lambda host=host: host)
        with pytest.raises(SettingsError) as caught:
            run_demo()
        assert caught.value.code == code
        assert said in str(caught.value)
