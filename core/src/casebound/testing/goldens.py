"""Golden files of prompt protocols: what a version makes of fixed inputs, byte for byte.

    <root>/inputs/<situation>.json               the accepted artifacts, shared by all versions
    <root>/<stage>/vN/<situation>/…              context.json, request.json (system and user), schema.json
    <root>/<stage>/vN/replies/<name>.json        a reply, what is found in it, and the feedback on it
    <root>/<stage>/vN/digests.json               every file of the version, and the inputs that it used

Files are canonical JSON. They are written once, when a version is published, and never again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import ModelReply
from casebound.contracts.stage_facts import StageFacts
from casebound.llm.judge import judge
from casebound.specs import PromptProtocol, Validator
from casebound.testing.inventory_cases import facts_from_json

INPUTS, DIGESTS, REPLIES = "inputs", "digests.json", "replies"


@dataclass(frozen=True, slots=True)
class GoldenReply:
    """A reply that a version must judge as it did when it was published.

    Attributes:
        situation: which input it answers.
        reply: what the model said.
        past_schema: whether the rules are asked although the schema may refuse it, to hold each of them by itself.
    """

    situation: str
    reply: ModelReply
    past_schema: bool = False


def derive_situation(protocol: PromptProtocol, facts: StageFacts) -> dict[str, bytes]:
    """Return the golden files of one situation, by name."""
    context = _context(protocol, facts)
    prompt = protocol.request(context, None)
    return {
        "context.json": canonical_bytes(context),
        "request.json": canonical_bytes({"system": prompt.system, "user": canonical_bytes(prompt.user).decode()}),
        "schema.json": canonical_bytes(protocol.response_schema(context)),
    }


def derive_reply(protocol: PromptProtocol, rules: Sequence[Validator], facts: StageFacts, golden: GoldenReply) -> bytes:
    """Return the golden file of one reply: the findings, the feedback, and the digest of the next request."""
    context = _context(protocol, facts)
    found: Sequence[Finding]
    if golden.past_schema:
        value = json.loads(golden.reply.text)
        found = [finding for rule in rules for finding in rule.check(value, context)]
    else:
        found = judge(golden.reply, protocol.response_schema(context), rules, context).findings
    feedback = protocol.feedback(found, context)
    request = canonical_bytes(protocol.request(context, feedback).user)
    return canonical_bytes(
        {
            "situation": golden.situation,
            "reply": golden.reply.to_json(),
            "past_schema": golden.past_schema,
            "findings": [finding.to_json() for finding in found],
            "feedback": feedback,
            "next_request": digest_of(request),
        }
    )


def _context(protocol: PromptProtocol, facts: StageFacts) -> dict[str, Any]:
    """Return the context as a case keeps it: through its bytes."""
    context: dict[str, Any] = json.loads(canonical_bytes(protocol.context(facts)))
    return context


def derive_digests(files: Mapping[str, bytes], inputs: Mapping[str, bytes]) -> bytes:
    """Return `digests.json` over the files of a version and the inputs that it used."""
    own = {path: digest_of(data) for path, data in files.items()}
    return canonical_bytes({**own, **{f"{INPUTS}/{path}": digest_of(data) for path, data in inputs.items()}})


class GoldenVersion:
    """The golden files of one version, as they stand on disk."""

    def __init__(self, root: Path, stage: str, number: int) -> None:
        self.stage = stage
        self.number = number
        self.folder = root / stage / f"v{number}"
        self._inputs = root / INPUTS

    def files(self) -> dict[str, bytes]:
        """Return every file but `digests.json`, by path."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name != DIGESTS)
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths}

    def situations(self) -> list[str]:
        """Return the names of the inputs that the version was tried with."""
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir() and path.name != REPLIES)

    def inputs(self) -> dict[str, bytes]:
        """Return the bytes of those inputs, by file name."""
        return {f"{name}.json": (self._inputs / f"{name}.json").read_bytes() for name in self.situations()}

    def facts(self, situation: str) -> StageFacts:
        """Return one input."""
        return facts_from_json(json.loads((self._inputs / f"{situation}.json").read_bytes()))

    def replies(self) -> Iterator[tuple[str, GoldenReply]]:
        """Yield the replies with their paths."""
        for path, data in self.files().items():
            if path.startswith(f"{REPLIES}/"):
                kept = json.loads(data)
                reply = ModelReply.from_json(kept["reply"])
                yield path, GoldenReply(kept["situation"], reply, kept["past_schema"])

    def derive(self, protocol: PromptProtocol, rules: Sequence[Validator]) -> dict[str, bytes]:
        """Return what today's code makes of the inputs and replies; to be compared with `files`."""
        derived = {}
        for situation in self.situations():
            for name, data in derive_situation(protocol, self.facts(situation)).items():
                derived[f"{situation}/{name}"] = data
        for path, golden in self.replies():
            derived[path] = derive_reply(protocol, rules, self.facts(golden.situation), golden)
        return derived


def golden_versions(root: Path) -> list[GoldenVersion]:
    """Return every version below `root`, found by listing."""
    folders = [path for path in root.glob("*/v*") if path.is_dir()]
    return sorted(
        (GoldenVersion(root, folder.parent.name, int(folder.name[1:])) for folder in folders),
        key=lambda version: (version.stage, version.number),
    )
