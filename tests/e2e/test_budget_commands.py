"""Budgets and limits at the real command, counted where the requests arrive."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from casebound.contracts.model_call import ModelRequest
from casebound.spending import worst_tokens
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import Inventory, settings_text, write_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Loopback, RecordedRequest, Response

pytest.importorskip("casebound_llm_openai")

REPLIES = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}
CASES = 12
PRICE = "[llm.price]\ninput = 3\noutput = 15\n"


class Server:
    """A Chat Completions server that answers validly.

    Attributes:
        reports: whether it says how many tokens a call took.
        tokens: input and output that it took, whether or not it says so.
    """

    def __init__(self) -> None:
        self.reports = True
        self.tokens: list[tuple[int, int]] = []
        self.loopback = Loopback()
        self.loopback.answer(self._answer)

    def _answer(self, request: RecordedRequest) -> Response:
        message = message_in(request)
        text = json.dumps(REPLIES[message["task"]](message))
        used = (len(request.body) // 4, len(text) // 4)
        self.tokens.append(used)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        body = {"choices": [choice], "usage": {"prompt_tokens": used[0], "completion_tokens": used[1]}}
        if not self.reports:
            del body["usage"]
        return Response(body=json.dumps(body).encode(), headers={"content-type": "application/json"})

    @property
    def asked(self) -> Counter[bytes]:
        return Counter(request.body for request in self.loopback.requests)


def message_in(request: RecordedRequest) -> dict:
    return json.loads(json.loads(request.body)["messages"][1]["content"])


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    with server.loopback:
        yield server


@pytest.fixture
def inventory(tmp_path: Path, server: Server) -> Inventory:
    inventory = write_inventory(tmp_path / "project")
    reports = inventory.folder / "reports"
    reports.mkdir()
    text = inventory.report.read_text(encoding="utf-8")
    for number in range(CASES):
        (reports / f"{number}.md").write_text(text.replace("INC-7", f"INC-{100 + number}"), encoding="utf-8")
    configure(inventory, server)
    assert casebound(inventory, "import", "reports").returncode == 0
    return inventory


def configure(inventory: Inventory, server: Server, budget: str = "", llm: str = "") -> None:
    text = settings_text(
        llm=f'timeout_s = 60\nmax_output_tokens = 1000\n{llm}\n[llm.openai]\nbase_url = "{server.loopback.url}/v1"\n',
        more=f"[limits]\nin_flight = 64\n[budget]\n{budget}\n",
    )
    inventory.configure(text.replace('"scripted"', '"openai"'))


def casebound(inventory: Inventory, *arguments: str):
    return run_casebound(arguments, cwd=inventory.folder, timeout_s=120)


def run(inventory: Inventory, *options: str) -> tuple[int, dict]:
    done = casebound(inventory, "run", "--jobs", "64", "--format", "json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def worst(inventory: Inventory) -> int:
    """Return the declared worst case of every request that is on disk."""
    paths = (inventory.folder / ".casebound" / "cases").rglob("request.json")
    return sum(worst_tokens(ModelRequest.from_json(json.loads(path.read_bytes()))) for path in paths)


def finishes(inventory: Inventory, server: Server) -> None:
    """Run without caps: every case ends, and nothing that was asked before is asked again."""
    configure(inventory, server, llm=PRICE)
    status, summary = run(inventory)
    assert (status, summary["cases"], summary["stopped"]) == (0, {"interpreted": CASES}, None)
    assert len(server.loopback.requests) == 3 * CASES
    assert casebound(inventory, "verify", *map(str, (inventory.folder / ".casebound/cases").iterdir())).returncode == 0


@pytest.mark.spec("A-121")
def test_exactly_so_many_calls_are_sent_as_the_budget_of_a_run_allows_however_many_could_be_in_flight(
    inventory, server
):
    configure(inventory, server, "run_calls = 17", PRICE)
    status, summary = run(inventory)
    assert (status, summary["stopped"], summary["dispatches"]) == (1, "BUDGET_REACHED", 17)
    assert len(server.loopback.requests) == 17
    # What was paid for is not paid for again, and each case ends as it would have.
    finishes(inventory, server)


def test_the_tokens_of_a_run_never_pass_the_cap_and_what_is_left_open_counts_at_its_worst(inventory, server):
    """Fault 35."""
    cap = 40_000
    configure(inventory, server, f"run_tokens = {cap}")
    status, summary = run(inventory)
    assert (status, summary["stopped"]) == (1, "BUDGET_REACHED")
    reported = len(server.tokens)
    assert 0 < sum(map(sum, server.tokens)) <= cap
    assert summary["tokens"] == {
        "input": sum(a for a, _ in server.tokens),
        "output": sum(b for _, b in server.tokens),
        "unreported_calls": 0,
    }
    server.reports, before, worst_before = False, len(server.tokens), worst(inventory)
    status, summary = run(inventory)
    assert (status, summary["stopped"]) == (1, "BUDGET_REACHED")
    assert summary["tokens"] == {"input": 0, "output": 0, "unreported_calls": summary["dispatches"]}
    assert 0 < worst(inventory) - worst_before <= cap
    assert 0 < len(server.tokens) - before < reported


def test_the_money_of_a_run_never_passes_the_cap_and_the_summary_tells_it(inventory, server):
    configure(inventory, server, "run_money = 0.12", PRICE)
    status, summary = run(inventory)
    assert (status, summary["stopped"]) == (1, "BUDGET_REACHED")
    paid = sum(3 * a + 15 * b for a, b in server.tokens)
    assert 0 < paid <= 120_000
    assert summary["money"] == f"{paid / 10**6:.6f}".rstrip("0")
    finishes(inventory, server)


def test_a_cap_of_a_case_stops_that_case_only_and_holds_over_all_its_runs(inventory, server):
    configure(inventory, server, "case_calls = 2")
    for _ in range(2):
        status, summary = run(inventory)
        assert (status, summary["stopped"], summary["cases"]) == (1, None, {"assessed": CASES})
        assert summary["refused_total"] == CASES
        assert {one["code"] for one in summary["refused"]} == {"BUDGET_REACHED"}
    assert len(server.loopback.requests) == 2 * CASES
    finishes(inventory, server)


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["resolve", "report.md"]])
def test_a_cap_on_money_without_a_price_refuses_to_start(inventory, server, command):
    """Fault 35."""
    configure(inventory, server, "case_money = 3")
    done = casebound(inventory, *command)
    assert (done.returncode, len(server.loopback.requests)) == (2, 0)
    assert "SETTINGS_PRICE" in done.stderr


def test_a_dry_run_sends_nothing_and_writes_nothing_and_its_next_requests_are_the_ones_that_follow(inventory, server):
    configure(inventory, server, "run_money = 9", PRICE)
    folder = inventory.folder / ".casebound"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    status, found = run(inventory, "--dry-run")
    assert (status, len(server.loopback.requests)) == (0, 0)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert (found["cases"], found["next"]) == ({"admitted": CASES}, {"plan": CASES})
    assert found["limits"] == {"run_money": "9"}
    said = casebound(inventory, "run", "--dry-run")
    assert (said.returncode, "Nothing was sent" in said.stdout) == (0, True)
    run(inventory, "--max-dispatches", f"{CASES}")
    assert found["next_requests"]["calls"] == len(server.loopback.requests) == CASES
    asked = found["next_requests"]
    if {json.loads(path.read_bytes())["stage"] for path in folder.rglob("request.json")} == {"plan"}:
        assert asked["input_tokens"] + asked["output_tokens"] == worst(inventory)


def test_no_more_requests_than_allowed_are_in_flight(inventory, server):
    configure(inventory, server)
    text = (inventory.folder / "casebound.toml").read_text().replace("in_flight = 64", "in_flight = 2")
    inventory.configure(text)
    assert run(inventory)[0] == 0
    # A connection carries one request at a time, so there were at most as many as connections.
    assert len({request.connection for request in server.loopback.requests}) <= 2
