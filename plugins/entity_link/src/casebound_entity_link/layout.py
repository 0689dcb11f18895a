"""Every path of a link, once: `<workspace>/links/sha256-…/`, named by the digest of what is asked."""

from __future__ import annotations

import re

LINKS = "links"
STAGE = "entity_link"
INPUT = "input.json"
SUGGESTION = "suggestion.json"
DECISIONS = "decisions"

_NAME = re.compile(r"sha256-[0-9a-f]{64}")
_DECISION = re.compile(r"([0-9]{4,})\.json")


class LinkPaths:
    """Where the conversation of a link lies, inside its folder (`casebound.store.layout.ConversationPaths`)."""

    events = "events"

    def attempts(self, stage: str) -> str:
        """Return the folder of all attempts."""
        return "attempts"

    def attempt(self, stage: str, number: int) -> str:
        """Return the folder of one attempt."""
        return f"attempts/{stage}-{number:04d}"

    def feedback(self, stage: str, number: int) -> str:
        """Return the path of the feedback that precedes attempt `number`."""
        return f"feedback-{stage}-{number:04d}.json"

    def event(self, number: int) -> str:
        """Return the path of event `number`."""
        return f"events/{number:04d}.json"


PATHS = LinkPaths()


def is_sealed(path: str) -> bool:
    """Tell whether the suggestion covers the file at `path`: it stood there before."""
    return path != SUGGESTION and not path.startswith(f"{DECISIONS}/")


def folder_name(digest: str) -> str:
    """Return the folder of the link whose question has `digest`."""
    return digest.replace(":", "-")


def is_link(name: str) -> bool:
    """Tell whether a folder of that name may hold a link."""
    return _NAME.fullmatch(name) is not None


def decision(number: int) -> str:
    """Return the path of decision `number`."""
    return f"{DECISIONS}/{number:04d}.json"


def decision_numbers(names: list[str]) -> list[int]:
    """Return the numbers of the decisions among the file names of their folder, in order."""
    return sorted(int(match[1]) for match in map(_DECISION.fullmatch, names) if match)
