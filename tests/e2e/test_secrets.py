"""A key that is easy to recognize, every way in which a call fails, and a search through all that is left behind.

The server says the key back wherever a server can: in bodies, headers, redirects and the model's own text. Afterwards
it stands in no file of the workspace, in nothing that a command prints (with `--debug` too), and in no message.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS
from casebound.testing.conformance.secret import CANARY
from casebound.testing.distributions import run_casebound
from casebound.testing.inventory import REPORT, write_inventory
from casebound.testing.loopback import Fault, Loopback, RecordedRequest, Response

pytest.importorskip("casebound_llm_openai")

ECHO = f"Incorrect API key provided: {CANARY}. Bearer {CANARY}, as {CANARY[:6]}\\u002d{CANARY[7:]}"
ECHO_HEADERS = {
    "x-request-id": CANARY,
    "www-authenticate": f'Bearer realm="{CANARY}"',
    "set-cookie": f"key={CANARY}",
    "location": f"http://127.0.0.1:1/?key={CANARY}",
    "x-ratelimit-remaining-requests": CANARY,
    "content-type": f"application/json; key={CANARY}",
}
ERROR = b'{"error":{"message":"' + ECHO.encode() + b'","type":"' + CANARY.encode() + b'","code":null}}'
TEXT = json.dumps(
    {"choices": [{"finish_reason": "stop", "message": {"content": f'{{"key":"{CANARY}"}} {ECHO}'}}]}
).encode()


def echoing(status: int = 200, body: bytes = ERROR, fault: Fault = Fault.NONE, **headers: str) -> Response:
    return Response(status=status, body=body, headers={**ECHO_HEADERS, **headers}, fault=fault)


FAILURES = {
    **{f"HTTP {status}": echoing(status) for status in (*CODE_OF_STATUS, 301, 302, 307, 308)},
    "an error inside success": echoing(),
    "a text with the key": echoing(body=TEXT),
    "a refusal with the key": echoing(body=TEXT.replace(b'"content"', b'"refusal"')),
    "a filtered prompt": echoing(400, ERROR.replace(b"null", b'"content_filter"')),
    "html": echoing(502, f"<html>{ECHO}</html>".encode()),
    "html with success": echoing(200, f"<html>{ECHO}</html>".encode()),
    "invalid utf-8": echoing(200, b"\xff" + ERROR),
    "half a body": echoing(200, ERROR[:-7]),
    "a key twice": echoing(200, b'{"' + CANARY.encode() + b'":1,"' + CANARY.encode() + b'":2}'),
    "another object": echoing(200, b'{"' + CANARY.encode() + b'":1}'),
    "compressed": echoing(401, gzip.compress(ERROR), **{"content-encoding": "gzip"}),
    "broken compression": echoing(200, gzip.compress(ERROR)[:-9], **{"content-encoding": "gzip"}),
    "an encoding with the key": echoing(200, ERROR, **{"content-encoding": CANARY}),
    "beyond measure": echoing(200, ERROR * 50_000),
    **{fault.value: echoing(body=TEXT, fault=fault) for fault in Fault if fault is not Fault.NONE},
}


def answer_by_report(request: RecordedRequest) -> Response:
    """Fail as the report asks that this request is about; each names its failure."""
    return next(reply for name, reply in FAILURES.items() if f"(fails: {name})" in request.body.decode())


class Trial:
    """One project whose provider has the key, and everything that its commands printed."""

    def __init__(self, folder: Path, url: str, api: str = "chat") -> None:
        self.folder = folder
        self.printed = ""
        inventory = write_inventory(folder)
        (folder / "llm.toml").write_text(
            f'[llm]\nprovider = "openai"\nmodel = "m"\ntimeout_s = 1\n[llm.retry]\nmax_retries = 0\n'
            f'[llm.openai]\nbase_url = "{url}/v1"\napi = "{api}"\napi_key_env = "TRIAL_KEY"\n'
        )
        (folder / "report.md").write_text(REPORT)
        self._settings = ["--project-config", str(inventory.folder / "casebound.toml")]
        self._settings += ["--llm-config", str(folder / "llm.toml")]
        self._workspace = ["--workspace", str(folder / "workspace")]

    def run(self, *words: str, key: str = CANARY) -> subprocess.CompletedProcess[str]:
        """Run a command with the options that it has of those of the project, and keep what it printed."""
        options = [] if words[0] == "verify" else self._settings
        options = options + ([] if words[0] in {"verify", "doctor"} else self._workspace)
        done = run_casebound([*words, *options, "--debug"], environment={"TRIAL_KEY": key})
        self.printed += done.stdout + done.stderr
        return done

    def places_of(self, secret: str) -> Iterator[str]:
        """Yield where the secret stands, as it is or in base64."""
        forms = (secret.encode(), base64.b64encode(secret.encode())[:-4])
        if any(form in self.printed.encode() for form in forms):
            yield "printed"
        for path in self.folder.rglob("*"):
            if any(form in str(path).encode() or (path.is_file() and form in path.read_bytes()) for form in forms):
                yield str(path.relative_to(self.folder))


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback(canary=CANARY) as loopback:
        yield loopback


@pytest.mark.faults
@pytest.mark.spec("A-018")
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_no_failure_leaves_the_key_anywhere(tmp_path: Path, server: Loopback, api: str) -> None:
    server.answer(answer_by_report)
    trial = Trial(tmp_path, server.url, api)
    reports = {}
    for number, name in enumerate(FAILURES, start=1):
        report = REPORT.replace("INC-7", f"INC-{number}").rstrip() + f"\n\nIt failed again (fails: {name}).\n"
        reports[str(tmp_path / f"report-{number:02}.md")] = name
        (tmp_path / f"report-{number:02}.md").write_text(report)
    done = trial.run("resolve", *reports, "--format", "json")
    lines = {reports[line["report"]]: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines.keys() == FAILURES.keys()
    assert not [name for name, line in lines.items() if line["state"] == "interpreted"]
    assert not [name for name, line in lines.items() if not list(Path(line["package"]).rglob("outcome.json"))]
    assert {request.canary_in for request in server.requests} == {("authorization",)}
    assert list(trial.places_of(CANARY)) == []


def test_every_command_after_a_failure_keeps_the_key_to_itself(tmp_path: Path, server: Loopback) -> None:
    server.answer(FAILURES["HTTP 401"])
    trial = Trial(tmp_path, server.url)
    line = json.loads(trial.run("resolve", str(tmp_path / "report.md"), "--format", "json").stdout)
    assert line["code"] == "LLM_AUTH"
    assert "[key]" in line["error"]
    commands = {
        ("show", "INC-7"): (0, "LLM_AUTH"),
        ("explain", "INC-7"): (0, "LLM_AUTH"),
        ("verify", line["package"]): (1, "is unfinished; what is there holds"),
        ("doctor",): (0, "model of plan: openai m"),
        ("resolve", str(tmp_path / "report.md")): (1, "LLM_AUTH"),
    }
    for words, (status, told) in commands.items():
        done = trial.run(*words)
        assert done.returncode == status, done.stderr
        assert told in done.stdout
    assert list(trial.places_of(CANARY)) == []


@pytest.mark.parametrize("key", [f"{CANARY} x", f"{CANARY}\x07", f"{CANARY}é", f"{CANARY}\r\nx"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(
    tmp_path: Path, server: Loopback, key: str
) -> None:
    trial = Trial(tmp_path, server.url)
    done = trial.run("resolve", str(tmp_path / "report.md"), key=key)
    assert (done.returncode, server.requests) == (2, [])
    assert list(trial.places_of(CANARY)) == []


def test_nobody_listening_leaves_the_key_nowhere(tmp_path: Path, server: Loopback) -> None:
    trial = Trial(tmp_path, server.url)
    server.close()
    line = json.loads(trial.run("resolve", str(tmp_path / "report.md"), "--format", "json").stdout)
    assert line["code"] == "LLM_UNAVAILABLE"
    assert list(trial.places_of(CANARY)) == []


def test_the_search_finds_what_it_looks_for(tmp_path: Path, server: Loopback) -> None:
    trial = Trial(tmp_path, server.url)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a").write_bytes(b"\xff" + CANARY.encode())
    (tmp_path / "workspace" / "b").write_bytes(base64.b64encode(CANARY.encode()))
    trial.printed = f"Bearer {CANARY}"
    assert sorted(trial.places_of(CANARY)) == ["printed", "workspace/a", "workspace/b"]
