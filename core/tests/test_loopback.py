"""The scripted server does exactly what it is told, seen from a plain socket."""

import gzip
import http.client
import socket
import threading

import pytest
from casebound.testing.loopback import Fault, Loopback, Response

BODY = b'{"text":"twelve bytes and more"}'


@pytest.fixture
def server():
    with Loopback(canary="canary-secret") as loopback:
        yield loopback


def connect(server):
    host, _, port = server.url.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=20)


def ask(server, method="POST", path="/v1/x", body=b"{}", **headers):
    connection = connect(server)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), data


def raw(server):
    """Everything that arrives until the server ends the connection."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"POST /x HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_answers_are_given_in_order_and_the_last_one_stays(server):
    server.answer(Response(body=b"1"), Response(status=429, body=b"2", headers={"Retry-After": "7"}))
    assert [ask(server)[2], ask(server)[0], ask(server)[0]] == [b"1", 429, 429]
    assert ask(server)[1] == {"content-type": "application/json", "content-length": "1", "retry-after": "7"}


def test_a_path_may_have_answers_of_its_own(server):
    server.answer(Response(body=b"any"))
    server.answer(Response(body=b"own"), path="/own")
    assert [ask(server, path="/own?a=b")[2], ask(server, path="/else")[2]] == [b"own", b"any"]


def test_an_answer_may_depend_on_the_request(server):
    server.answer(lambda request: Response(body=request.body[::-1]))
    assert ask(server, body=b"abc")[2] == b"cba"


def test_nothing_scripted_is_said_loudly(server):
    assert ask(server) == (
        501,
        {"content-type": "application/json", "content-length": "27"},
        b"the test scripted no answer",
    )


def test_requests_are_recorded_with_their_secrets_masked(server):
    server.answer(Response())
    ask(server, path="/p?q=1", body=b"hi", Authorization="Bearer canary-secret", X_Odd="canary-secret", X_Plain="seen")
    ask(server, path="/canary-secret", Cookie="a=b")
    first, second = server.requests
    assert (first.method, first.path, first.query, first.body) == ("POST", "/p", "q=1", b"hi")
    assert first.canary_in == ("authorization", "x-odd")
    assert (first.headers["authorization"], first.headers["x-odd"], first.headers["x-plain"]) == ("***", "***", "seen")
    assert (second.path, second.canary_in, second.headers["cookie"]) == ("***", ("path",), "***")
    assert "canary-secret" not in repr(server.requests)


def test_a_connection_is_kept_and_numbered(server):
    server.answer(Response(body=b"x"))
    connection = connect(server)
    for _ in range(2):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"x"
    connection.close()
    ask(server)
    assert [request.connection for request in server.requests] == [1, 1, 2]


@pytest.mark.parametrize(
    ("fault", "ends_with"),
    [(Fault.CLOSE, b""), (Fault.CUT, BODY[:16]), (Fault.CUT_CHUNKED, b"20\r\n" + BODY[:16])],
)
def test_a_broken_answer_stops_where_it_should(server, fault, ends_with):
    server.answer(Response(body=BODY, fault=fault))
    received = raw(server)
    assert received.endswith(ends_with)
    assert (received == b"") == (fault is Fault.CLOSE)


def test_a_reset_is_a_reset(server):
    server.answer(Response(body=BODY, fault=Fault.RESET))
    with pytest.raises(ConnectionResetError):
        raw(server)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.STALL, Fault.DRIP])
def test_who_is_kept_waiting_may_leave_and_that_is_noticed(server, fault):
    server.answer(Response(body=BODY, fault=fault))
    connection = connect(server)
    connection.request("POST", "/", b"{}")
    assert server.wait_for_requests(1)
    connection.close()
    assert server.wait_for_departure()


def test_headers_may_lie(server):
    packed = gzip.compress(BODY)  # once: its head holds the second in which it was made
    server.answer(Response(body=packed[:-8], headers={"content-encoding": "gzip", "content-length": "5"}))
    assert ask(server)[2] == packed[:5]


def test_closing_ends_every_thread_and_may_be_repeated():
    before = threading.active_count()
    with Loopback() as server:
        server.answer(Response(fault=Fault.HANG))
        connection = connect(server)
        connection.request("POST", "/", b"{}")
        assert server.wait_for_requests(1)
        server.close()
        with pytest.raises(ConnectionRefusedError):
            connect(server).connect()
        connection.close()
    assert threading.active_count() == before
