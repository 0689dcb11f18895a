"""A plugin that fails, exits, or answers with rubbish while a case runs: it is named, and nothing else is hurt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.testing.distributions import run_casebound, write_distribution
from casebound.testing.inventory import REPORT, Inventory, settings_text, write_inventory
from casebound.testing.inventory_command import install_inventory

SOURCE = """\
from casebound.contracts.case import Report
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import ModelReply, NativeReply
from casebound.errors import ProviderError
from casebound.hookspecs import hookimpl
from casebound.settings_model import Table
from casebound.specs import Phase, ProviderSpec, ReportReader, Validator
from casebound.testing.inventory_model import InventoryModel

def endless(*arguments):
    return endless(*arguments)

def leave(*arguments):
    print("loud")
    raise SystemExit(0)

def fail(*arguments):
    raise KeyError("not shown: hunter2")

class Settings(Table):
    pass

class Provider(InventoryModel):
    def __init__(self, settings):
        super().__init__()
        {init}

    async def send(self, request):
        native = await super().send(request)
        {send}
        return native

    def read(self, native):
        reply = super().read(native)
        {read}
        return reply

def read(text):
    {reader}
    return Report(body=text)

def check(reply, context):
    {check}
    return []

def phase(package):
    {phase}

@hookimpl
def casebound_providers():
    return [ProviderSpec("hostile", settings=__name__ + ":Settings", factory=__name__ + ":Provider")]

@hookimpl
def casebound_readers():
    return [ReportReader("odd", (".odd",), __name__ + ":read")]

@hookimpl
def casebound_validators():
    return [Validator("plan", "ODD", 1, check, always=True)]

@hookimpl
def casebound_phases():
    return [Phase("odd-phase", after="interpretation", run=__name__ + ":phase")]
"""
PLACES = ("init", "send", "read", "reader", "check", "phase")


class Hostile:
    def __init__(self, folder: Path) -> None:
        self.plugins = install_inventory(folder / "plugins")
        settings = settings_text().replace('provider = "scripted"', 'provider = "hostile"')
        self.inventory: Inventory = write_inventory(folder / "project", settings=settings)
        (self.inventory.folder / "other.odd").write_text(REPORT.replace("INC-7", "8"), encoding="utf-8")

    def behave(self, **lines: str) -> None:
        source = SOURCE
        for place in PLACES:
            source = source.replace(f"{{{place}}}", lines.get(place, "pass"))
        for old in self.plugins.glob("casebound_hostile*"):
            if old.is_file():
                old.unlink()
        if not list(self.plugins.glob("casebound_hostile*")):
            write_distribution(self.plugins, "casebound-hostile", source)
        (self.plugins / "casebound_hostile.py").write_text(source, encoding="utf-8")

    def run(self, *arguments: str):
        return run_casebound(
            arguments,
            plugins=self.plugins,
            cwd=self.inventory.folder,
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
        )

    def resolve(self, *reports: str):
        done = self.run("resolve", *(reports or ("report.md",)), "--format", "json")
        return done, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("send", "endless()"),
        ("send", "leave()"),
        ("read", "fail()"),
        ("check", "leave()"),
        ("phase", "leave()"),
        ("reader", "leave()"),
    ],
)
def test_a_plugin_that_fails_while_a_case_runs_is_named_and_the_next_case_goes_on(
    hostile: Hostile, place: str, what: str
) -> None:
    hostile.behave(**{place: what})
    done, lines = hostile.resolve("other.odd", "report.md")
    assert done.returncode == 1 if place == "reader" else done.returncode != 0, done.stderr
    assert [line["report"] for line in lines] == ["other.odd", "report.md"], done.stderr
    failed = [line for line in lines if line["code"] == "PLUGIN_BROKEN"]
    assert len(failed) == (1 if place == "reader" else 2)
    names = {"check": "validator ODD/1", "phase": "phase odd-phase", "reader": "reader odd"}
    for line in failed:
        assert names.get(place, f"provider hostile, {place}") in line["error"]
        assert "hunter2" not in line["error"]
    assert "Traceback" not in done.stderr
    hostile.behave()
    _, lines = hostile.resolve("other.odd", "report.md")
    assert [(line["state"], line["code"]) for line in lines] == [("interpreted", None)] * 2


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("send", "return None"),
        ("send", "return NativeReply(200, 'text')"),
        ("send", "return NativeReply(200, b'{}', {'a': '\\ud800'})"),
        ("send", "return NativeReply(200, b'{}', {}, 1.5)"),
        ("read", "return None"),
        ("read", "return ModelReply(text='\\ud800', finish_reason='stop')"),
        ("check", "return None"),
        ("check", "return ['no finding']"),
    ],
)
def test_a_value_that_no_artifact_can_hold_is_the_plugins_fault(hostile: Hostile, place: str, line: str) -> None:
    hostile.behave(**{place: line})
    done, [result] = hostile.resolve()
    assert result["code"] in ("PLUGIN_BROKEN", "PLUGIN_OFFER"), done.stderr
    assert ("validator ODD/1" if place == "check" else "provider hostile") in result["error"]
    hostile.behave()
    assert hostile.resolve()[1][0]["state"] == "interpreted"


def test_a_provider_that_cannot_be_made_is_named_before_anything_is_written(hostile: Hostile) -> None:
    hostile.behave(init="leave()")
    done, lines = hostile.resolve()
    assert lines == []
    assert "PLUGIN_BROKEN" in done.stderr
    assert "provider hostile" in done.stderr
    assert not (hostile.inventory.folder / ".casebound").exists()


def test_what_plugins_print_is_no_part_of_an_answer(hostile: Hostile) -> None:
    loud = 'print("loud")'
    hostile.behave(**dict.fromkeys(PLACES, loud))
    done, lines = hostile.resolve("report.md", "other.odd")
    assert [line["state"] for line in lines] == ["interpreted"] * 2
    assert "loud" in done.stderr
    packages = [line["package"] for line in lines]
    verified = hostile.run("verify", *packages, "--format", "json")
    assert [json.loads(line)["answer"] for line in verified.stdout.splitlines()] == ["holds"] * 2


@pytest.mark.parametrize("place", ["reader", "check"])
def test_a_plugin_that_exits_cannot_make_verify_succeed(hostile: Hostile, place: str) -> None:
    hostile.behave()
    package = hostile.resolve("other.odd")[1][0]["package"]
    hostile.behave(**{place: "leave()"})
    done = hostile.run("verify", package, "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["answer"] == "does_not_hold"


@pytest.mark.parametrize("wish", ["float('nan')", "1e300"])
def test_an_absurd_wish_of_a_server_is_kept_within_a_calendar(hostile: Hostile, wish: str) -> None:
    hostile.behave(send=f"raise ProviderError('LLM_RATE_LIMITED', retryable=True, retry_after={wish}, found='\\ud800')")
    done, [line] = hostile.resolve()
    assert (line["state"], line["code"]) == ("retry_pending", "LLM_RATE_LIMITED"), done.stderr
