"""Two model servers and the rules: who is asked when the first one fails, counted where the requests arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from casebound.api import Project, Result, verify
from casebound.errors import SettingsError
from casebound.testing.inventory import Inventory, write_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response

pytest.importorskip("casebound_llm_openai")
pytest.importorskip("casebound_llm_offline")

REPLIES = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}
QUOTA = Response(status=429, body=b'{"error": {"code": "insufficient_quota", "message": "used up"}}')
BUSY = Response(status=429, body=b'{"error": {"code": "rate_limit_exceeded"}}', headers={"retry-after": "90"})
AWAY = Response(status=503)
BROKEN_OFF = Response(fault=Fault.CUT)
FIRST_KEY, SECOND_KEY = "canary-first-0123456789", "canary-second-0123456789"


def task(request: RecordedRequest) -> str:
    return str(json.loads(json.loads(request.body)["messages"][1]["content"])["task"])


def chat(request: RecordedRequest) -> Response:
    """Answer as a Chat Completions server does, validly, from the message alone."""
    message = json.loads(json.loads(request.body)["messages"][1]["content"])
    text = json.dumps(REPLIES[message["task"]](message))
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Response(body=json.dumps({"choices": [choice]}).encode(), headers={"content-type": "application/json"})


@pytest.fixture
def servers() -> Iterator[tuple[Loopback, Loopback]]:
    with Loopback(FIRST_KEY) as first, Loopback(FIRST_KEY) as second:
        second.answer(chat)
        yield first, second


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    return write_inventory(tmp_path)


def llm(
    servers: tuple[Loopback, Loopback],
    *,
    retries: int = 0,
    fallback: str = '["spare"]',
    timeout_s: int = 60,
    spare_key: str = 'api_key_env = "T_SECOND_KEY"',
) -> str:
    first, second = servers
    return f"""
[llm]
provider = "openai"
model = "big"
timeout_s = {timeout_s}
fallback = {fallback}
[llm.retry]
max_retries = {retries}
[llm.openai]
base_url = "{first.url}/v1"
api_key_env = "T_FIRST_KEY"
[llm.profile.spare]
model = "small"
[llm.profile.spare.openai]
base_url = "{second.url}/v1"
{spare_key}
[llm.profile.rules]
provider = "offline"
"""


@pytest.fixture
def resolve(inventory: Inventory, servers: tuple[Loopback, Loopback], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("T_FIRST_KEY", FIRST_KEY)
    monkeypatch.setenv("T_SECOND_KEY", SECOND_KEY)

    def resolve(**options) -> Result:
        config = inventory.folder / "llm.toml"
        config.write_text(llm(servers, **options))
        project = Project.open(
            inventory.folder / "casebound.toml",
            llm_config=config,
            workspace=inventory.workspace,
            clock=inventory.clock,
        )
        try:
            (result,) = project.resolve([inventory.report])
        finally:
            project.close()
        return result

    return resolve


@pytest.mark.parametrize("answer", [QUOTA, BUSY, AWAY, BROKEN_OFF], ids=["quota", "busy", "away", "broken off"])
def test_the_second_server_answers_in_the_same_run_where_the_first_one_fails(servers, inventory, resolve, answer):
    first, second = servers
    first.answer(answer)
    result = resolve()
    assert (result.state, result.resolver) == ("interpreted", "model")
    assert [task(request) for request in first.requests] == ["plan", "assessment", "interpretation"]
    assert [task(request) for request in second.requests] == ["plan", "assessment", "interpretation"]
    assert {json.loads(request.body)["model"] for request in second.requests} == {"small"}
    assert {who["model"] for who in result.to_json()["answered_by"].values()} == {"small"}
    assert len({request.connection for request in second.requests}) == 1  # one provider, kept by all stages
    assert verify(inventory.workspace / "cases" / "INC-7").answer == "holds"


def test_a_server_without_a_key_of_its_own_gets_none(servers, resolve):
    """Fault 20: the first server's key goes nowhere else."""
    servers[0].answer(QUOTA)
    assert resolve(spare_key="").state == "interpreted"
    assert {request.canary_in for request in servers[0].requests} == {("authorization",)}
    assert {(request.canary_in, "authorization" in request.headers) for request in servers[1].requests} == {((), False)}


@pytest.mark.faults
def test_the_second_server_answers_where_the_first_one_hangs(servers, resolve):
    servers[0].answer(Response(fault=Fault.HANG), chat)
    result = resolve(timeout_s=1)
    assert (result.state, len(servers[0].requests), len(servers[1].requests)) == ("interpreted", 3, 1)


def test_retries_and_fallbacks_add_up_and_never_multiply(servers, inventory, resolve):
    """Fault 18: two servers that are away get exactly the requests that the policy declares."""
    for server in servers:
        server.answer(AWAY)
    states = []
    for _ in range(4):
        states.append(resolve(retries=2).state)
        inventory.clock.advance(60)
    assert states == ["retry_pending", "retry_pending", "blocked", "blocked"]
    assert [len(server.requests) for server in servers] == [3, 1]


def test_a_servers_wish_is_waited_for_before_the_retry_and_not_before_the_fallback(servers, inventory, resolve):
    servers[0].answer(BUSY)
    result = resolve(retries=1)
    assert (result.state, result.retry_at) == ("retry_pending", "2026-11-01T08:01:30.000Z")
    inventory.clock.advance(89)
    assert resolve(retries=1).state == "retry_pending"
    inventory.clock.advance(1)
    resolve(retries=1)
    assert [task(request) for request in servers[0].requests] == ["plan", "plan", "assessment"]
    assert [task(request) for request in servers[1].requests] == ["plan"]


def test_rules_that_answer_for_a_model_are_called_rules(servers, inventory, resolve):
    servers[0].answer(QUOTA)
    servers[1].answer(AWAY)
    result = resolve(fallback='["spare", "rules"]')
    assert (result.state, result.resolver) == ("interpreted", "rules")
    rules = {"provider": "offline", "model": None, "resolver": "rules", "fallback": True}
    assert result.to_json()["answered_by"] == dict.fromkeys(("plan", "assessment", "interpretation"), rules)
    assert verify(inventory.workspace / "cases" / "INC-7").answer == "holds"


def test_one_reply_of_a_model_makes_it_a_models_result(servers, inventory, resolve):
    servers[0].answer(chat, QUOTA)
    result = resolve(fallback='["rules"]')
    assert (result.state, result.resolver) == ("interpreted", "model")
    assert [who["resolver"] for who in result.to_json()["answered_by"].values()] == ["model", "rules", "rules"]


def test_a_key_that_a_fallback_lacks_is_told_before_anything_is_written(servers, inventory, resolve, monkeypatch):
    monkeypatch.delenv("T_SECOND_KEY")
    with pytest.raises(SettingsError, match="T_SECOND_KEY") as caught:
        resolve()
    assert caught.value.code == "SETTINGS_VARIABLE"
    assert not inventory.workspace.exists()
    assert servers[0].requests == []


def test_no_key_reaches_a_file(servers, inventory, resolve):
    servers[0].answer(Response(status=429, body=f'{{"error": {{"message": "{FIRST_KEY}"}}}}'.encode()))
    servers[1].answer(Response(status=401, body=f'{{"error": {{"message": "{SECOND_KEY}"}}}}'.encode()))
    assert resolve().code == "LLM_AUTH"
    written = b"".join(path.read_bytes() for path in inventory.workspace.rglob("*") if path.is_file())
    echoed = [b"[key]" in path.read_bytes() for path in inventory.workspace.rglob("native.bin")]
    assert echoed == [True, True]  # what the servers echoed was kept, masked
    assert not any(key.encode() in written for key in (FIRST_KEY, SECOND_KEY))
