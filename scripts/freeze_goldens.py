"""Write the golden files of every built-in protocol version that has none yet. Whatever exists is never touched.

    python scripts/freeze_goldens.py            freeze new versions and new inputs
    python scripts/freeze_goldens.py --list     say which versions would be frozen

A version that has golden files is published: to change it means to write the next one.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import ModelReply
from casebound.contracts.stage_facts import StageFacts
from casebound.protocols.registry import built_in_protocols
from casebound.specs import PromptProtocol
from casebound.testing.goldens import (
    DIGESTS,
    INPUTS,
    REPLIES,
    GoldenReply,
    derive_digests,
    derive_reply,
    derive_situation,
)
from casebound.testing.inventory_cases import SITUATIONS, facts_from_json, facts_of, facts_to_json
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.rules import message_of_context, rules_of

ROOT = Path(__file__).parent.parent / "tests" / "golden" / "protocols"
Reply = dict[str, Any]
PLAIN = 0  # the version that is used where resolution is off


def main() -> None:
    """Freeze what is not frozen."""
    wanted = [p for p in built_in_protocols() if not (ROOT / p.stage / f"v{p.version}").exists()]
    for protocol in wanted:
        print(f"{protocol.stage} v{protocol.version}")
        if "--list" not in sys.argv:
            freeze(protocol)


def freeze(protocol: PromptProtocol) -> None:
    inputs, files = {}, {}
    for situation in situations_of(protocol):
        inputs[f"{situation}.json"] = frozen_input(situation)
        for name, data in derive_situation(protocol, facts(inputs, situation)).items():
            files[f"{situation}/{name}"] = data
    for name, golden in replies_of(protocol, inputs).items():
        data = derive_reply(protocol, rules_of(protocol), facts(inputs, golden.situation), golden)
        files[f"{REPLIES}/{name}.json"] = data
    folder = ROOT / protocol.stage / f"v{protocol.version}"
    for path, data in {**files, DIGESTS: derive_digests(files, inputs)}.items():
        create(folder / path, data)


def create(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:  # never over anything
        file.write(data)


def frozen_input(situation: str) -> bytes:
    path = ROOT / INPUTS / f"{situation}.json"
    if not path.exists():
        create(path, canonical_bytes(facts_to_json(facts_of(situation))))
    return path.read_bytes()


def facts(inputs: Mapping[str, bytes], situation: str) -> StageFacts:
    return facts_from_json(json.loads(inputs[f"{situation}.json"]))


def situations_of(protocol: PromptProtocol) -> list[str]:
    if protocol.stage == "interpretation" and protocol.version == PLAIN:
        return ["plain"]
    names = sorted(set(SITUATIONS) - {"plain"})
    if protocol.stage == "assessment":
        return [name for name in names if SITUATIONS[name].searches]
    return names


# --- replies --------------------------------------------------------------------------------------------------------


def replies_of(protocol: PromptProtocol, inputs: Mapping[str, bytes]) -> dict[str, GoldenReply]:
    """Return valid replies, replies that are no JSON or do not fit, and one for each rule, by name."""
    answer = {"plan": lambda m, s: plan_reply(m, SITUATIONS[s].searches)}.get(protocol.stage, lambda m, s: judged(m))
    valid = {}
    for situation in situations_of(protocol):
        message = message_of_context(protocol, protocol.context(facts(inputs, situation)))
        valid[situation] = answer(message, situation)
    found = {f"valid-{name}": GoldenReply(name, said(reply)) for name, reply in valid.items()}
    first = "plain" if protocol.version == PLAIN else "selected"
    found |= {
        f"unusable-{name}": GoldenReply(first, reply)
        for name, reply in {
            "fence": ModelReply(text="```json\n{}\n```", finish_reason="stop"),
            "empty": ModelReply(text="", finish_reason="stop"),
            "twice": ModelReply(text='{"a":1,"a":2}', finish_reason="stop"),
            "shape": ModelReply(text="{}", finish_reason="stop"),
            "cut": ModelReply(text='{"', finish_reason="length"),
            "refused": ModelReply(text="", finish_reason="refusal"),
            "tool": ModelReply(text="", finish_reason="tool_calls", tools=("shell",)),
        }.items()
    }
    codes = {rule.code for rule in protocol.rules}
    for code, (situation, mutate) in MUTATIONS[protocol.stage].items():
        if code not in codes:
            continue
        situation = "plain" if protocol.version == PLAIN else situation
        reply = copy.deepcopy(valid[situation])
        mutate(reply)
        found[f"rule-{code}"] = GoldenReply(situation, said(reply), past_schema=True)
        found[f"judged-{code}"] = GoldenReply(situation, said(reply))
    if protocol.stage == "interpretation" and protocol.version != PLAIN:
        # What is told of a reply that is wrong about sources and about entities differs between versions.
        reply = copy.deepcopy(valid["selected"])
        cite("observed_behavior", "F0001")(reply)
        reply["relevant_entities"].pop()
        found["mixed-sources-and-entities"] = GoldenReply("selected", said(reply))
    missing = codes - {name.removeprefix("rule-") for name in found}
    if missing:
        raise SystemExit(f"no broken reply for {sorted(missing)}")
    return found


def judged(message: Reply) -> Reply:
    return assessment_reply(message) if message["task"] == "assessment" else interpretation_reply(message)


def said(reply: Reply) -> ModelReply:
    return ModelReply(text=canonical_bytes(reply).decode(), finish_reason="stop")


def change(key: str, **facts: object) -> Callable[[Reply], None]:
    return lambda reply: reply[key][0].update(facts)


def cite(key: str, *source_ids: str) -> Callable[[Reply], None]:
    return lambda reply: reply[key].append({"text": "it is so", "source_ids": list(source_ids)})


MUTATIONS: dict[str, dict[str, tuple[str, Callable[[Reply], object]]]] = {
    "plan": {
        "ENTITY_RESOLUTION_SEARCH_LIMIT": (
            "selected",
            lambda reply: reply["searches"].extend(
                {**reply["searches"][0], "term": word} for word in ("edge", "proxy", "can")
            ),
        ),
        "ENTITY_RESOLUTION_UNKNOWN_CATALOG": ("selected", change("searches", catalog="inventory.user")),
        "ENTITY_RESOLUTION_UNKNOWN_ROLE": ("selected", change("searches", role="culprit")),
        "ENTITY_RESOLUTION_UNREAD_SOURCE": ("selected", lambda r: r["searches"][0]["source_ids"].append("S0004")),
        "ENTITY_RESOLUTION_UNGROUNDED_TERM": ("selected", change("searches", term="Edge-Proxy")),
        "ENTITY_RESOLUTION_DUPLICATE_SEARCH": ("selected", lambda r: r["searches"].append(r["searches"][0])),
    },
    "assessment": {
        "ENTITY_RESOLUTION_RESOLUTION_ORDER": ("selected", lambda r: r["resolutions"].reverse()),
        "ENTITY_RESOLUTION_UNKNOWN_ROLE": ("selected", change("resolutions", role="culprit")),
        "ENTITY_RESOLUTION_UNREAD_SOURCE": ("selected", lambda r: r["resolutions"][0]["source_ids"].append("S0004")),
        "ENTITY_RESOLUTION_STATUS_ENTITY": ("selected", change("resolutions", entity=None)),
        "ENTITY_RESOLUTION_UNKNOWN_CANDIDATE": (
            "selected",
            change("resolutions", entity={"type": "host", "id": "21"}),
        ),
        "ENTITY_RESOLUTION_TRUNCATED_SELECTION": (
            "truncated",
            change("resolutions", status="selected", entity={"type": "host", "id": "101"}),
        ),
        "ENTITY_RESOLUTION_CAPTURE_SOURCE": ("selected", change("resolutions", source_ids=["S0001"])),
        "ENTITY_RESOLUTION_MENTION_SOURCE": ("selected", change("resolutions", source_ids=["V0001"])),
    },
    "interpretation": {
        "INTERPRETATION_UNKNOWN_SOURCE": ("selected", cite("unknowns", "S0099")),
        "INTERPRETATION_OBSERVATION_SOURCE": ("selected", cite("observed_behavior", "F0001")),
        "INTERPRETATION_EXPECTATION_SOURCE": ("selected", cite("expected_behavior", "P0001")),
        "INTERPRETATION_DESCRIPTION_SOURCE": ("selected", change("described_behavior", source_ids=["S0001"])),
        "INTERPRETATION_PROVISIONAL_GAP": (
            "selected",
            lambda r: r["provisional_behavior_gap"].update(source_ids=["S0001"]),
        ),
        "INTERPRETATION_UNKNOWN_ENTITY": ("selected", change("relevant_entities", entity_id="E0099")),
        "INTERPRETATION_ENTITY_MISSING": ("selected", lambda r: r["relevant_entities"].pop()),
        "INTERPRETATION_ENTITY_PROVENANCE": (
            "selected",
            lambda r: r["relevant_entities"][1].update(source_ids=["S0005", "F0005"]),
        ),
        "INTERPRETATION_ENTITY_NOT_RETAINED": (
            "selected",
            lambda r: r["relevant_entities"][1].update(source_ids=["S0001", "F0004"]),
        ),
        "INTERPRETATION_NAME_BINDING": ("named", change("relevant_entities", source_ids=["S0001"])),
        "INTERPRETATION_UNBOUND_REASON": ("unnamed", change("relevant_entities", reason="the scheduler")),
        "INTERPRETATION_IDENTITY_MISSING": ("ambiguous", lambda r: r.update(unknowns=[])),
    },
}

if __name__ == "__main__":
    main()
