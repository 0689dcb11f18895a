"""A scripted HTTP server on the loopback interface that misbehaves on demand.

It knows no vendor: a test says what is answered, byte for byte, and which fault happens on the way. It runs in threads
of its own, so that it serves synchronous clients, event loops and other processes alike. Standard library only.

Every request is recorded with its secrets masked: headers that carry keys are reduced to `***`, and a canary that the
test planted is remembered by the names of the headers in which it arrived.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, TypeAlias

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "api-key", "x-api-key"})
_LONGEST_HEAD = 65_536
_PATIENCE_S = 30.0
_REASONS = {200: "OK", 301: "Moved Permanently", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}


class Fault(StrEnum):
    """What goes wrong while one request is answered."""

    NONE = "none"
    CLOSE = "close"  # the connection ends before the first byte
    HANG = "hang"  # nothing is ever answered
    DRIP = "drip"  # one byte at a time, without an end in sight: no gap is long, the whole is
    STALL = "stall"  # half of the body, then silence
    CUT = "cut"  # half of the body, then the connection ends; content-length promised all of it
    CUT_CHUNKED = "cut_chunked"  # the same with chunked encoding
    RESET = "reset"  # half of the body, then a reset


@dataclass(frozen=True, slots=True)
class Response:
    """What the server answers to one request.

    Attributes:
        status: HTTP status.
        body: exact bytes. `content-length` is made from them unless `headers` say otherwise.
        headers: further headers, or other values for `content-type` and `content-length`.
        fault: what goes wrong on the way.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault = Fault.NONE


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it arrived.

    Attributes:
        method, path, query: of the request line; `query` is without the question mark.
        headers: lower-case names, secrets masked.
        body: exact bytes.
        canary_in: the places where the canary stood: names of headers, `path`, `body`.
        connection: number of the connection, from 1.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    canary_in: tuple[str, ...]
    connection: int


Answer: TypeAlias = "Response | Callable[[RecordedRequest], Response]"


class Loopback:
    """The server, a context manager. Answers of a path are used in order; the last one stays.

    Attributes:
        requests: everything that arrived, in order of arrival.
        canary: a secret of the test's own; where it arrives is recorded, its value is not.
    """

    def __init__(self, canary: str | None = None) -> None:
        self.requests: list[RecordedRequest] = []
        self.canary = canary
        self._answers: dict[str | None, list[Answer]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._gone = threading.Event()
        self._arrived = threading.Condition(self._lock)
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._address: tuple[str, int] = self._listener.getsockname()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, without a slash at the end."""
        return "http://{}:{}".format(*self._address)

    def answer(self, *answers: Answer, path: str | None = None) -> None:
        """Set what is answered from now on: for one path, or for every path that has no answers of its own."""
        with self._lock:
            self._answers[path] = list(answers)

    def wait_for_requests(self, count: int) -> bool:
        """Wait until `count` requests have arrived; False if they do not."""
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self.requests) >= count, _PATIENCE_S)

    def wait_for_departure(self) -> bool:
        """Wait until a client has left while it was being kept waiting; False if none does."""
        return self._gone.wait(_PATIENCE_S)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and all its connections; nobody listens at `url` any more. May be called again."""
        if self._stop.is_set():
            return
        self._stop.set()
        # A listener that is merely closed leaves `accept` waiting on some systems: one last visit wakes it.
        with socket.create_connection(self._address):
            pass
        self._threads[0].join(_PATIENCE_S)
        self._listener.close()
        with self._lock:
            open_connections = list(self._connections)
        for connection in open_connections:
            _shut(connection)
        for thread in self._threads[1:]:
            thread.join(_PATIENCE_S)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while True:
            connection, _ = self._listener.accept()
            if self._stop.is_set():
                connection.close()
                return
            number += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.append(connection)
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            received = b""
            while not self._stop.is_set():
                request, received = _read_request(connection, received)
                if request is None or not self._reply(connection, self._record(request, number)):
                    return
        except OSError:
            return  # the client left, or the test is over
        finally:
            with self._lock:
                self._connections.remove(connection)
            connection.close()

    def _record(self, request: _RawRequest, number: int) -> RecordedRequest:
        places = {**request.headers, "path": request.target, "body": request.body.decode("utf-8", "replace")}
        canary_in = tuple(name for name, text in places.items() if self.canary and self.canary in text)
        path, _, query = request.target.partition("?")
        secret = _SECRET_HEADERS | set(canary_in)
        recorded = RecordedRequest(
            method=request.method,
            path="***" if "path" in canary_in else path,
            query="***" if "path" in canary_in else query,
            headers={name: "***" if name in secret else value for name, value in request.headers.items()},
            body=request.body,
            canary_in=canary_in,
            connection=number,
        )
        with self._arrived:
            self.requests.append(recorded)
            self._arrived.notify_all()
        return recorded

    def _next_answer(self, request: RecordedRequest) -> Response:
        with self._lock:
            answers = self._answers.get(request.path) or self._answers.get(None)
            if not answers:
                return Response(status=501, body=b"the test scripted no answer")
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, Response) else answer(request)

    def _reply(self, connection: socket.socket, request: RecordedRequest) -> bool:
        """Send the answer with its fault; tell whether the connection may be used again."""
        response = self._next_answer(request)
        fault = response.fault
        if fault is Fault.CLOSE:
            return False
        if fault is Fault.HANG:
            self._keep_waiting(connection)
            return False
        head, body = _head_of(response), response.body
        if fault is Fault.NONE:
            connection.sendall(head + body)
            return True
        if fault is Fault.DRIP:
            self._drip(connection, head)
            return False
        half = body[: len(body) // 2]
        connection.sendall(head + (b"%x\r\n" % len(body) if fault is Fault.CUT_CHUNKED else b"") + half)
        if fault is Fault.STALL:
            self._keep_waiting(connection)
        elif fault is Fault.RESET:
            # With a linger time of zero, closing sends RST instead of FIN.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def _drip(self, connection: socket.socket, head: bytes) -> None:
        connection.sendall(head)
        while not self._stop.wait(0.02):
            try:
                connection.sendall(b" ")
            except OSError:
                self._gone.set()
                return

    def _keep_waiting(self, connection: socket.socket) -> None:
        """Say nothing until the client leaves or the test ends."""
        try:
            left = connection.recv(1) == b""
        except OSError:
            left = True
        if left and not self._stop.is_set():
            self._gone.set()


@dataclass(frozen=True, slots=True)
class _RawRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def _read_request(connection: socket.socket, received: bytes) -> tuple[_RawRequest | None, bytes]:
    """Read one request; return it (None: the client is done) and what was received beyond it."""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        if not part or len(received) > _LONGEST_HEAD:
            return None, b""
        received += part
    head, _, rest = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    size = int(headers.get("content-length", "0"))
    while len(rest) < size:
        part = connection.recv(65_536)
        if not part:
            return None, b""
        rest += part
    return _RawRequest(method, target, headers, rest[:size]), rest[size:]


def _head_of(response: Response) -> bytes:
    headers = {"content-type": "application/json"}
    if response.fault is Fault.CUT_CHUNKED:
        headers["transfer-encoding"] = "chunked"
    elif response.fault is Fault.DRIP:
        headers["content-length"] = "1000000"
    else:
        headers["content-length"] = str(len(response.body))
    headers |= {name.lower(): value for name, value in response.headers.items()}
    lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the client was quicker
