"""Assessment: which candidate each search found, all captures together.

A candidate counts where its whole name stands in the report; the longest name at a place wins; a name that several ids
share stays ambiguous, as does one that several types share unless the words around it name one of them. A capture that
was cut off selects nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from casebound.research.fold import fold

from casebound_llm_offline.judge import Verdict, judge
from casebound_llm_offline.kinds import Context
from casebound_llm_offline.match import EXACT, PART, TYPO, Text, places_of
from casebound_llm_offline.roles import role_for

Message = dict[str, Any]
Key = tuple[str, str]
MOST_MENTIONS = 5


@dataclass(slots=True)
class Found:
    """A name at one place: every entity that bears it, by type.

    Attributes:
        source: alias of the source; `start`, `end`: the place in its folded text.
        level: how surely the name stands there.
        shown: the text as written.
        around: the words around it.
        names: entity → the name by which it was found.
    """

    source: str
    start: int
    end: int
    level: int
    shown: str
    around: Context
    names: dict[Key, str] = field(default_factory=dict)


def answer(message: Message) -> dict[str, Any]:
    """Return the assessment for a user message of stage `assessment`: one resolution a search, in order."""
    texts = {source["id"]: Text(source["text"]) for source in message["sources"]}
    found = _found(message, texts)
    kept = _longest(found, _known_places(message, texts))
    verdicts = judge(kept, texts, _cited(message))
    taken: set[Key] = set()
    by_index: dict[int, dict[str, Any]] = {}
    for candidate in sorted(message["candidates"], key=lambda each: _is_broad(each, verdicts)):
        by_index[candidate["search_index"]] = _resolution(candidate, verdicts, taken)
    resolutions = [by_index[candidate["search_index"]] for candidate in message["candidates"]]
    _name_subject(resolutions, message)
    return {"resolutions": resolutions}


# --- names in the texts ---------------------------------------------------------------------------------------------


def _found(message: Message, texts: dict[str, Text]) -> list[Found]:
    """Return every place at which a candidate's name stands; equal places hold all their candidates."""
    places: dict[tuple[str, int, int, int], Found] = {}
    done: set[tuple[str, Key, str]] = set()
    for candidate in message["candidates"]:
        for key, name in _rows(candidate):
            for alias in candidate["mentions"][:MOST_MENTIONS]:
                mark = (alias, key, name + "\0" + candidate["term"])
                if mark in done or alias not in texts:
                    continue
                done.add(mark)
                text = texts[alias]
                for place in places_of(text, name, candidate["term"]):
                    at = (alias, place.start, place.end, place.level)
                    if at not in places:
                        around = Context(text.shown, place.start, place.end)
                        places[at] = Found(*at, text.shown[place.start : place.end], around)
                    places[at].names.setdefault(key, name)
    return [places[at] for at in sorted(places)]


def _rows(candidate: dict[str, Any]) -> list[tuple[Key, str]]:
    """Return entity and name of each row: an object in protocols 1 and 2, later a list in the order of `columns`."""
    kind, rows = candidate["entity_type"], candidate["rows"]
    columns = candidate.get("columns", ())
    number_at, name_at = (0, columns.index("name") if "name" in columns else 1) if columns else ("id", "name")
    return [((kind, str(row[number_at])), row[name_at]) for row in rows if isinstance(row[name_at], str)]


def _known_names(message: Message) -> list[str]:
    """Return names of cited entities: protocol 4 tells them; before it, those that a search happened to find."""
    if "known_names" in message:
        return [name["name"] for name in message["known_names"]]
    cited = _cited(message)
    return [name for candidate in message["candidates"] for key, name in _rows(candidate) if key in cited]


def _cited(message: Message) -> set[Key]:
    return {(entity["type"], entity["canonical_id"]) for entity in message["entities"]}


def _known_places(message: Message, texts: dict[str, Text]) -> set[tuple[str, int, int]]:
    """Return where names of cited entities stand: they are settled, so what they hold may be another entity."""
    known = set()
    for name in dict.fromkeys(_known_names(message)):
        for alias, text in texts.items():
            for place in places_of(text, name, name):
                if place.level == EXACT:
                    known.add((alias, place.start, place.end))
    return known


def _longest(found: list[Found], known: set[tuple[str, int, int]]) -> list[Found]:
    """Return what no longer name covers at its place."""
    by_source: dict[str, list[Found]] = {}
    for each in found:
        by_source.setdefault(each.source, []).append(each)
    kept = []
    for each in found:
        if not any(_covers(other, each, known) for other in by_source[each.source]):
            kept.append(each)
    return kept


def _covers(other: Found, each: Found, known: set[tuple[str, int, int]]) -> bool:
    if other is each or other.level == PART or other.start >= each.end or other.end <= each.start:
        return False
    if (other.source, other.start, other.end) in known and each.level == EXACT and " " in each.shown.strip():
        return False
    sizes = other.end - other.start, each.end - each.start
    if sizes[0] == sizes[1]:
        return other.level > each.level
    if each.level == PART:
        return True
    return sizes[0] > sizes[1] and (other.level > TYPO or each.level <= TYPO or " " in other.shown.strip())


def _keep_one_subject(selected: list[dict[str, Any]], roles: list[str]) -> None:
    """Let only the first entity that was searched as the subject be it; a search of one name may find several."""
    subjects = [each for each in selected if each["role"] == "affected_subject"]
    for each in subjects[1:]:
        if each["entity"] != subjects[0]["entity"]:
            each["role"] = role_for(roles, each["entity"]["type"], leading=False)


def _name_subject(resolutions: list[dict[str, Any]], message: Message) -> None:
    """Make the first selected entity that merely takes part the subject, where no selected one has that role."""
    roles = message["roles"]
    selected = [each for each in resolutions if each["status"] == "selected"]
    holding = _found_by_a_piece(resolutions, message)
    for each in holding:
        each["role"] = role_for(roles, each["entity"]["type"], leading=False)
    _keep_one_subject(selected, roles)
    if "affected_subject" not in roles or any(each["role"] == "affected_subject" for each in selected):
        return
    loose_roles = [each for each in selected if not each["role"].endswith(("giver", "sender", "source"))]
    for first in sorted(loose_roles, key=lambda each: each in holding)[:1]:
        for each in selected:
            if each["entity"] == first["entity"]:
                each["role"] = "affected_subject"


def _found_by_a_piece(resolutions: list[dict[str, Any]], message: Message) -> list[dict[str, Any]]:
    """Return the subjects that are cited entities found by a piece of their name: what it names may be the subject."""
    cited = _cited(message)
    found = []
    for each, candidate in zip(resolutions, message["candidates"], strict=True):
        if each["status"] != "selected" or each["role"] != "affected_subject":
            continue
        key = (each["entity"]["type"], each["entity"]["id"])
        if key in cited and fold(candidate["term"]) not in {fold(name) for row, name in _rows(candidate) if row == key}:
            found.append(each)
    return found


# --- one search -----------------------------------------------------------------------------------------------------


def _is_broad(candidate: dict[str, Any], verdicts: dict[Key, Verdict]) -> bool:
    """Tell whether the term is the full name of a row that is not meant: then it only shortens a longer name."""
    term = fold(candidate["term"])
    named = [key for key, name in _rows(candidate) if fold(name) == term]
    return bool(named) and not any(key in verdicts for key in named)


def _resolution(candidate: dict[str, Any], verdicts: dict[Key, Verdict], taken: set[Key]) -> dict[str, Any]:
    rows = _rows(candidate)
    judged = [(key, verdicts[key]) for key, _ in dict.fromkeys(rows) if key in verdicts]
    exact = fold(candidate["term"])
    named = {key for key, name in rows if fold(name) == exact}
    chosen = [(key, verdict) for key, verdict in judged if verdict.status == "selected"]
    chosen.sort(key=lambda item: (item[0] not in named, item[0] in taken, item[1].order))
    if chosen and chosen[0][0] in taken and _is_broad(candidate, verdicts):
        reason = f"The term shortens {chosen[0][1].name}, which another search singles out."
        return _reply(candidate, "ambiguous", None, chosen[0][1], reason)
    if chosen and not candidate["truncated"]:
        key, verdict = chosen[0]
        taken.add(key)
        return _reply(candidate, "selected", key, verdict, f"{verdict.reason} The name is {verdict.name}.")
    unsure = [verdict for _, verdict in judged if verdict.status == "ambiguous"]
    if candidate["truncated"] and (named or chosen):
        return _reply(
            candidate, "ambiguous", None, None, "More rows match than were kept, so none of them is singled out."
        )
    if unsure:
        return _reply(candidate, "ambiguous", None, unsure[0], unsure[0].reason)
    return _reply(candidate, "no_match", None, None, "No returned name is what the text names.")


def _reply(
    candidate: dict[str, Any], status: str, key: Key | None, verdict: Verdict | None, reason: str
) -> dict[str, Any]:
    mentions = candidate["mentions"]
    cited = [alias for alias in mentions if verdict is not None and alias in verdict.sources] or mentions[:1]
    return {
        "search_index": candidate["search_index"],
        "status": status,
        "entity": {"type": key[0], "id": key[1]} if key else None,
        "role": candidate["role"],
        "reason": reason,
        "source_ids": [candidate["capture"], *cited[:MOST_MENTIONS]],
    }
