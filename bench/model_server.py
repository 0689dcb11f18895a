"""A model server on loopback in a process of its own: each reply comes a fixed time after its request.

It answers chat completions as `InventoryModel` would, from the request alone; the plans look up the hosts that the
report names. A request that was answered before is answered from memory, so that in a second round the server costs
next to nothing. `GET /figures` tells of all calls since the last such question: how many, the seconds between the first
request and the last reply, the most that were in flight. `GET /bodies` gives one request a stage, as it came.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply

MOST_SEARCHES = 4


@dataclass(slots=True)
class Figures:
    """What the server saw since it was last asked."""

    calls: int = 0
    first: float = 0.0
    last: float = 0.0
    in_flight: int = 0
    most_in_flight: int = 0

    def begin(self) -> None:
        """A request has arrived."""
        self.first = self.first or time.perf_counter()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self) -> None:
        """Its reply is on the wire."""
        self.calls += 1
        self.last = time.perf_counter()
        self.in_flight -= 1

    def told(self) -> dict[str, object]:
        """Return them as JSON data."""
        return {"calls": self.calls, "seconds": self.last - self.first, "most_in_flight": self.most_in_flight}


@dataclass(slots=True)
class Server:
    """Answers every connection; `latency` in seconds."""

    latency: float
    figures: Figures = field(default_factory=Figures)
    replies: dict[bytes, bytes] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET"):
                    writer.write(_response(self._asked(head)))
                    continue
                due = time.perf_counter() + self.latency
                self.figures.begin()
                sizes = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                body = await reader.readexactly(int(next(sizes).partition(b":")[2]))
                if body not in self.replies:
                    self.replies[body] = _response(self._completion(body))
                await asyncio.sleep(due - time.perf_counter())
                writer.write(self.replies[body])
                self.figures.end()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _asked(self, head: bytes) -> object:
        if b"/bodies" in head:
            return self.bodies
        told, self.figures = self.figures.told(), Figures()
        return told

    def _completion(self, body: bytes) -> dict[str, object]:
        message = json.loads(body)["messages"][-1]["content"]
        stage, answer = answer_to(message)
        self.bodies.setdefault(stage, body.decode())
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1793520000,
            "model": "model-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}],
            "usage": {"prompt_tokens": 812, "completion_tokens": 97, "total_tokens": 909},
        }


def answer_to(text: str) -> tuple[str, str]:
    """Return stage and reply of a message; one that is none of ours is answered with a word."""
    try:
        message: dict[str, Any] = json.loads(text)
    except (ValueError, TypeError):
        return "other", "answer"
    if "roles" in message and "candidates" not in message:
        words = [word.strip(".,;") for source in message["sources"][1:2] for word in source["text"].split()]
        names = [word for word in words if word.startswith("node-")][:MOST_SEARCHES]
        return "plan", json.dumps(plan_reply(message, [("inventory.host", name, "affected_subject") for name in names]))
    if "candidates" in message:
        return "assessment", json.dumps(assessment_reply(message))
    return "interpretation", json.dumps(interpretation_reply(message))


def _response(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


async def serve(latency: float) -> None:
    """Serve until standard input ends; the first line printed is the port."""
    server = await asyncio.start_server(Server(latency).connected, "127.0.0.1", 0, backlog=512, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """The server from outside."""

    root: str

    @property
    def url(self) -> str:
        """The base URL for a client of OpenAI's interface."""
        return f"{self.root}/v1"

    def figures(self) -> dict[str, Any]:
        """Return what it saw since this was last asked."""
        return self._get("figures")

    def bodies(self) -> dict[str, str]:
        """Return one request a stage, as it came."""
        return self._get("bodies")

    def _get(self, name: str) -> Any:  # JSON
        with urlopen(f"{self.root}/{name}") as response:  # loopback
            return json.load(response)


@contextmanager
def running(latency: float) -> Iterator[RunningServer]:
    """Run a server for the block."""
    command = [sys.executable, str(Path(__file__).resolve()), str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield RunningServer(f"http://127.0.0.1:{process.stdout.readline().strip()}")
        process.communicate()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
