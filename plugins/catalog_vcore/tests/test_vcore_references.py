"""How reports write typed ids: everything that is one is found once, and nothing else is."""

from __future__ import annotations

import itertools
import re

import pytest
from casebound_catalog_vcore.references import REFERENCES
from hypothesis import given
from hypothesis import strategies as st

COMPILED = [(pattern, pattern.compiled()) for pattern in REFERENCES]

FOUND = [
    # links
    ("https://www.wowhead.com/npc=23487", "creature", "23487"),
    ("https://www.wowhead.com/wotlk/de/npc=23487/wilder-wolpertinger", "creature", "23487"),
    ("https://de.wowhead.com/npc=23487", "creature", "23487"),
    ("https://www.wowhead.com/wotlk/quest=11431/catch-the-wild-wolpertinger", "quest", "11431"),
    ("https://tbc.wowhead.com/quest=11431", "quest", "11431"),
    ("http://wotlkdb.com/?quest=11431", "quest", "11431"),
    ("https://wotlk.evowow.com/?npc=23487#abilities", "creature", "23487"),
    ("https://classicdb.ch/?item=32907", "item", "32907"),
    ("http://127.0.0.1:8080/aowow/?object=186682", "gameobject", "186682"),
    ("https://db.example.org/index.php?lang=de&npc=23487", "creature", "23487"),
    ("https://www.wowdb.com/npcs/23487-wild-wolpertinger", "creature", "23487"),
    ("[Wolpertinger](https://www.wowhead.com/npc=22943)", "creature", "22943"),
    ("<https://www.wowhead.com/item=32907/wolpertinger-net>", "item", "32907"),
    ("www.wowhead.com/quest=11431.", "quest", "11431"),
    ("npc=23487", "creature", "23487"),
    ("[quest=5]", "quest", "5"),
    # commands
    (".go c 23487", "creature", "23487"),
    (".go creature 23487", "creature", "23487"),
    (".go c id 23487", "creature", "23487"),
    (".go creature id 190010", "creature", "190010"),
    ("`.npc add 23487`", "creature", "23487"),
    (".list creature 23487", "creature", "23487"),
    (".quest add 11431", "quest", "11431"),
    (".quest complete 11431, then log out", "quest", "11431"),
    (".additem 32907 5", "item", "32907"),
    (".gobject add 186682", "gameobject", "186682"),
    (".go object id 186682", "gameobject", "186682"),
    # words
    ("quest 11431", "quest", "11431"),
    ("Quest: 11431.", "quest", "11431"),
    ("Quest ID: 11431", "quest", "11431"),
    ("**Quest ID:** 11431", "quest", "11431"),
    ("the quest (11431) is gone", "quest", "11431"),
    ("quest #11431, step two", "quest", "11431"),
    ("quest number 11431", "quest", "11431"),
    ("Quest Nr. 11431", "quest", "11431"),
    ("quête n° 11431", "quest", "11431"),
    ("**NPC ID**: `23487`", "creature", "23487"),
    ("quest_id=11431", "quest", "11431"),
    ("quest 11117/11431", "quest", "11117"),
    ("quest 11117, 11431", "quest", "11117"),
    ("QuestID 55", "quest", "55"),
    ("npc id 23487", "creature", "23487"),
    ("NPC (ID: 23487)", "creature", "23487"),
    ("npc with the id 23487", "creature", "23487"),
    ("NPC-ID 6", "creature", "6"),
    ("creature entry 23487", "creature", "23487"),
    ("Creature Entry: 23487 Low: 51233", "creature", "23487"),
    ("quest npc 23486", "creature", "23486"),
    ("NPC 23487 level is wrong", "creature", "23487"),
    ("npc quest 11431", "quest", "11431"),
    ("gameobject 186682", "gameobject", "186682"),
    ("Game Object: 186682", "gameobject", "186682"),
    ("item 32907 x 5", "item", "32907"),
    # other languages
    ("Quest-ID 11431", "quest", "11431"),
    ("NSC mit der ID 23487", "creature", "23487"),
    ("Gegenstand 32907", "item", "32907"),
    ("Quête 11431", "quest", "11431"),
    ("le PNJ avec l'ID 23487", "creature", "23487"),
    ("l'objet 32907", "item", "32907"),
    ("misión 11431", "quest", "11431"),
    ("Квест 11431 не работает", "quest", "11431"),
    ("в квесте 11431", "quest", "11431"),
    ("Задание: 11431", "quest", "11431"),
    ("НПС 23487", "creature", "23487"),
    ("предмет (32907)", "item", "32907"),
    ("объект 186682", "gameobject", "186682"),
    ("任务11431无法完成", "quest", "11431"),
    ("任務 ID：11431", "quest", "11431"),
    ("퀘스트 11431", "quest", "11431"),
    ("NPC 23487一直不出现", "creature", "23487"),
    # SQL, chat links, GUIDs
    ("creature_template.entry = 23487", "creature", "23487"),
    ("creature_template (entry 23487)", "creature", "23487"),
    ("UPDATE `creature_template` SET `minlevel` = 70 WHERE `entry` = 23487;", "creature", "23487"),
    ("DELETE FROM quest_template WHERE ID=11431", "quest", "11431"),
    ("SELECT * FROM item_template WHERE entry IN (32907)", "item", "32907"),
    ("gameobject_template WHERE entry=186682", "gameobject", "186682"),
    ("|cffffffff|Hitem:32907:0:0:0:0:0:0:0:70|h[Wolpertinger Net]|h|r", "item", "32907"),
    ("cffffff00Hquest:11431:-1", "quest", "11431"),
    ("|cffffffff|Hcreature_entry:23487|h[Wild Wolpertinger]|h|r", "creature", "23487"),
    ("Creature-0-970-0-11-23487-000136DF91", "creature", "23487"),
]

NOTHING = [
    "11431",
    "#11431",
    "quest 10 times",
    "quest 100 times",
    "did the quest 100% alone",
    "the quest 100 % blizzlike",
    "quest 3/5",
    "quest 100/200",
    "quest #2 of the chain",
    "quest no. 3",
    "level 80",
    "NPC level 80",
    "creature 80",
    "quest 5000 gold",
    "the mob (5000 hp) hits hard",
    "item level 200",
    "mob 12,000 damage",
    "npc 1.500 Schaden",
    "npc 100k hp",
    "quest 3.3.5a",
    "quest 335.12340",
    "item 1.12.1",
    "Brewfest quest 2024-09-20",
    "quest 2024/09/20",
    "quest 2024.09.20",
    "quest 120:30",
    "NPC 09/20/2024",
    "quest in 2023",
    "npc=0",
    "npc=00023487",
    "npc=123456789",
    "npc=23487a",
    "npc=a23487",
    "npcs=23487",
    "hitem:32907",
    "quest 123456789",
    "quest 11431st",
    "quest11431",
    "conquest 11431",
    "the quest giver 23486",
    "the quest\n11431",
    "creature guid 51233",
    "creature 51233 (guid)",
    "npc 51233 GUID",
    ".go c 123456",
    ".go creature 1234567",
    ".npc move 51233",
    ".additemset 1234",
    ".go object 51233",
    "go.c 23487",
    "creature.guid = 51233",
    "|Hcreature:51233|h[spawn]|h",
    "https://github.com/example/project/issues/11431",
    "https://example.org/quests/11431",
    "completed quests 120",
    "Квест 100 раз",
    "quête 200 fois",
    "Quest 100 mal",
    "任务100次",
    "creature_template has 23487 rows where",
    "UPDATE creature_template SET name = 'x';\nDELETE FROM mine WHERE entry = 23487",
    "build 12340, core 3.3.5",
    "npc_23487",
    "quest ١١٤٣١",
]


def references_in(text: str) -> list[tuple[int, int, str, str]]:
    """Every match as (start, end, type, id), in order."""
    found = [
        (match.start(), match.end(), pattern.entity_type, match["id"])
        for pattern, compiled in COMPILED
        for match in compiled.finditer(text)
    ]
    return sorted(found)


@pytest.mark.parametrize(("text", "entity_type", "entity_id"), FOUND)
def test_reference_is_found_once_with_its_type(text: str, entity_type: str, entity_id: str) -> None:
    assert [hit[2:] for hit in references_in(text)] == [(entity_type, entity_id)]


@pytest.mark.parametrize(("text", "entity_type", "entity_id"), FOUND)
def test_reference_is_found_inside_a_sentence(text: str, entity_type: str, entity_id: str) -> None:
    assert [hit[2:] for hit in references_in(f"Since the last update, {text} – is it known?")] == [
        (entity_type, entity_id)
    ]


@pytest.mark.parametrize("text", NOTHING)
def test_other_numbers_are_no_ids(text: str) -> None:
    assert references_in(text) == []


def test_a_link_is_one_mention_from_its_scheme_to_its_id() -> None:
    link = "https://www.wowhead.com/wotlk/quest=11431"
    [(start, end, *_)] = references_in(f"See {link}/catch-the-wild-wolpertinger, please.")
    assert (start, end) == (4, 4 + len(link))


def test_names_are_unique_and_each_pattern_has_exactly_the_group_id() -> None:
    names = [pattern.name for pattern in REFERENCES]
    assert len(set(names)) == len(names)
    assert all(name.startswith("vcore.") for name in names)
    for _, compiled in COMPILED:
        assert compiled.groupindex == {"id": compiled.groups}
        assert compiled.groups == 1


FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from([text for text, *_ in FOUND] + NOTHING),
        st.sampled_from(
            [" ", "\n", ".", "=", ":", "/", "-", "(", "|H", ".go c ", "quest", "npc", "entry", "id", "https://", "7"]
        ),
        st.text(max_size=4),
    ),
    max_size=12,
)


@given(FRAGMENTS)
def test_no_two_patterns_share_a_character_and_ids_are_plain_digits(parts: list[str]) -> None:
    text = "".join(parts)
    hits = references_in(text)
    plain = [hit for hit in hits if "_template" not in text[hit[0] : hit[1]]]  # SQL may quote another reference
    for left, right in itertools.pairwise(plain):
        assert left[1] <= right[0], (text, left, right)
    for start, end, _, entity_id in hits:
        assert re.fullmatch(r"[1-9][0-9]{0,7}", entity_id)
        assert entity_id in text[start:end]


@pytest.mark.parametrize(
    "unit",
    [
        "npc",
        "quest id ",
        "https://",
        "http://a.a/a/",
        "creature_template ",
        "-0-0",
        "quest:*`\"'([",
        ".go c ",
        "creature ",
        "a-",
        "1",
        "квест ",
    ],
)
def test_the_last_reference_of_a_long_hostile_text_is_reached(unit: str) -> None:
    # What backtracks with the square of the length would not end within a test run at all.
    text = unit * (400_000 // len(unit)) + " quest 11431"
    assert references_in(text)[-1][1:] == (len(text), "quest", "11431")
