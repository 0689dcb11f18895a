"""What the documents promise is what the program does; the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from casebound.commands import CORE_COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = sorted((ROOT / "docs").rglob("*.md"))


def test_the_readme_is_short_and_names_its_two_commands():
    assert len(README.splitlines()) < 150
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in ("demo", "test", "test-all", "check", "spec", "bench"):
        assert f"make {word}" in README
        assert re.search(rf"^{word}:", makefile, re.MULTILINE)


def test_every_command_that_the_readme_shows_exists():
    shown = set(re.findall(r"^casebound ([a-z]+)", README, re.MULTILINE))
    assert shown
    assert shown <= set(CORE_COMMANDS)


@pytest.mark.spec("A-046")
def test_resolution_is_presented_as_quality_with_its_cost_and_not_as_a_saving():
    assert "adds two model calls" in README
    for path in (ROOT / "README.md", *GUIDES):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"saves? (tokens|money|calls)|fewer calls", text), path


def test_every_link_in_the_documents_leads_somewhere():
    for path in (ROOT / "README.md", *GUIDES):
        prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", prose):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_decision_has_a_number_of_its_own():
    numbers = [path.name[:4] for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
