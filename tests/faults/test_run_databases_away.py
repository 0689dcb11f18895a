"""Real database servers that are stopped while a run works, and started again: nothing is lost or paid twice."""

from __future__ import annotations

import pytest
from casebound.testing.killable import Commands
from casebound.testing.many_cases import ManyCases, bill
from casebound.testing.model_server import Asked, ModelServer
from casebound.testing.own_server import OwnServer, fill_inventory, own_server

pytestmark = [pytest.mark.faults, pytest.mark.services]

WORDS = ["calm"] * 6
AT = ("--workspace", "workspace")
RUN = ("run", "--jobs", "2", *AT, "--format", "json")


def stop_at_the_first(task: str, server: ModelServer, database: OwnServer) -> None:
    def arrived(asked: Asked) -> None:
        if asked.task == task:
            server.arrived = lambda asked: None
            database.stop()

    server.arrived = arrived


def assert_all_ended(project: ManyCases, server: ModelServer) -> None:
    assert project.states() == {"interpreted": len(WORDS)}
    assert project.verdicts() == {"holds"}
    paid = bill(project, server.counts())
    assert (paid.sent, paid.unknown, paid.off_record, paid.repeated) == (3 * len(WORDS), 0, (), ())


@pytest.mark.spec("A-101")
def test_cases_wait_for_a_stopped_mariadb_with_their_plans_and_end_once_it_is_back(project) -> None:
    with own_server("mariadb") as database, Commands(["casebound_llm_openai.provider"]) as commands:
        fill_inventory(database.url)
        many, server = project("stopped", WORDS, database=database.url)
        assert commands.run(many.order("import", "reports", *AT)).status == 0
        stop_at_the_first("assessment", server, database)
        ended = commands.run(many.order(*RUN))
        assert ended.status == 1, ended
        found = many.progress().values()
        assert {(each.state, each.code) for each in found if each.state != "interpreted"} == {
            ("blocked", "RESEARCH_UNAVAILABLE")
        }
        blocked = sum(each.state == "blocked" for each in found)
        assert blocked >= len(WORDS) - 2
        before, sent = many.files(), len(server.log)
        assert commands.run(many.order(*RUN, ahead_s=3600)).status == 1  # a run lets none of them go on
        assert commands.run(many.order("resume", "--due", *AT)).status == 0  # nothing is due yet
        assert (many.files(), len(server.log)) == (before, sent)
        database.start()
        ended = commands.run(many.order("resume", "--due", *AT, ahead_s=3600))
        assert ended.status == 0, ended
        after = many.files()
        assert {path: after.get(path) for path in before} == before
        assert_all_ended(many, server)


def test_a_run_ends_in_order_when_its_postgresql_index_is_stopped_and_the_next_one_goes_on(project) -> None:
    with own_server("postgresql") as database, Commands(["casebound_llm_openai.provider"]) as commands:
        index = f'[workspace]\nindex_url = "{database.url}"\n'
        many, server = project("stopped", WORDS, more=index)
        assert commands.run(many.order("import", "reports", *AT)).status == 0
        stop_at_the_first("assessment", server, database)
        ended = commands.run(many.order(*RUN))
        assert ended.status == 3, ended
        assert "INDEX_UNAVAILABLE" in ended.err
        states = many.states()
        assert states["interpreted"] >= 1  # what was in flight went on to its end, and is on disk
        assert states["admitted"] >= 1
        assert {attempt.kind for attempt in many.attempts()} == {"accepted"}
        sent = len(server.log)
        assert commands.run(many.order(*RUN)).status == 3  # without an index nothing begins
        assert commands.run(many.order("status", *AT)).status == 3
        assert len(server.log) == sent
        database.start()
        ended = commands.run(many.order(*RUN))
        assert ended.status == 0, ended
        assert_all_ended(many, server)


@pytest.mark.parametrize("stopped_at", ["plan", "interpretation"])
def test_an_index_that_comes_back_within_the_run_or_after_it_loses_no_case(project, stopped_at: str) -> None:
    with own_server("postgresql") as database, Commands(["casebound_llm_openai.provider"]) as commands:
        many, server = project("back", WORDS, more=f'[workspace]\nindex_url = "{database.url}"\n')
        assert commands.run(many.order("import", "reports", *AT)).status == 0

        def arrived(asked: Asked) -> None:
            if asked.task == stopped_at:
                server.arrived = lambda asked: None
                database.stop()
                database.start()

        server.arrived = arrived
        statuses = [commands.run(many.order(*RUN)).status for _ in range(2)]
        assert statuses in ([0, 0], [3, 0])
        assert_all_ended(many, server)
