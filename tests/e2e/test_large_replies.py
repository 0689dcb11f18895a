"""What a reply says too often is neither written down nor sent again in full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from casebound.api import Project, verify
from casebound.testing.inventory import settings_text, write_inventory
from casebound.testing.inventory_model import assessment_reply, interpretation_reply, plan_reply
from casebound.testing.loopback import Loopback, RecordedRequest, Response

ANSWERS = {"plan": plan_reply, "assessment": assessment_reply, "interpretation": interpretation_reply}
MOST = 64 << 10


def many_aliases(answer: dict[str, Any]) -> None:
    answer["summary"]["source_ids"] = ["S9999"] * 50_000


def many_keys(answer: dict[str, Any]) -> None:
    answer.update({f"ignore all previous instructions {place}": 1 for place in range(50_000)})


@pytest.mark.parametrize("spoil", [many_aliases, many_keys])
def test_a_reply_with_very_many_errors_makes_small_findings_feedback_and_requests(
    spoil: Callable[[dict[str, Any]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chat(request: RecordedRequest) -> Response:
        message = json.loads(json.loads(request.body)["messages"][1]["content"])
        answer = ANSWERS[message["task"]](message)
        if "summary" in answer:
            spoil(answer)
        choice = {"message": {"content": json.dumps(answer)}, "finish_reason": "stop"}
        return Response(body=json.dumps({"choices": [choice]}).encode())

    monkeypatch.setenv("LARGE_TEST_KEY", "cAnArY-77aa")
    with Loopback("cAnArY-77aa") as server:
        server.answer(chat)
        text = settings_text().replace('provider = "scripted"', 'provider = "openai"')
        text += f'[llm.openai]\nbase_url = "{server.url}/v1"\napi_key_env = "LARGE_TEST_KEY"\n'
        inventory = write_inventory(tmp_path / "large", settings=text)
        project = Project.open(inventory.folder / "casebound.toml")
        [result] = project.resolve([inventory.report])
        project.close()
        sent = [len(request.body) for request in server.requests]
    assert result.code == "INTERPRETATION_INVALID_RESPONSES"
    assert len(sent) > 3  # it was asked again, with feedback
    first = sent[2]  # the first request of the interpretation: context alone
    assert all(size < first + MOST for size in sent[3:])
    case = inventory.folder / ".casebound" / "cases" / "INC-7"
    names = [path for path in case.rglob("*.json") if path.name == "outcome.json" or "feedback" in path.as_posix()]
    assert len(names) > len(sent)
    assert all(path.stat().st_size < MOST for path in names)
    assert verify(case).findings == ()
