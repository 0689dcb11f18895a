"""How reports write typed ids: links, commands, chat links, SQL, and a type word before a number.

Rules:
- An id is 1 to 8 digits without a leading zero; no letter or digit follows. It needs a word that says its type.
- A weak sign (`quest 1234`, `Quest: 1234`, `quest #1234`) needs three digits, since "quest 10 times", "quest 3/5",
  "NPC level 80" and "quest #2 of the chain" are counts. A number that goes on as a decimal, a version, a date or a
  clock time, or has a counting word or a percent sign behind it, is no id. A strong sign (`quest id 55`, `npc entry 6`)
  takes any length.
- `.go c N` and `.go creature N` are read as a creature's entry, as trackers use them; a core reads N as a spawn's GUID
  there. More than five digits are a GUID for certain and are left alone; `.go c id N` is an entry of any length.
- A mention is the whole reference up to its last digit; a link's readable tail is left to the names in it.
- No two patterns match the same characters, so that one reference is one mention (but a statement of SQL may quote
  another reference).
- Every repetition is bounded, so time is linear in the text.
"""

from __future__ import annotations

from casebound.specs import ReferencePattern

_ID = r"(?P<id>[1-9][0-9]{0,7})"

# No word character may follow, but scripts that are written without spaces may.
_END = r"(?![^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])"

_COUNTED = (
    r"\(?guid|times|x(?![ ]?[0-9])|hp|gold|silver|copper|xp|yards?|yd|percent"
    r"|seconds?|secs?|minutes?|mins?|hours?|days?|weeks?|players?"
    r"|mal|sekunden|minuten|stunden|tagen?|spielern?|prozent"
    r"|fois|secondes|heures|jours|joueurs|veces|segundos|minutos|horas|vezes"
    r"|раз(?:а)?|золот\w{0,3}|секунд\w{0,2}|минут\w{0,2}|час\w{0,2}|дн(?:я|ей)"
)
# What shows that a number is none of ours: decimals, versions, clock times, thousands, counters, dates, amounts.
_NO_AMOUNT = (
    r"(?![.:][0-9]|[,/][0-9]{1,3}(?![0-9])|[-–][0-9]{1,2}[-–.][0-9]|[ \u00a0]?%"
    rf"|[ \u00a0]{{1,2}}(?:{_COUNTED})(?!\w)|[次个個回級级번개])"
)

# Between the word, the sign and the digits: blanks, colons, emphasis, quotes and brackets, as Markdown has them.
_GAP = r"[ \t\u00a0:：#№=*`\"'(\[]{0,6}"
_JOIN = r"[ \t\u00a0:*`\"'(\[._–-]{0,6}"
_WITH = r"(?:(?:with|mit|avec|con|com|с)[ ](?:(?:the|der|dem|el|o)[ ]|l['’])?)?"
_STRONG = rf"(?:s|'s)?{_JOIN}{_WITH}(?:ids?|entry|entries|ид|айди)(?!\w){_GAP}(?=[0-9])"
_NUMBER = rf"(?:(?:n[ro°º]|num(?:ber|mer)|n[úu]mero|numéro|номер)\.?(?!\w){_GAP})?"
_WEAK = rf"(?!\w)(?!=[0-9]){_GAP}{_NUMBER}(?=[0-9]{{3}})"

_URL = (
    r"(?:(?:https?://|www\.)[a-z0-9.-]{1,80}(?::[0-9]{1,5})?/"
    r"(?:[a-z0-9_.-]{1,30}/){0,5}[a-z0-9_.-]{0,30}[?#]?)?"
)


def _link(entity_type: str, keys: str) -> ReferencePattern:
    """`npc=23487`, bare or at the end of a link to any site that is built like the well-known ones."""
    pattern = rf"{_URL}(?<!\w)(?:{keys})={_ID}{_END}"
    return ReferencePattern(f"vcore.{entity_type}_link", entity_type, pattern)


def _path_link(entity_type: str, segment: str) -> ReferencePattern:
    """`https://www.wowdb.com/npcs/23487-wild-wolpertinger`."""
    pattern = rf"https?://(?:[a-z0-9-]{{1,30}}\.){{0,3}}wowdb\.com/{segment}/{_ID}{_END}"
    return ReferencePattern(f"vcore.{entity_type}_path", entity_type, pattern)


def _words(entity_type: str, words: str) -> ReferencePattern:
    """A type word before the number, with a strong or a weak sign."""
    pattern = rf"(?<!\w)(?<!\.go )(?:{words})(?:{_STRONG}|{_WEAK}){_ID}{_END}{_NO_AMOUNT}"
    return ReferencePattern(f"vcore.{entity_type}_words", entity_type, pattern)


def _unspaced(entity_type: str, words: str) -> ReferencePattern:
    """As `_words`, for scripts without spaces, where any character may stand before the word."""
    gap = r"[ \t\u00a0:：#=*`\"'(（\[【]{0,4}"
    pattern = rf"(?:{words})(?:{gap}(?:id|编号|編號|번호){gap}(?=[0-9])|{gap}(?=[0-9]{{3}})){_ID}{_END}{_NO_AMOUNT}"
    return ReferencePattern(f"vcore.{entity_type}_unspaced", entity_type, pattern)


def _command(entity_type: str, command: str) -> ReferencePattern:
    """A game master's command, with its leading dot."""
    pattern = rf"(?<![\w.])\.(?:{command})(?=[0-9]){_ID}{_END}(?![.,:][0-9])"
    return ReferencePattern(f"vcore.{entity_type}_command", entity_type, pattern)


def _chat_link(entity_type: str, kind: str) -> ReferencePattern:
    """`|Hitem:32907:0:0|h[…]|h`, as the client writes a link; the colour code may touch the `H`."""
    return ReferencePattern(f"vcore.{entity_type}_chat", entity_type, rf"{kind}:{_ID}{_END}", ignore_case=False)


def _sql(entity_type: str, column: str) -> ReferencePattern:
    """`creature_template.entry = 23487`, or a statement of one line: `creature_template … WHERE entry = 23487`."""
    table = rf"(?<!\w){entity_type}_template(?:_addon|_locale)?`?"
    place = r"(?:\.|[ ]\(?|[ ][^\n;]{0,160}?(?<!\w)where[ ]{1,3}(?:`?\w{1,30}`?\.)?)"
    pattern = rf"{table}{place}[`\"]?{column}[`\"]?[ ]?(?:=|:|in[ ]?\()?[ ]?['\"]?{_ID}{_END}(?!\.[0-9])"
    return ReferencePattern(f"vcore.{entity_type}_sql", entity_type, pattern)


def _unit_guid(entity_type: str, kind: str) -> ReferencePattern:
    """`Creature-0-970-0-11-23487-000136DF91`: the sixth part of a client's GUID is the entry."""
    pattern = rf"(?<!\w)(?:{kind})-[0-9]{{1,5}}(?:-[0-9]{{1,6}}){{3}}-{_ID}-[0-9A-F]{{10}}(?!\w)"
    return ReferencePattern(f"vcore.{entity_type}_guid", entity_type, pattern, ignore_case=False)


_S = r"[ ]{1,3}"
_OBJECT_COMMANDS = rf"(?:go{_S}(?:go|gobject|gameobject|object){_S}id|gob(?:ject)?{_S}add(?:{_S}temp)?){_S}"
_CREATURE_COMMANDS = (
    rf"(?:go{_S}c(?:reature)?{_S}id{_S}|go{_S}c(?:reature)?{_S}(?=[0-9]{{1,5}}(?![0-9]))|npc{_S}add(?:{_S}temp)?{_S})"
)
_QUEST_COMMANDS = rf"(?:quest{_S}(?:add|complete|remove|reward|status)|go{_S}quest(?:{_S}(?:starter|ender))?){_S}"

REFERENCES = (
    _link("creature", "npc|creature"),
    _path_link("creature", "npcs"),
    _words("creature", r"npc|nsc|pnj|creature|mob|kreatur|créature|criatura|нпс|нип|моб|существ[оау]"),
    _unspaced("creature", "生物|怪物|크리처"),
    _command("creature", _CREATURE_COMMANDS),
    _chat_link("creature", "Hcreature_entry"),
    _sql("creature", "entry"),
    _unit_guid("creature", "Creature|Vehicle"),
    _link("quest", "quest"),
    _path_link("quest", "quests"),
    _words("quest", r"quest|qu[êe]te|misi[óo]n|miss[ãa]o|квест(?:[ауе]|ом)?|задани[еяюи]"),
    _unspaced("quest", "任务|任務|퀘스트"),
    _command("quest", _QUEST_COMMANDS),
    _chat_link("quest", "Hquest"),
    _sql("quest", "id"),
    _link("gameobject", "object|gameobject|gobject"),
    _path_link("gameobject", "objects"),
    _words("gameobject", r"game[ ]?object|gobject|object|(?:game|spiel)?objekt|объект(?:[ауе]|ом)?"),
    _unspaced("gameobject", "物体|物體"),
    _command("gameobject", _OBJECT_COMMANDS),
    _chat_link("gameobject", "Hgameobject_entry"),
    _sql("gameobject", "entry"),
    _unit_guid("gameobject", "GameObject"),
    _link("item", "item"),
    _path_link("item", "items"),
    _words("item", r"item|gegenstand|objet|objeto|предмет(?:[ауе]|ом)?"),
    _unspaced("item", "物品|道具|아이템"),
    _command("item", rf"additem{_S}"),
    _chat_link("item", "Hitem"),
    _sql("item", "entry"),
)
"""Every pattern, always active."""
