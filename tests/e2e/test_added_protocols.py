"""A new protocol version is something added: a stranger's distribution, or one file of core. Nothing old changes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import casebound
import pytest
from casebound.canonical import digest_of
from casebound.errors import ProviderError
from casebound.specs import CORE_STAGES
from casebound.testing.distributions import plugins_in, run_casebound, write_distribution
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_command import install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.scripted import RaisingProvider, ScriptedProvider

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide" / "protocol.md"
CORE = Path(casebound.__file__).parent
PINNED = "[protocols]\nresolution = 1000\n"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def digests(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): digest_of(path.read_bytes()) for path in paths}


class Stranger:
    """A project on disk, and the distribution of the guide, which can be installed and removed."""

    def __init__(self, folder: Path) -> None:
        self.plugins = install_inventory(folder / "plugins")
        self.inventory: Inventory = write_inventory(folder / "project", settings=settings_text(more=PINNED))

    def install(self) -> None:
        write_distribution(self.plugins, "casebound-terse", examples("python")[0])

    def remove(self) -> None:
        for path in self.plugins.glob("casebound_terse*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_casebound(arguments, plugins=self.plugins, cwd=self.inventory.folder)


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    return Stranger(tmp_path)


def test_a_stranger_adds_a_version_resolves_with_it_and_takes_it_away_again(stranger: Stranger) -> None:
    core = digests(CORE)
    refused = stranger.run("resolve", "report.md")
    assert refused.returncode == 2
    assert "protocols.resolution" in refused.stderr
    assert not stranger.inventory.workspace.exists()

    stranger.install()
    listed = json.loads(stranger.run("protocols", "--format", "json").stdout)["protocols"]
    own = [entry for entry in listed if entry["version"] == 1000]
    assert [(entry["stage"], entry["distribution"], entry["default"]) for entry in own] == [
        ("assessment", "casebound-terse", False),
        ("plan", "casebound-terse", False),
    ]
    done = stranger.run("resolve", "report.md", "--format", "json")
    line = json.loads(done.stdout)
    assert (done.returncode, line["state"]) == (0, "interpreted"), done.stderr
    package = Path(line["package"])
    resolution = package / "analysis/interpretations/0001/entity-resolution"
    frozen = json.loads((resolution / "input.json").read_bytes())
    assert (frozen["protocol_version"], frozen["interpretation_protocol_version"]) == (1000, 6)
    assert {p["stage"]: (p["prompt_id"], p["offered_by"]["distribution"]) for p in frozen["protocols"]} == {
        "plan": ("terse_plan_v1000", "casebound-terse"),
        "assessment": ("entity_resolution_assessment_v4", "casebound-terse"),
        "interpretation": ("case_interpretation_resolved_v6", "casebound"),
    }
    asked = json.loads((resolution / "attempts/plan-0001/request.json").read_bytes())
    assert asked["system"].startswith("Propose literal name searches")
    assert stranger.run("verify", str(package)).returncode == 0

    before = digests(package)
    kept = sorted(path.name for path in stranger.inventory.folder.glob("*"))
    stranger.remove()
    gone = stranger.run("verify", str(package), "--format", "json")
    assert gone.returncode == 1
    findings = json.loads(gone.stdout)["findings"]
    assert ("PLUGIN_MISSING", "casebound-terse 1.0") in [
        (finding["code"], finding["message"].rpartition("install ")[2]) for finding in findings
    ]
    told = " ".join(stranger.run("verify", str(package)).stdout.split())
    assert ("does not hold" in told, "could not be judged here: install" in told) == (True, True)
    assert ("Trust nothing" in told, "restore" in told) == (False, False)
    stranger.inventory.configure(settings_text())
    for command in (
        ("rehearse", str(package)),
        ("record", str(package), "--out", "replies.json"),
        ("resolve", "report.md", "--workspace", "again", "--replay-from", str(package)),
    ):
        missing = stranger.run(*command)
        assert (missing.returncode, missing.stderr.partition(":")[0]) == (1, "PLUGIN_MISSING")
        assert "casebound-terse 1.0" in missing.stderr
    assert sorted(path.name for path in stranger.inventory.folder.glob("*")) == kept
    assert digests(package) == before
    assert digests(CORE) == core

    stranger.inventory.configure(settings_text(more=PINNED))
    stranger.install()
    assert stranger.run("verify", str(package)).returncode == 0


def test_a_case_that_waits_for_a_version_that_is_gone_says_so_and_is_kept(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.install()
    inventory = stranger.inventory
    monkeypatch.syspath_prepend(str(stranger.plugins))
    plugins = [plugin for plugin in plugins_in(stranger.plugins) if plugin.name == "terse"]
    quota = ProviderError("LLM_QUOTA", retryable=False)
    (waits,) = inventory.project(ScriptedProvider({"plan": [quota]}), plugins=plugins).resolve([inventory.report])
    assert waits.state == "blocked"
    before = digests(inventory.package().root)

    inventory.configure(settings_text())
    inventory.clock.advance(3600)
    gone = inventory.project(RaisingProvider()).resume("INC-7")
    assert gone.code == "PLUGIN_MISSING"
    assert "casebound-terse 1.0" in str(gone.error)
    assert gone.state == "blocked"
    assert digests(inventory.package().root) == before

    inventory.configure(settings_text(more=PINNED))
    assert inventory.project(InventoryModel(), plugins=plugins).resume("INC-7").state == "interpreted"


def test_the_suite_of_the_guide_holds_for_the_version_of_the_guide(tmp_path: Path) -> None:
    write_distribution(tmp_path, "casebound-terse", examples("python")[0])
    (tmp_path / "test_terse_conformance.py").write_text(examples("python")[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b[0-9]+ passed", done.stdout)


# --- a file of core -------------------------------------------------------------------------------------------------


def add_the_next_version(package: Path, stage: str) -> tuple[int, str]:
    """Write the newest version of a stage once more, under the next number; return the number and the new file."""
    folder = package / "protocols" / stage
    newest = max(int(path.stem[1:]) for path in folder.glob("v[0-9]*.py"))
    text = (folder / f"v{newest}.py").read_text(encoding="utf-8")
    changed = text.replace(f"version={newest},", f"version={newest + 1},")
    assert changed != text
    (folder / f"v{newest + 1}.py").write_text(changed, encoding="utf-8")
    return newest + 1, f"casebound/protocols/{stage}/v{newest + 1}.py"


@pytest.mark.parametrize("stage", CORE_STAGES)
def test_a_version_that_is_one_new_file_is_found_and_becomes_the_default(tmp_path: Path, stage: str) -> None:
    shutil.copytree(CORE, tmp_path / "casebound", ignore=shutil.ignore_patterns("__pycache__"))
    added, _ = add_the_next_version(tmp_path / "casebound", stage)
    listed = run_casebound(["protocols", "--format", "json"], plugins=tmp_path)
    entries = [entry for entry in json.loads(listed.stdout)["protocols"] if entry["stage"] == stage]
    assert [entry["version"] for entry in entries if entry["default"]] == [added]


DISCOVERING = (
    "core/tests/test_interpretation_versions.py",
    "core/tests/test_protocols.py",
    "core/tests/test_validators_assessment.py",
    "core/tests/test_validators_plan.py",
    "plugins/llm_offline/tests/test_llm_offline_plan.py",
)
COPIED = (
    "core/src",
    "plugins/llm_offline/src",
    "scripts/freeze_goldens.py",
    "tests/golden/protocols",
    "pyproject.toml",
)


class Checkout:
    """A copy of what a new version needs of the repository: sources, frozen bytes, the tests that list the versions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in (*COPIED, *DISCOVERING):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, root / name)

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(str(self.root / name) for name in ("core/src", "plugins/llm_offline/src"))
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            encoding="utf-8",
        )

    def test(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not faults", *options, *DISCOVERING)


@pytest.mark.faults  # half a minute
def test_the_next_built_in_version_is_one_new_file(tmp_path: Path) -> None:
    """With its frozen bytes, which a script writes: every test that lists the versions passes, none was edited."""
    pytest.importorskip("casebound_llm_offline")
    checkout = Checkout(tmp_path)
    before = digests(tmp_path)
    added = {stage: add_the_next_version(tmp_path / "core/src/casebound", stage) for stage in CORE_STAGES}
    frozen = checkout.python("scripts/freeze_goldens.py")
    assert frozen.stdout.splitlines() == [f"{stage} v{number}" for stage, (number, _) in added.items()], frozen.stderr

    done = checkout.test("-k", "not random and not long_run")
    assert done.returncode == 0, done.stdout
    for stage, (number, _) in added.items():
        suite = checkout.test("--collect-only", "-k", f"Test{stage.title()}{number} or {stage}-v{number}")
        assert f"test_a_published_version_never_changes_by_one_byte[{stage}-v{number}]" in suite.stdout

    after = digests(tmp_path)
    assert {path: after.get(path) for path in before} == before
    goldens = tuple(f"tests/golden/protocols/{stage}/v{number}/" for stage, (number, _) in added.items())
    new = {path for path in after.keys() - before.keys() if not path.startswith((*goldens, ".hypothesis/"))}
    assert new == {f"core/src/{file}" for _, file in added.values()}
