"""A model server on loopback for the inventory project: it answers validly, and misbehaves where a test says so.

It knows no vendor's wire format: a test says how the user message stands in a request, and how a text is wrapped. What
it was asked it keeps in a log of its own, which no kill of a client can reach.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from casebound.canonical import canonical_bytes
from casebound.testing.inventory_model import (
    Search,
    assessment_reply,
    interpretation_reply,
    message_of_text,
    plan_reply,
)
from casebound.testing.loopback import Loopback, RecordedRequest, Response

# What its plans may look for: a plan proposes those that a source names.
TERMS: tuple[Search, ...] = (
    ("inventory.host", "edge-proxy-canary", "affected_subject"),
    ("inventory.host", "mail-relay", "participant"),
    ("inventory.host", "batch-runner", "participant"),
)
USELESS: dict[str, object] = {"nothing": "of use"}


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to ask and to answer.

    Attributes:
        user: returns the user message of a request's body.
        envelope: wraps what the model says.
    """

    user: Callable[[bytes], str]
    envelope: Callable[[str], Response]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that arrived."""

    task: str
    user: str

    @property
    def case(self) -> str:
        """The case that it is about: each report's title begins with it."""
        return re.search(r"INC-[0-9]+", self.user)[0]  # type: ignore[index]  # a report without one is no report here


class ModelServer:
    """The server, a context manager.

    A word is anything that stands in the user message, such as a part of a report's title.

    Attributes:
        loopback: what listens.
        arrived: called with each request as it arrives, before it is answered; a test may end the client there.
        answered: called with each request when its answer is about to leave.
    """

    def __init__(self, wire: Wire, stumbles: Sequence[str] = ()) -> None:
        self.loopback = Loopback()
        self.arrived: Callable[[Asked], object] = lambda asked: None
        self.answered: Callable[[Asked], object] = lambda asked: None
        self._wire = wire
        self._stumbles = tuple(stumbles)
        self._trouble: list[_Trouble] = []
        self._log: list[Asked] = []
        self._lock = threading.Lock()
        self.loopback.answer(self._answer)

    def __enter__(self) -> Self:
        self.loopback.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.loopback.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.loopback.url

    @property
    def log(self) -> list[Asked]:
        """Everything that was asked so far, in order of arrival."""
        with self._lock:
            return list(self._log)

    def counts(self) -> Counter[str]:
        """Return how often each user message arrived."""
        return Counter(asked.user for asked in self.log)

    def trouble(self, word: str, task: str, *responses: Response, for_ever: bool = False) -> None:
        """Meet the first requests of `task` that have `word` with `responses`; `for_ever`: keep the last one."""
        with self._lock:
            self._trouble.append(_Trouble(word, task, list(responses), for_ever))

    def heal(self) -> None:
        """End every trouble."""
        with self._lock:
            self._trouble.clear()

    def _answer(self, request: RecordedRequest) -> Response:
        user = self._wire.user(request.body)
        message = message_of_text(user)
        asked = Asked(str(message["task"]), user)
        with self._lock:
            self._log.append(asked)
            response = next((met for each in self._trouble if (met := each.meets(asked)) is not None), None)
        self.arrived(asked)
        self.answered(asked)
        return response or self._wire.envelope(canonical_bytes(self._reply(asked, message)).decode())

    def _reply(self, asked: Asked, message: Mapping[str, object]) -> dict[str, object]:
        if "feedback" not in message and any(word in asked.user for word in self._stumbles):
            return USELESS
        if asked.task == "plan":
            return plan_reply(message, [search for search in TERMS if search[1] in _texts(message)])
        return assessment_reply(message) if asked.task == "assessment" else interpretation_reply(message)


@dataclass(slots=True)
class _Trouble:
    word: str
    task: str
    responses: list[Response]
    for_ever: bool

    def meets(self, asked: Asked) -> Response | None:
        """Return what this request is met with, None where it is none of this trouble's."""
        if asked.task != self.task or self.word not in asked.user or not self.responses:
            return None
        last = self.for_ever and len(self.responses) == 1
        return self.responses[0] if last else self.responses.pop(0)


def _texts(message: Mapping[str, object]) -> str:
    return json.dumps(message["sources"])
