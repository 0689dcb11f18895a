"""What the guides show runs, and what they promise to programs is what a program gets."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import casebound
import click
import pytest
from casebound.binding import bind, bind_stage
from casebound.cli.program import program
from casebound.errors import REFUSALS
from casebound.host import build_host
from casebound.llm.limits import MOST_PAUSE_S
from casebound.prices import Prices
from casebound.progress import State
from casebound.rehearsal import Rehearsal
from casebound.settings import LlmProfile, load_settings
from casebound.settings_model import FALLBACK_CODES, Budget, Limits, Llm, LlmChoice
from casebound.specs import CORE_STAGES
from casebound.spending import FRAME_TOKENS
from casebound.testing.distributions import plugins_in, run_casebound, write_distribution
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_command import behave, calls, install_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.workspace.forecast import Forecast
from casebound.workspace.importing import ImportSummary
from casebound.workspace.outcome import RunSummary

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guide"
RELEASED_WITH_CORE = ROOT / "plugins" / "entity_link"  # it drives conversations itself, as the guide says


def examples(guide: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (GUIDES / guide).read_text(encoding="utf-8"), re.DOTALL)


def test_the_smallest_plugin_offers_what_the_guide_says(tmp_path, monkeypatch):
    (project,) = examples("plugin.md", "toml")
    assert '[project.entry-points.casebound]\ninventory = "casebound_inventory"' in project
    write_distribution(tmp_path, "casebound-inventory", examples("plugin.md", "python")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "casebound_inventory", raising=False)
    host = build_host(entry_points=plugins_in(tmp_path))
    (info,) = [plugin for plugin in host.plugins if plugin.name == "inventory"]
    assert info.error is None
    assert info.offers == {"catalogs": ("inventory.host",), "references": ("inventory.host_id",), "roles": ("gateway",)}
    assert host.references[0].compiled().search("see host 12")["id"] == "12"


def test_the_suite_of_the_guide_passes(tmp_path):
    (tmp_path / "test_echo_conformance.py").write_text(examples("plugin.md", "python")[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b1[0-9] passed", done.stdout)


def test_the_commands_about_replies_run_as_the_guide_shows_them(tmp_path):
    project = write_inventory(tmp_path / "project", settings=behave("answer"))
    plugins = install_inventory(tmp_path / "plugins")
    shown = [line for block in examples("replies.md", "") for line in block.splitlines()]
    assert {line.split()[1] for line in shown} == {"record", "resolve", "rehearse"}
    for line in ["casebound resolve report.md", *shown]:
        done = run_casebound(line.split()[1:], plugins=plugins, cwd=project.folder)
        assert (done.returncode, line) == (0, line), done.stderr
    answer = json.loads(done.stdout)
    assert keys(answer["stages"][0]["attempts"][0]) == {
        "attempt": None,
        "recorded": {"outcome": None, "code": None, "findings": None},
        "rehearsed": {"outcome": None, "code": None, "findings": None},
    }
    for stage in answer["stages"]:
        assert set(re.findall(r'"(\w+)"', (GUIDES / "replies.md").read_text(encoding="utf-8"))) >= set(stage)
    assert len(calls(project.folder)) == 3  # only the first command asked anybody


def keys(value: object) -> object:
    """Return the keys of JSON data with those of its parts; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {key: keys(part) for key, part in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value else None


def test_a_line_of_resolve_has_the_keys_of_the_guide(tmp_path):
    (shown,) = examples("programs.md", "json")
    searches = [("inventory.host", name, "context") for name in ("edge-proxy-canary", "mail-relay")]
    report = "---\nid: INC-7\n---\nThe edge-proxy-canary is silent, and so is mail-relay.\n"
    inventory = write_inventory(tmp_path, report=report)
    line = inventory.resolve(InventoryModel(searches)).to_json()
    assert keys(json.loads(shown)) == keys(line)


def test_the_settings_of_the_guide_on_providers_mean_what_it_says(tmp_path):
    path = tmp_path / "casebound.toml"
    (shown,) = examples("providers.md", "toml")
    path.write_text('[project]\nname = "p"\n' + shown, encoding="utf-8")
    settings, host = load_settings(path), build_host()
    stages = {stage: bind_stage(settings, host, stage) for stage in CORE_STAGES}
    for stage, first in {
        "plan": "openai small",
        "assessment": "openai large",
        "interpretation": "openai large",
    }.items():
        assert [one.name for one in stages[stage].answerers] == [first, "openai qwen", "offline"]
    assert stages["plan"].fallback_codes == FALLBACK_CODES
    assert stages["plan"].answerers[1].settings.model_dump()["api_key_env"] is None
    text = (GUIDES / "providers.md").read_text(encoding="utf-8")
    assert [key for key in LlmProfile.model_fields if key != "provider_tables" and f"`{key}`" not in text] == []


def test_the_settings_of_the_guide_on_budgets_hold_and_its_forecast_has_the_keys_of_one(tmp_path):
    path = tmp_path / "casebound.toml"
    (shown,) = examples("budget.md", "toml")
    path.write_text('[project]\nname = "p"\n' + shown, encoding="utf-8")
    settings, host = load_settings(path), build_host()
    prices = Prices(bind(settings, host))
    prices.require()
    assert prices.price_of("plan", "openai", "small") != prices.price_of("interpretation", "openai", "large")
    (foretold,) = map(json.loads, examples("budget.md", "json"))
    assert set(foretold) == set(Forecast().to_json())
    for part in ("next_requests", "at_most"):
        assert set(foretold[part]) == set(Forecast().to_json()[part])
    assert set(foretold["limits"]) <= {*Budget.model_fields, "max_dispatches"}


def test_the_guide_on_budgets_names_what_the_program_counts_by():
    text = (GUIDES / "budget.md").read_text(encoding="utf-8")
    assert f"schema, and {FRAME_TOKENS} |" in text
    assert [code for code in REFUSALS if f"`{code}`" not in text] == []
    assert MOST_PAUSE_S == 600
    assert "at most ten minutes" in text
    assert [key for key in Limits.model_fields if key not in text] == []


def imported(code: str) -> set[str]:
    """Return everything of casebound's own that `code` imports, by its full name."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if f"{name}.".startswith("casebound.")}


def test_plugins_and_guides_import_only_what_the_guide_calls_public():
    text = (GUIDES / "programs.md").read_text(encoding="utf-8")
    listing = text.partition("Plugins may also rely on")[2].partition("All others")[0]
    public = [f"casebound.{name}" for name in (*re.findall(r"`([\w.]+)`", listing), *casebound.__all__)]
    own = [path for path in ROOT.glob("plugins/*/src/**/*.py") if RELEASED_WITH_CORE not in path.parents]
    sources = [path.read_text(encoding="utf-8") for path in own]
    shown = [example for guide in GUIDES.glob("*.md") for example in examples(guide.name, "python")]
    names = set().union(*map(imported, (*sources, *shown)))
    assert len(names) > 20
    assert sorted(name for name in names if not any(f"{name}.".startswith(f"{one}.") for one in public)) == []


def test_the_guide_names_the_keys_of_a_rehearsal():
    (row,) = re.findall(r"^\| `rehearse` \| (.*)$", (GUIDES / "programs.md").read_text(encoding="utf-8"), re.MULTILINE)
    rehearsal = Rehearsal(package="", case_id="", what_if=False, stages=())
    assert re.findall(r'"(\w+)"', row) == list(rehearsal.to_json())


def test_the_guide_lists_every_public_name():
    listed = re.findall(r"^\| `(\w+)", (GUIDES / "programs.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(casebound.__all__) <= set(listed)


def test_the_guide_names_every_state():
    text = (GUIDES / "package.md").read_text(encoding="utf-8")
    assert [state for state in get_args(State) if f"`{state}`" not in text] == []


def test_the_table_of_files_knows_every_file_of_a_package():
    """A golden package has them all: corrections, an error of the server that was waited for, resolution."""
    text = (GUIDES / "package.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text.partition("## States")[0], re.MULTILINE)
    named = " ".join(rows) + " " + " ".join(re.findall(r"every model call: (.*) \|", text))
    package = ROOT / "tests" / "golden" / "packages" / "0.1.0" / "4-6" / "package"
    names = {re.sub(r"[0-9]{4}", "NNNN", path.name) for path in package.rglob("*") if path.is_file()}
    names = {"source/report" if name.startswith("report.") else name for name in names}
    unnamed = [
        name for name in sorted(names) if name not in named and not name.startswith("sha256-") and name != "NNNN.json"
    ]
    assert unnamed == []
    assert "events/NNNN.json" in named


def test_the_guide_lists_the_keys_of_a_stage_and_those_it_does_not_take():
    text = (GUIDES / "providers.md").read_text(encoding="utf-8")
    listed, _, not_taken = text.partition("They take ")[2].partition(";")[0].partition(", not ")
    keys = set(LlmChoice.model_fields) - {"provider_tables"}
    assert set(re.findall(r"`([a-z_]+)`", listed)) == keys
    assert set(re.findall(r"`([a-z_]+)`", not_taken)) == set(Llm.model_fields) - keys - {
        "provider_tables",
        "stage",
        "profile",
    }


def test_the_guide_has_a_row_for_each_version_of_both_counters():
    text = (GUIDES / "package.md").read_text(encoding="utf-8").partition("## Protocols")[2].partition("\n## ")[0]
    host = build_host()
    for counter, stage in (("resolution", "plan"), ("interpretation", "interpretation")):
        table = text.partition(f"| {counter} |")[2].partition("\n\n")[0]
        versions = {version for of, version in host.protocols if of == stage and 0 < version < 1000}
        assert {int(number) for number in re.findall(r"^\| ([0-9]+) \|", table, re.MULTILINE)} == versions


def commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield all commands of core by what one types."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        elif command is not None:
            yield f"{prefix}{name}", command


def test_the_guide_for_programs_names_every_command_that_answers_them():
    """Those of `bench` stand in the guide on benchmarks."""
    text = (GUIDES / "programs.md").read_text(encoding="utf-8")
    answering = [name for name, command in commands(program) if any("--format" in one.opts for one in command.params)]
    assert len(answering) > 15
    assert [name for name in answering if f"`{name}`" not in text and not name.startswith("bench ")] == []


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("import", ImportSummary().to_json()),
        ("run", RunSummary({}, 0, 0, 0, 0, 0, 0, None, None, (), 0, error="…", is_priced=True).to_json()),
        ("run --dry-run", Forecast().to_json()),
    ],
)
def test_the_guide_for_programs_names_every_key(command, answer):
    (row,) = re.findall(
        rf"^\| `{command}` \| (.*)$", (GUIDES / "programs.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [key for key in answer if f'"{key}"' not in row and f"`{key}`" not in row] == []
