"""What the provider sends, beside what OpenAI's own SDK sends for the same request: key by key.

Each difference has its reason. The SDK runs in `.venv-foreign` (`foreign-requirements.txt`), against the same recorder.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("casebound_llm_openai")

from casebound.testing.loopback import Loopback, Response
from casebound.testing.scripted import model_request
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-foreign" / "bin" / "python"
ANSWER = '{"searches": []}'
ANSWERS = {
    "/v1/chat/completions": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1793520000,
        "model": "model-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
    },
    "/v1/responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1793520000,
        "status": "completed",
        "model": "model-1",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "text": ANSWER}],
            }
        ],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    },
}
SYSTEM = "Answer with JSON: Ж🜲\u2028."
USER = '{"task":"plan","text":"\\"quoted\\" \\\\ 漢字"}'

# The pydantic model of the SDK's `parse`; the schema of the other calls is what the SDK makes of it.
MODEL = """
from typing import Literal
from pydantic import BaseModel, Field

class Search(BaseModel):
    catalog: Literal["inv.host", "inv.service"]
    term: str = Field(min_length=1, max_length=40)
    rank: int | None = Field(default=None, ge=1)

class plan(BaseModel):
    searches: list[Search] = Field(max_length=4)
"""
CALLS = """
import json, sys
from openai import OpenAI
from openai.lib._pydantic import to_strict_json_schema

call, url = sys.argv[1:]
system, user = json.load(sys.stdin)
client = OpenAI(base_url=url, api_key="sk-test", organization="org-1", project="proj_1", max_retries=0)
messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
chat = dict(model="model-1", messages=messages, max_completion_tokens=64)
response = dict(model="model-1", input=messages, max_output_tokens=64, store=False)
named = {"name": "plan", "strict": True, "schema": to_strict_json_schema(plan)}
{
    "chat json_schema": lambda: client.chat.completions.create(
        **chat, response_format={"type": "json_schema", "json_schema": named}),
    "chat json_object": lambda: client.chat.completions.create(**chat, response_format={"type": "json_object"}),
    "chat text": lambda: client.chat.completions.create(**chat),
    "chat options": lambda: client.chat.completions.create(
        **chat, temperature=0, seed=7, reasoning_effort="low", extra_body={"top_k": 1}),
    "chat parse": lambda: client.chat.completions.parse(**chat, response_format=plan),
    "responses json_schema": lambda: client.responses.create(
        **response, text={"format": {"type": "json_schema", **named}}),
    "responses json_object": lambda: client.responses.create(**response, text={"format": {"type": "json_object"}}),
    "responses text": lambda: client.responses.create(**response),
    "responses options": lambda: client.responses.create(
        **response, temperature=0, reasoning={"effort": "low"}, extra_body={"top_k": 1}),
    "responses parse": lambda: client.responses.parse(**response, text_format=plan),
    "responses instructions": lambda: client.responses.create(**{**response, "input": user}, instructions=system),
}[call]()
"""

LENGTHS = "strict mode has not always taken the length of a text: it is checked here, against the full schema"
LOCAL_LENGTHS = {("$defs", "Search", "properties", "term", bound): LENGTHS for bound in ("minLength", "maxLength")}


def below(place, reasons):
    return {(*place, *pointer): reason for pointer, reason in reasons.items()}


CHAT_SCHEMA = ("response_format", "json_schema", "schema")
RESPONSE_SCHEMA = ("text", "format", "schema")
EXPLAINED = {
    "chat json_schema": below(CHAT_SCHEMA, LOCAL_LENGTHS),
    "chat json_object": {},
    "chat text": {},
    "chat options": {},
    "chat parse": {
        **below(CHAT_SCHEMA, LOCAL_LENGTHS),
        ("stream",): "`parse` says false, which is the default; `create` of the same SDK leaves it out",
    },
    "responses json_schema": below(RESPONSE_SCHEMA, LOCAL_LENGTHS),
    "responses json_object": {},
    "responses text": {},
    "responses options": {},
    "responses parse": below(RESPONSE_SCHEMA, LOCAL_LENGTHS),
    "responses instructions": {
        ("instructions",): "the same system text stands first in `input`, where JSON mode looks for the word JSON",
        ("input",): "a list of both messages in place of the user's text alone",
    },
}


def sdk(call, url):
    """Let the SDK make one call."""
    if not PYTHON.exists():
        if os.environ.get("CASEBOUND_REQUIRE_SERVICES") == "1":
            pytest.fail(f"no {PYTHON}: install tests/services/foreign-requirements.txt there")
        pytest.skip(f"no {PYTHON} (tests/services/foreign-requirements.txt)")
    subprocess.run(
        [str(PYTHON), "-c", MODEL + CALLS, call, url],
        input=json.dumps([SYSTEM, USER]),
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )


def schema_of_model():
    """The full schema, as pydantic writes it."""
    ran = subprocess.run(
        [str(PYTHON), "-c", MODEL + "import json; print(json.dumps(plan.model_json_schema()))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def ours(call, url, monkeypatch):
    monkeypatch.setenv("SDK_KEY", "sk-test")
    api, _, what = call.partition(" ")
    options = {"temperature": 0, "reasoning_effort": "low", "body": {"top_k": 1}} if what == "options" else {}
    if call == "chat options":
        options["seed"] = 7
    settings = OpenAISettings(
        api=api, base_url=url, api_key_env="SDK_KEY", organization="org-1", project="proj_1", **options
    )
    schema = what in {"json_schema", "parse"}
    request = model_request(
        provider="openai",
        system=SYSTEM,
        user=USER,
        response_format="json_schema" if schema else what if what == "json_object" else "text",
        response_schema=schema_of_model() if schema else {},
    )
    provider = OpenAIProvider(settings)

    async def once():
        await provider.send(request)
        await provider.aclose()

    asyncio.run(once())


def differences(one, other, place=()):
    """Yield the place of every value that only one of the two has, or that they do not share."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key in one and key in other:
                yield from differences(one[key], other[key], (*place, key))
            else:
                yield (*place, key)
    elif one != other:
        yield place


@pytest.fixture
def recorder():
    with Loopback() as server:
        for path, answer in ANSWERS.items():
            server.answer(Response(body=json.dumps(answer).encode()), path=path)
        yield server


@pytest.mark.parametrize("call", EXPLAINED)
def test_the_body_is_that_of_the_sdk_but_for_what_is_explained(call, recorder, monkeypatch):
    sdk(call, f"{recorder.url}/v1")
    ours(call, f"{recorder.url}/v1", monkeypatch)
    theirs_sent, ours_sent = recorder.requests
    assert (ours_sent.method, ours_sent.path, ours_sent.query) == (
        theirs_sent.method,
        theirs_sent.path,
        theirs_sent.query,
    )
    found = set(differences(json.loads(ours_sent.body), json.loads(theirs_sent.body)))
    assert found == EXPLAINED[call].keys()


def test_the_headers_are_those_of_the_sdk_but_for_what_is_explained(recorder, monkeypatch):
    sdk("chat text", f"{recorder.url}/v1")
    ours("chat text", f"{recorder.url}/v1", monkeypatch)
    theirs_sent, ours_sent = (sent.headers for sent in recorder.requests)
    explained = {
        "user-agent": "each says who it is",
        "accept-encoding": "no compression is asked for, so that a limit of bytes is one",
        "connection": "HTTP/1.1 keeps connections anyway",
        "content-length": "the SDK writes its JSON without blanks",
        "x-stainless-*": "the SDK tells its maker about itself, and about the machine",
    }
    found = set(differences(dict(ours_sent), dict(theirs_sent)))
    names = {"x-stainless-*" if name.startswith("x-stainless-") else name for (name,) in found}
    assert names <= explained.keys()
    assert {"authorization", "openai-organization", "openai-project", "accept", "content-type"} <= ours_sent.keys()
