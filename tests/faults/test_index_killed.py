"""A command that is killed while it writes to the index: before its transaction is committed, and right behind."""

from __future__ import annotations

import signal
import threading

import pytest
from casebound.strict_json import parse_json
from casebound.testing.killable import Commands
from casebound.testing.many_cases import ManyCases, bill
from casebound.testing.model_server import Asked, ModelServer
from casebound.testing.servers import running_server

pytestmark = pytest.mark.faults

PROVIDER = ["casebound_llm_openai.provider"]
AT = ("--workspace", "workspace")
IMPORT = ("import", "reports", *AT)
RUN = ("run", "--jobs", "1", *AT, "--format", "json")
WRITES = {IMPORT: ["upsert"], RUN: ["claim", "release_all", "drop"]}
KILLS = [
    pytest.param(command, f"{where} index {name}", id=f"{where} {name}")
    for command, names in WRITES.items()
    for name in names
    for where in ("uncommitted", "behind")
]


def assert_ends(commands: Commands, many: ManyCases, server: ModelServer, lost: int = 0) -> None:
    """Go on after a kill, and show that the index agrees with the packages and nothing was paid for twice."""
    assert commands.run(many.order(*IMPORT)).status == 0
    ended = commands.run(many.order(*RUN))
    assert ended.status == 0, ended
    assert many.states() == {"interpreted": 2}
    assert many.verdicts() == {"holds"}
    paid = bill(many, server.counts())
    assert (paid.sent, paid.unknown, paid.off_record, paid.repeated) == (6 + lost, lost, (), ())
    before = status(commands, many)
    assert commands.run(many.order("reindex", *AT)).status == 0
    assert status(commands, many) == before


def status(commands: Commands, many: ManyCases) -> dict:
    ended = commands.run(many.order("status", *AT, "--format", "json"))
    assert ended.status == 0, ended
    return {**parse_json(ended.out.encode()), "at": None}


@pytest.mark.services
@pytest.mark.parametrize(("command", "at"), KILLS)
def test_killed_at_a_write_to_an_index_on_postgresql_a_fresh_process_goes_on(project, command, at: str) -> None:
    with running_server("postgresql") as database, Commands(PROVIDER) as commands:
        many, server = project("killed", ["calm", "calm"], more=f'[workspace]\nindex_url = "{database.url}"\n')
        if command != IMPORT:
            assert commands.run(many.order(*IMPORT)).status == 0
        assert commands.run(many.order(*command, end_at=at)).status == -signal.SIGKILL
        assert_ends(commands, many, server)


@pytest.mark.parametrize("where", ["uncommitted", "behind"])
def test_killed_while_it_renews_its_leases_it_leaves_cases_that_the_next_process_takes_at_once(project, where) -> None:
    many, server = project("renewed", ["calm", "calm"], more="[workspace]\nlease_s = 5\n")
    over = threading.Event()

    def hold(asked: Asked) -> None:
        server.arrived = lambda asked: None
        assert over.wait(120)

    with Commands(PROVIDER) as commands:
        assert commands.run(many.order(*IMPORT)).status == 0
        server.arrived = hold
        ended = commands.run(many.order(*RUN, end_at=f"{where} index renew"))
        over.set()
        assert ended.status == -signal.SIGKILL
        assert_ends(commands, many, server, lost=1)
