"""A model server that fails in every way at once: each case waits for its own reason, nobody is asked too often."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
from casebound.clock import format_time, parse_time
from casebound.strict_json import parse_json
from casebound.testing.killable import Commands
from casebound.testing.loopback import Fault, Response
from casebound.testing.many_cases import ManyCases, bill
from casebound.testing.model_server import Asked, ModelServer

pytestmark = pytest.mark.faults

HTML = Response(body=b"<!doctype html><title>Sign in</title>", headers={"content-type": "text/html"})
# The word in a report's title, what its requests are met with, and the code that this is.
FAULTS = {
    "resetting": (Response(fault=Fault.RESET), "LLM_UNAVAILABLE"),
    "closing": (Response(fault=Fault.CLOSE), "LLM_UNAVAILABLE"),
    "cutting": (Response(body=b'{"choices": []}', fault=Fault.CUT), "LLM_UNAVAILABLE"),
    "chunking": (Response(body=b'{"choices": []}', fault=Fault.CUT_CHUNKED), "LLM_UNAVAILABLE"),
    "hanging": (Response(fault=Fault.HANG), "LLM_TIMEOUT"),
    "dripping": (Response(fault=Fault.DRIP), "LLM_TIMEOUT"),
    "stalling": (Response(body=b'{"choices": []}', fault=Fault.STALL), "LLM_TIMEOUT"),
    "hurried": (Response(status=429), "LLM_RATE_LIMITED"),
    "failing": (Response(status=500, body=b'{"error": {"message": "oops"}}'), "LLM_UNAVAILABLE"),
    "foreign": (HTML, "LLM_UNAVAILABLE"),
}
PATIENT_S = 600
RETRIES = 2
RUN = ("run", "--jobs", "16", "--workspace", "workspace", "--format", "json")
TIMEOUT_S = 3


@pytest.fixture
def troubled(project) -> tuple[ManyCases, ModelServer]:
    words = [*FAULTS, "late", "calm"]
    many, server = project("troubled", words, timeout_s=TIMEOUT_S, more="[limits]\nin_flight = 16\n")
    for word, (response, _) in FAULTS.items():
        server.trouble(f" {word} ", "plan", response, for_ever=True)
    return many, server


def words_of(server: ModelServer) -> Counter[str]:
    """Return how many plans each troubled case asked for."""
    plans = [asked.user for asked in server.log if asked.task == "plan"]
    return Counter(word for user in plans for word in FAULTS if f" {word} " in user)


def waits(project: ManyCases) -> dict[str, tuple[str, str | None]]:
    """Return state and code of each troubled case, by its word."""
    found = [(progress.state, progress.code) for progress in project.progress().values()]
    return dict(zip(FAULTS, found, strict=False))


@pytest.mark.spec("A-102")
def test_each_fault_of_a_model_server_ends_in_its_own_state_after_as_many_requests_as_the_policy_says(troubled) -> None:
    project, server = troubled
    late = threading.Event()

    def arrived(asked: Asked) -> None:
        if " late " in asked.user and asked.task == "plan":
            late.wait(1)  # an answer that comes late, and in time

    server.arrived = arrived
    expected = {word: code for word, (_, code) in FAULTS.items()}
    with Commands(["casebound_llm_openai.provider"]) as commands:
        assert commands.run(project.order("import", "reports", "--workspace", "workspace")).status == 0
        ahead = 0
        for round_ in range(1, RETRIES + 2):
            ended = commands.run(project.order(*RUN, ahead_s=ahead))
            assert ended.status == 1, ended
            summary = parse_json(ended.out.encode())
            pending = "retry_pending" if round_ <= RETRIES else "blocked"
            assert waits(project) == {word: (pending, code) for word, code in expected.items()}
            assert words_of(server) == dict.fromkeys(expected, round_)
            assert summary["left"] == len(expected)
            assert summary["dispatches"] == len(expected) + (6 if round_ == 1 else 0)
            assert_nothing_is_sent_before_its_time(commands, project, server, ahead)
            ahead += 120
        assert Counter(project.states()) == {"blocked": len(expected), "interpreted": 2}
        assert commands.run(project.order(*RUN, ahead_s=ahead)).status == 1
        assert words_of(server) == dict.fromkeys(expected, RETRIES + 1)  # a blocked case never goes on by itself
        server.heal()
        for case, progress in project.progress().items():
            if progress.state == "blocked":
                assert (
                    commands.run(project.order("resume", case, "--workspace", "workspace", ahead_s=ahead)).status == 0
                )
    assert project.states() == {"interpreted": len(expected) + 2}
    assert project.verdicts() == {"holds"}
    paid = bill(project, server.counts())
    assert (paid.off_record, paid.repeated, paid.unknown) == ((), (), 0)
    assert paid.sent == 3 * 2 + len(expected) * (RETRIES + 1 + 3)


def assert_nothing_is_sent_before_its_time(commands, project: ManyCases, server: ModelServer, ahead: float) -> None:
    sent = len(server.log)
    retry_at = min(progress.retry_at for progress in project.progress().values() if progress.retry_at)
    ended = commands.run(project.order(*RUN, ahead_s=ahead))
    assert ended.status == 1
    assert parse_time(parse_json(ended.out.encode())["retry_at"]) == retry_at
    assert len(server.log) == sent


def test_a_case_waits_as_long_as_the_server_asks_and_no_longer(project) -> None:
    many, server = project("patient", ["patient"])
    server.trouble("patient", "plan", Response(status=429, headers={"retry-after": str(PATIENT_S)}))
    with Commands(["casebound_llm_openai.provider"]) as commands:
        assert commands.run(many.order("import", "reports", "--workspace", "workspace")).status == 0
        assert commands.run(many.order(*RUN)).status == 1
        (waiting,) = many.progress().values()
        (attempt,) = many.attempts()
        assert (waiting.state, waiting.code, attempt.kind) == ("retry_pending", "LLM_RATE_LIMITED", "provider_error")
        assert waiting.event.at < format_time(waiting.retry_at - timedelta(seconds=PATIENT_S - 60))
        assert commands.run(many.order(*RUN, ahead_s=PATIENT_S - 120)).status == 1
        assert len(server.log) == 1
        assert commands.run(many.order(*RUN, ahead_s=PATIENT_S + 1)).status == 0
    assert (many.states(), len(server.log)) == ({"interpreted": 1}, 4)
