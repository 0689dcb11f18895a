"""What the tests of services share: a database of its own on each server for a module, and programs that others wrote.

Those are looked for beside the command that CASEBOUND_TEST_LLMOCK names, else in `.venv-foreign`; see
`foreign-requirements.txt`.
"""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from casebound.testing.servers import running_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mariadb():
    with running_server("mariadb") as server:
        yield server


@pytest.fixture(scope="module")
def postgresql():
    with running_server("postgresql") as server:
        yield server


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request):
    return request.getfixturevalue(request.param)


class Llmock:
    """The running server, as its own pages for tests show and steer it; a new one begins with an empty journal."""

    def __init__(self, url):
        self.url = url
        self._page("/reset", b"")

    def script(self, *more, **behavior):
        """Say how it behaves next."""
        self._page("/scenario", json.dumps({"behaviors": [behavior, *more]}).encode())

    def journal(self):
        """Return what it was sent and what it answered, in order."""
        return json.loads(self._page("/requests"))["requests"]

    def verdict(self):
        """Return how it judges its client."""
        return json.loads(self._page("/verdict"))

    def _page(self, path, posted=None):
        request = Request(f"{self.url}/_llmock{path}", posted, {"content-type": "application/json"})
        with urlopen(request, timeout=30) as page:
            return page.read()


@pytest.fixture(scope="session")
def llmock_command():
    """The program llmock."""
    named = os.environ.get("CASEBOUND_TEST_LLMOCK") or str(ROOT / ".venv-foreign" / "bin" / "llmock")
    found = shutil.which(named)
    if found is None and os.environ.get("CASEBOUND_REQUIRE_SERVICES") == "1":
        pytest.fail(f"no llmock at {named}: install tests/services/foreign-requirements.txt there")
    if found is None:
        pytest.skip(f"no llmock at {named} (tests/services/foreign-requirements.txt)")
    return found


@pytest.fixture(scope="session")
def foreign_python(llmock_command):
    """The interpreter that has the vendors' own packages."""
    return str(Path(llmock_command).parent / "python")


@pytest.fixture(scope="module")
def running_llmock(llmock_command):
    """The address of a running llmock."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [llmock_command, "serve", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"},
    )
    try:
        said = []
        for line in server.stdout:
            said.append(line)
            if "Uvicorn running" in line:
                break
        else:
            pytest.fail("llmock ended before it listened: " + "".join(said))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()  # it holds nothing, and would first wait for the reply that it still delays
        server.communicate()


@pytest.fixture
def llmock(running_llmock):
    """The same, with an empty journal."""
    return Llmock(running_llmock)


@pytest.fixture(scope="session")
def no_model():
    """What a test calls that finds no local model: it skips, or fails where everything has to run."""

    def leave(reason):
        if os.environ.get("CASEBOUND_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return leave


@pytest.fixture(scope="session")
def model_key():
    """The key that the local model's server asks for."""
    return "canary-local-model-key"


@pytest.fixture(scope="module")
def model(model_key, no_model):
    """The address of a running server with a real small model that asks for `model_key`."""
    spec = importlib.util.spec_from_file_location("script_local_model", ROOT / "scripts" / "local_model.py")
    local_model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(local_model)
    try:
        with local_model.running(model_key) as url:
            yield url
    except local_model.NoModel as exc:
        no_model(str(exc))
