"""Core knows no game, no vendor and no corpus: not in its code, its prompts or its tests' data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core" / "src" / "casebound"
WORDS = re.compile(
    r"(?i)\b(?:wow\b|warcraft|azeroth\w*|trinity(?:core)?|mangos|vcore|wowhead|creature\w*|gameobject\w*|quests?\b|quest_\w+|npcs?\b|npc_\w+|"
    r"wolpertinger\w*|brewfest|openai|chatgpt|gpt-?\d\S*|gemini|anthropic|claude|codex|ollama|llama\S*|mistral|deepseek)"
)


def found_in(text: str) -> list[str]:
    return [match[0] for match in WORDS.finditer(text)]


@pytest.mark.spec("A-050", "A-118", "A-156")
@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_no_game_and_no_vendor_is_named_in_core(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert {number: found for number, line in enumerate(lines, 1) if (found := found_in(line))} == {}


def test_the_words_are_found_where_they_stand():
    assert found_in("from openai import x; creature_template; Quest 1; gpt-4o") == [
        "openai",
        "creature_template",
        "Quest",
        "gpt-4o",
    ]
    assert found_in("the question is which host is requested") == []
