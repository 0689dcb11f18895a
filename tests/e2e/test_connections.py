"""Several reports, one provider that keeps its connection: in a program, and where an event loop already runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from casebound.api import Project
from casebound.testing.inventory import REPORT, write_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Loopback, RecordedRequest, Response

pytest.importorskip("casebound_llm_openai")

REPLIES = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}


def chat(request: RecordedRequest) -> Response:
    """Answer as a Chat Completions server does, validly, from the message alone."""
    message = json.loads(json.loads(request.body)["messages"][1]["content"])
    text = json.dumps(REPLIES[message["task"]](message))
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Response(
        body=json.dumps({"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}).encode(),
        headers={"content-type": "application/json"},
    )


def open_project(folder: Path, url: str) -> Project:
    inventory = write_inventory(folder)
    config = folder / "llm.toml"
    config.write_text(f'[llm]\nprovider = "openai"\nmodel = "m"\n[llm.openai]\nbase_url = "{url}/v1"\n')
    for number in (1, 2, 3):
        (folder / f"report-{number}.md").write_text(REPORT.replace("INC-7", f"INC-{number}"))
    return Project.open(inventory.folder / "casebound.toml", llm_config=config, workspace=folder / "workspace")


def resolve_three(project: Project, folder: Path) -> list[str]:
    try:
        return [result.state for result in project.resolve([folder / f"report-{number}.md" for number in (1, 2, 3)])]
    finally:
        project.close()


def test_reports_share_a_kept_connection(tmp_path: Path) -> None:
    with Loopback() as server:
        server.answer(chat)
        project = open_project(tmp_path, server.url)
        assert resolve_three(project, tmp_path) == ["interpreted"] * 3
        assert len(server.requests) == 9
        assert len({request.connection for request in server.requests}) <= 3, "one for each stage's provider"


def test_a_notebook_whose_loop_runs_can_resolve_too(tmp_path: Path) -> None:
    async def cell() -> list[str]:
        return resolve_three(open_project(tmp_path, server.url), tmp_path)

    with Loopback() as server:
        server.answer(chat)
        assert asyncio.run(cell()) == ["interpreted"] * 3
