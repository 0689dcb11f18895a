"""`casebound rehearse` in a process of its own: what it prints, how it ends, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from casebound.api import Project
from casebound.canonical import canonical_bytes, digest_of
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import InventoryModel


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A case whose plan needed a second attempt, made under settings that name a provider of a vendor."""
    settings = settings_text(more="[protocols]\nresolution = 4\n").replace(
        'provider = "scripted"', 'provider = "openai"'
    )
    inventory = write_inventory(
        tmp_path / "project", settings=settings + '[llm.openai]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    model = InventoryModel(scripted={"plan": ["no JSON"]})
    stages = ("plan", "assessment", "interpretation")
    project = Project.open(inventory.folder / "casebound.toml", providers=dict.fromkeys(stages, model))
    [result] = project.resolve([inventory.report])
    project.close()
    assert result.state == "interpreted"
    return Path(str(result.package))


def rehearse(*arguments: str) -> CompletedProcess[str]:
    return run_casebound(["rehearse", *arguments])


def test_the_frozen_versions_say_what_was_recorded(package: Path) -> None:
    done = rehearse(str(package))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        f"INC-7  judged as recorded  {package}",
        "├─ plan  version 4, 6 rules",
        "│  ├─ attempt 1  recorded invalid  LLM_OUTPUT_JSON  rehearsed the same",
    ]
    answer = json.loads(rehearse(str(package), "--interpretation-protocol", "6", "--format", "json").stdout)
    assert answer["agrees"] is True
    assert [stage["stage"] for stage in answer["stages"]] == ["plan", "assessment", "interpretation"]


def test_a_record_that_the_frozen_rules_deny_ends_with_one(package: Path) -> None:
    path = next(package.rglob("plan-0001/outcome.json"))
    path.write_bytes(
        canonical_bytes({**json.loads(path.read_bytes()), "kind": "accepted", "code": None, "findings": []})
    )
    done = rehearse(str(package))
    assert done.returncode == 1
    assert "judged otherwise" in done.stdout
    assert "recorded accepted  rehearsed invalid  LLM_OUTPUT_JSON" in done.stdout
    assert rehearse(str(package), "--resolution-protocol", "4").returncode == 0


def test_an_unknown_version_and_no_package_are_told(package: Path, tmp_path: Path) -> None:
    done = rehearse(str(package), "--interpretation-protocol", "77")
    assert done.returncode == 2
    assert "--interpretation-protocol" in done.stderr
    assert "accepted: " in done.stderr
    done = rehearse(str(tmp_path))
    assert (done.returncode, done.stderr.splitlines()[0].partition(":")[0]) == (2, "PACKAGE_UNREADABLE")
    assert "not a case id" in done.stderr


def seen(package: Path) -> dict[Path, tuple[int, object]]:
    """Return every file and folder with the time of its last change, and a file's digest."""
    paths = [package, *package.rglob("*")]
    return {path: (path.stat().st_mtime_ns, path.is_file() and digest_of(path.read_bytes())) for path in paths}


def test_it_writes_nothing_connects_nowhere_and_imports_no_provider(package: Path, tmp_path: Path) -> None:
    kept = seen(package)
    folders = [path for path in kept if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    script = f"""if True:
        import socket, sys
        socket.socket.connect = socket.socket.bind = None
        from casebound.__main__ import main
        sys.argv = ["casebound", "rehearse", {str(package)!r}, "--interpretation-protocol", "6"]
        status = main()
        print(*sys.modules, file=sys.stderr)
        sys.exit(status)
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run([sys.executable, "-c", script], cwd=elsewhere, capture_output=True, text=True)
    for folder in folders:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert "casebound.rehearsal" in loaded
    assert {name for name in loaded if name.startswith("casebound_llm")} <= {
        "casebound_llm_" + name for name in ("codex", "gemini", "offline", "openai")
    }
    assert loaded & {"httpx", "aiohttp", "sqlalchemy", "sqlite3"} == set()
    assert seen(package) == kept
    assert os.listdir(elsewhere) == []
