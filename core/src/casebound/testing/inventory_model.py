"""A model for tests that answers validly, from the request alone, unless it is told what to say.

`InventoryModel` proposes the searches it is given, selects what has exactly the searched name, and interprets by citing
what has to be cited. The three functions that it uses take the parsed user message, so a test may take their answer and
break one thing in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from casebound.contracts.model_call import ModelRequest, NativeReply, Usage
from casebound.specs import CORE_STAGES
from casebound.testing.scripted import ScriptedAnswer, ScriptedProvider, native_reply

Message = Mapping[str, Any]
Search = tuple[str, str, str]

SEARCHES: tuple[Search, ...] = (
    ("inventory.host", "edge-proxy-canary", "affected_subject"),
    ("inventory.host", "batch-runner", "participant"),
)
USAGE = Usage(input_tokens=100, output_tokens=10)


def message_of(request: ModelRequest) -> dict[str, Any]:
    """Return the user message of a request, parsed."""
    return message_of_text(request.user)


def message_of_text(user: str) -> dict[str, Any]:
    """Return a user message, parsed."""
    message: dict[str, Any] = json.loads(user)
    return message


def plan_reply(message: Message, searches: Iterable[Search] = SEARCHES) -> dict[str, object]:
    """Return a plan of `searches` (catalog, term, role); each cites every source that holds its term."""
    return {
        "searches": [
            {
                "catalog": catalog,
                "term": term,
                "role": role,
                "source_ids": [source["id"] for source in message["sources"] if term in source["text"]],
                "reason": "it is named",
            }
            for catalog, term, role in searches
        ]
    }


def assessment_reply(message: Message) -> dict[str, object]:
    """Return an assessment: a search with exactly one identity of exactly its term selects it, others do not."""
    return {"resolutions": [_resolution(table) for table in message["candidates"]]}


def _resolution(table: Message) -> dict[str, object]:
    exact = {number for number, name in map(_identity, table["rows"]) if name == table["term"]}
    selected = len(exact) == 1 and not table["truncated"]
    otherwise = "ambiguous" if table["rows"] else "no_match"
    return {
        "search_index": table["search_index"],
        "status": "selected" if selected else otherwise,
        "entity": {"type": table["entity_type"], "id": exact.pop()} if selected else None,
        "role": table["role"],
        "reason": "by its name",
        "source_ids": [table["capture"], table["mentions"][-1]],
    }


def _identity(row: Sequence[str] | Mapping[str, str]) -> tuple[str, str]:
    """Return id and name of a row: of an object, as protocols 1 and 2 show it, or of a list, as the later ones do."""
    return (row["id"], row["name"]) if isinstance(row, Mapping) else (row[0], row[1])


def interpretation_reply(message: Message) -> dict[str, object]:
    """Return an interpretation with every entity, every unresolved identity and every description."""
    kinds = [(source["id"], source["kind"]) for source in message["sources"]]
    observed = [name for name, kind in kinds if kind not in ("expectation", "project_description")]
    expected = [name for name, kind in kinds if kind == "expectation"]
    described = [name for name, kind in kinds if kind == "project_description"]
    quality = "described_behavior" in message["output_schema"]["properties"]
    both = observed[:1] + expected[:1] if observed and expected else None
    reply: dict[str, object] = {
        "summary": _statement("what it is about", [kinds[0][0]]),
        "observed_behavior": [_statement("what was seen", observed[:1])] if observed else [],
        "expected_behavior": [_statement("what should be", expected[:1])] if expected else [],
        "behavior_gap": _statement("the two differ", both) if both else None,
        "first_known_divergence": None,
        "relevant_entities": [_entity(entity) for entity in message["entities"]],
        "unknowns": [_statement("it stays open", [unknown["id"]]) for unknown in message["unknowns"]],
    }
    if quality:
        labels = {"basis": "local_description"}
        verification = {"verification": "not_independently_verified"}
        gap = observed[:1] + described[:1] if observed and described else None
        reply["described_behavior"] = [
            {**_statement("as described", [name]), **labels, **verification} for name in described
        ]
        reply["provisional_behavior_gap"] = (
            {**_statement("it may differ", gap), **labels, "status": "provisional"} if gap else None
        )
    return reply


def _statement(text: str, source_ids: Sequence[str]) -> dict[str, object]:
    return {"text": text, "source_ids": list(source_ids)}


def _entity(entity: Message) -> dict[str, object]:
    bound = [binding["fact"] for binding in entity.get("name_bindings", ())]
    return {
        "entity_id": entity["id"],
        "reason": entity.get("required_reason") or "it matters here",
        "source_ids": [*entity["mentions"][:1], entity["id"], *bound[:1]],
    }


class InventoryModel(ScriptedProvider):
    """Says what was scripted for a stage, and then, for every further request, a valid answer.

    Args:
        searches: what its plans propose.
        scripted: by stage, answers that come first (see `ScriptedProvider`).
    """

    def __init__(
        self,
        searches: Iterable[Search] = SEARCHES,
        scripted: Mapping[str, Sequence[ScriptedAnswer]] | None = None,
    ) -> None:
        super().__init__(scripted or {})
        self._searches = tuple(searches)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Return the next scripted answer of the request's stage, or a valid one."""
        if self.left().get(request.stage):
            return await super().send(request)
        self.calls.append(request)
        return native_reply(self.answer(request), usage=USAGE)

    def answer(self, request: ModelRequest) -> dict[str, object]:
        """Return a valid answer to `request`."""
        message = message_of(request)
        if request.stage == "plan":
            return plan_reply(message, self._searches)
        return assessment_reply(message) if request.stage == "assessment" else interpretation_reply(message)

    def asked(self, stage: str) -> list[dict[str, Any]]:
        """Return the user messages of every request of `stage`, in order."""
        return [message_of(request) for request in self.calls if request.stage == stage]

    def counts(self) -> dict[str, int]:
        """Return how many requests each stage got."""
        return {stage: len(self.asked(stage)) for stage in CORE_STAGES}
