"""Each distribution builds a wheel and installs alone: core without a plugin, then each plugin on top of it."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.services  # it needs a package index for the libraries

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT / "core", *PLUGINS):
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
    return folder


@pytest.fixture(scope="module")
def alone(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds nothing but core, installed from its wheel."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=True)
    [core] = wheels.glob("casebound-*.whl")
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", core)
    return folder / "bin"


def plugin_names(bin_folder: Path) -> list[str]:
    listed = json.loads(run(bin_folder / "casebound", "plugins", "--format", "json"))["plugins"]
    assert [plugin["error"] for plugin in listed] == [None] * len(listed)
    return [plugin["name"] for plugin in listed if not plugin["name"].startswith("builtin")]


def test_core_works_without_any_plugin(alone: Path) -> None:
    assert run(alone / "casebound", "--version").startswith("casebound ")
    assert plugin_names(alone) == []
    protocols = json.loads(run(alone / "casebound", "protocols", "--format", "json"))["protocols"]
    assert {(p["stage"], p["version"]) for p in protocols if p["default"]} >= {("plan", 4), ("interpretation", 6)}


def test_each_plugin_installs_on_top_and_is_found(alone: Path, wheels: Path) -> None:
    given = ("-c", ROOT / "constraints.txt", "--find-links", wheels)  # one of ours may need another of ours
    for source in PLUGINS:
        [wheel] = wheels.glob(f"casebound_{source.name}-*.whl")
        run(alone / "python", "-m", "pip", "install", "--quiet", *given, wheel)
        assert source.name.replace("_", "-") in plugin_names(alone)
    assert sorted(plugin_names(alone)) == sorted(source.name.replace("_", "-") for source in PLUGINS)
    assert "selected  creature 23487" in run(alone / "casebound", "demo")
