"""What the documents promise is what the program does; the README stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from casebound.binding import bind
from casebound.cli.program import program
from casebound.commands import CORE_COMMANDS
from casebound.host import build_host
from casebound.settings import database_url, load_settings

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


def test_the_settings_that_the_readme_shows_are_complete_and_hold(tmp_path, monkeypatch):
    path = tmp_path / "casebound.toml"
    database, llm = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path.write_text(database, encoding="utf-8")
    settings = load_settings(path)
    assert [catalog.name for catalog in bind(settings, build_host()).catalogs] == ["inventory.host"]
    assert "casebound catalogs search inventory.host" in README
    monkeypatch.setenv("CASEBOUND_DB_URL", "mysql+pymysql://reader@db/world?charset=utf8mb4")
    assert database_url(settings).reveal().startswith("mysql")
    path.write_text(database + llm, encoding="utf-8")
    assert bind(load_settings(path), build_host()).stages["plan"].provider == "openai"


def test_what_the_readme_tells_to_type_exists():
    for name, option in {"init": "--from", "resolve": "--package-id"}.items():
        command = program.get_command(None, name)
        assert option in README
        assert option in [known for parameter in command.params for known in parameter.opts]
    extras = tomli.loads((ROOT / "core/pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installs = re.findall(r"pip install ([^`]+)`", README)
    assert installs
    for part in " ".join(installs).replace("'", "").split():
        folder, _, extra = part.rstrip("]").partition("[")
        assert (ROOT / folder / "pyproject.toml").is_file(), part
        assert not extra or extra in extras


def test_every_link_in_the_documents_leads_somewhere():
    for path in (ROOT / "README.md", *GUIDES):
        prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", prose):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_decision_has_a_number_of_its_own():
    numbers = [path.name[:4] for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
