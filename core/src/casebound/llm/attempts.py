"""The attempts of one stage, as they stand on disk. Each has a folder of its own; nothing in it is ever replaced.

Order of writing: `request.json` before anything is sent; `native.json`, then `native.bin`, before anything is derived
(the bytes come last, so that their presence means that the whole reply is there); `reply.json`; `outcome.json`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from casebound.canonical import digest_of
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeRecord, NativeReply, Outcome
from casebound.errors import IntegrityError
from casebound.store.layout import ConversationPaths
from casebound.store.package import Package

REQUEST, NATIVE, NATIVE_BODY, REPLY, OUTCOME = "request.json", "native.json", "native.bin", "reply.json", "outcome.json"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt.

    Attributes:
        outcome: what was decided about it, None while nothing was.
        text: of the reply that was judged, where it was judged just now; else it stands on the disk alone.
    """

    number: int
    outcome: Outcome | None
    text: str | None = None


class AttemptLog:
    """Reads and writes the attempts of one stage of one conversation."""

    def __init__(self, package: Package, revision: ConversationPaths, stage: str) -> None:
        self._package = package
        self._revision = revision
        self._stage = stage

    def path(self, number: int, name: str) -> str:
        """Return the path of a file of attempt `number`."""
        return f"{self._revision.attempt(self._stage, number)}/{name}"

    def numbers(self) -> list[int]:
        """Return the numbers of all attempts that have a request, in order."""
        pattern = re.compile(rf"^{re.escape(self._stage)}-([0-9]{{4,}})$")
        names = self._package.names(self._revision.attempts(self._stage))
        numbers = sorted(int(match[1]) for match in map(pattern.match, names) if match)
        return [number for number in numbers if self._package.exists(self.path(number, REQUEST))]

    def all(self) -> list[Attempt]:
        """Return every attempt with its outcome. Raises `IntegrityError`."""
        return [
            Attempt(number, self._package.load_if(self.path(number, OUTCOME), Outcome)) for number in self.numbers()
        ]

    async def write_request(self, request: ModelRequest) -> str:
        """Freeze the request of a new attempt, and return its digest once it is on the disk with all before it."""
        digest = self._package.create_artifact(self.path(request.attempt, REQUEST), request)
        await self._package.flush()
        return digest

    async def write_native(self, number: int, native: NativeReply) -> None:
        """Keep what the server sent, and return once it is on the disk."""
        self._package.create_artifact(self.path(number, NATIVE), native.record)
        self._package.create(self.path(number, NATIVE_BODY), native.body)
        await self._package.flush()

    def native(self, number: int) -> NativeReply | None:
        """Return what the server sent, None where it never reached the disk. Raises `IntegrityError`."""
        body = self._package.read(self.path(number, NATIVE_BODY))
        if body is None:
            return None
        record = self._package.load(self.path(number, NATIVE), NativeRecord)
        if record.digest != digest_of(body):
            raise IntegrityError("STORE_DIGEST", path=self.path(number, NATIVE_BODY))
        return NativeReply(record.status, body, record.headers, record.duration_ms)

    def write_reply(self, number: int, reply: ModelReply) -> str:
        """Keep what was read from the native bytes and return its digest."""
        return self._package.create_artifact(self.path(number, REPLY), reply, again=True)

    def reply(self, number: int) -> ModelReply:
        """Return what was read from the native bytes. Raises `IntegrityError`."""
        return self._package.load(self.path(number, REPLY), ModelReply)

    def decided(self, number: int, outcome: Outcome, text: str | None = None) -> Attempt:
        """Decide the attempt and return it."""
        self._package.create_artifact(self.path(number, OUTCOME), outcome, again=True)  # for the row of the case
        return Attempt(number, outcome, text)

    def request_digest(self, number: int) -> str:
        """Return the digest of an attempt's request."""
        return self._package.digest(self.path(number, REQUEST))
