"""What the tests of whole commands share: a model server with the wire format of a real provider, and a project."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from casebound.testing.loopback import Response
from casebound.testing.many_cases import ManyCases, settings_for
from casebound.testing.model_server import ModelServer, Wire

LLM = """\
[llm]
provider = "openai"
model = "test-model"
timeout_s = {timeout_s}
[llm.openai]
base_url = "{url}/v1"
"""


def user(body: bytes) -> str:
    return json.loads(body)["messages"][1]["content"]


def envelope(text: str) -> Response:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return Response(body=json.dumps({"choices": [choice], "usage": usage}).encode())


CHAT = Wire(user, envelope)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is a file system of its own, of four megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture(scope="session")
def make_server() -> Callable[[], ModelServer]:
    """Make a model server with the wire format of a real provider."""
    return lambda: ModelServer(CHAT, stumbles=["stumbling"])


@pytest.fixture(scope="session")
def settings_of() -> Callable[..., str]:
    """Return the settings of the project with such a server."""
    return settings


Opened = Callable[..., tuple[ManyCases, ModelServer]]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Opened]:
    """Make projects, each with a running model server of its own."""
    with ExitStack() as opened:

        def make(name: str, words: Sequence[str], **choices: object) -> tuple[ManyCases, ModelServer]:
            server = opened.enter_context(ModelServer(CHAT, stumbles=["stumbling"]))
            many = ManyCases.write(tmp_path / name, settings(server, **choices), words)
            opened.callback(many.end_all)
            return many, server

        yield make


def settings(server: ModelServer, *, timeout_s: int = 60, llm: str = "", more: str = "", database: str | None = None):
    return settings_for(LLM.format(url=server.url, timeout_s=timeout_s) + llm, more, database)
