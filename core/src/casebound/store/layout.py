"""Every path inside a package, once. Paths are relative to the package and use `/`."""

from __future__ import annotations

import re
from typing import Protocol

from casebound.canonical import file_name_of

PACKAGE = "package.json"
ADMISSION = "admission.json"
BUILD = "build.json"
CASE = "case.json"
FACTS = "research/facts.json"
ENTITY_CAPTURES = "research/captures"
INTERPRETATIONS = "analysis/interpretations"

STAGES_OF_RESOLUTION = ("plan", "assessment")


_SUFFIX = re.compile(r"\.[a-z0-9]{1,16}$")


def source(name: str) -> str:
    """Return where the bytes of a report that was called `name` are kept: `source/report` and its ending."""
    suffix = _SUFFIX.search(name.lower())
    return "source/report" + (suffix[0] if suffix else "")


def entity_capture(digest: str) -> str:
    """Return the path of an enrichment capture."""
    return f"{ENTITY_CAPTURES}/{file_name_of(digest)}"


def phase_mark(name: str, revision: Revision) -> str:
    """Return the path of the mark that phase `name` of a plugin ran to its end behind interpretation `revision`."""
    return f"analysis/{name}/phase{'' if revision.number == 1 else f'-{revision.number:04d}'}.json"


class ConversationPaths(Protocol):
    """Where the attempts of a stage, their feedback and the events lie; a `Revision` is one."""

    @property
    def events(self) -> str:
        """The folder of all events."""
        ...

    def attempts(self, stage: str) -> str:
        """Return the folder of all attempts beside those of `stage`."""
        ...

    def attempt(self, stage: str, number: int) -> str:
        """Return the folder of one attempt, `<attempts>/<stage>-NNNN`."""
        ...

    def feedback(self, stage: str, number: int) -> str:
        """Return the path of the feedback that precedes attempt `number`."""
        ...

    def event(self, number: int) -> str:
        """Return the path of event `number`, `<events>/NNNN.json`."""
        ...


class Revision:
    """The paths of one interpretation, `analysis/interpretations/NNNN`.

    Attributes:
        beginnings: what is frozen before anything else; as soon as one of them exists, the interpretation has begun.
    """

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.folder = f"{INTERPRETATIONS}/{number:04d}"
        self.input = f"{self.folder}/input.json"
        self.context = f"{self.folder}/context.json"
        self.interpretation = f"{self.folder}/interpretation.json"
        self.summary = f"{self.folder}/summary.md"
        self.hypothesis_context = f"{self.folder}/hypothesis-context.json"
        self.seal = f"{self.folder}/seal.json"
        self.events = f"{self.folder}/events"
        self.resolution = f"{self.folder}/entity-resolution"
        self.resolution_input = f"{self.resolution}/input.json"
        self.plan = f"{self.resolution}/plan.json"
        self.captures = f"{self.resolution}/captures"
        self.candidates = f"{self.resolution}/candidates.json"
        self.assessment = f"{self.resolution}/assessment.json"
        self.beginnings = (self.resolution_input, self.input)

    def capture(self, digest: str) -> str:
        """Return the path of a look-up capture."""
        return f"{self.captures}/{file_name_of(digest)}"

    def home(self, stage: str) -> str:
        """Return the folder that holds the attempts and feedback of `stage`."""
        return self.resolution if stage in STAGES_OF_RESOLUTION else self.folder

    def attempts(self, stage: str) -> str:
        """Return the folder of all attempts beside those of `stage`."""
        return f"{self.home(stage)}/attempts"

    def attempt(self, stage: str, number: int) -> str:
        """Return the folder of one attempt."""
        return f"{self.attempts(stage)}/{stage}-{number:04d}"

    def feedback(self, stage: str, number: int) -> str:
        """Return the path of the feedback that precedes attempt `number`."""
        return f"{self.home(stage)}/feedback-{stage}-{number:04d}.json"

    def event(self, number: int) -> str:
        """Return the path of event `number`."""
        return f"{self.events}/{number:04d}.json"


def is_sealed(path: str, revision: Revision) -> bool:
    """Tell whether the seal of `revision` covers `path`."""
    if not path.startswith("analysis/"):
        return True
    number = path.split("/")[2] if path.startswith(f"{INTERPRETATIONS}/") else ""
    return number.isdecimal() and int(number) <= revision.number and path != revision.seal
