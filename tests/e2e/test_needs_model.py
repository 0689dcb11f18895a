"""A provider that cannot do without a model: `doctor` sees that none is named, and `resolve` writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.testing.inventory import settings_text, write_inventory


@pytest.mark.parametrize("provider", ["openai", "gemini", "codex"])
def test_settings_without_the_model_are_refused_in_time(tmp_path: Path, provider: str) -> None:
    pytest.importorskip(f"casebound_llm_{provider}")
    text = settings_text(enrichment="").replace(
        'provider = "scripted"\nmodel = "test-model"', f'provider = "{provider}"'
    )
    inventory = write_inventory(tmp_path / "project", settings=text)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "casebound", *arguments]
        return subprocess.run(command, cwd=inventory.folder, env=dict(os.environ), capture_output=True, text=True)

    refused = run("resolve", "report.md")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("SETTINGS_VALUE: ")
    assert "at llm.model" in refused.stderr
    assert sorted(path.name for path in inventory.folder.iterdir()) == ["casebound.toml", "inventory.db", "report.md"]
    checks = {check["name"]: check for check in json.loads(run("doctor", "--format", "json").stdout)["checks"]}
    assert checks["names in the settings"]["status"] == "failed"
    assert "at llm.model" in checks["names in the settings"]["detail"]
