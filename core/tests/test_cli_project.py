"""`init`, `doctor`, `protocols` and `catalogs`, as a user types them."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from casebound.binding import bind
from casebound.cli.common import print_table
from casebound.errors import CaseboundError
from casebound.host import build_host
from casebound.project_start import NEUTRAL_TEXT
from casebound.settings import load_settings
from casebound.testing.distributions import plugins_in, run_casebound, write_distribution

PLUGIN = """
from casebound.hookspecs import hookimpl
from casebound.specs import *

@hookimpl
def casebound_providers():
    return [ProviderSpec("offline", settings="casebound_quiet:Settings", factory="casebound_quiet:Quiet")]

@hookimpl
def casebound_catalogs():
    host = Catalog("inv.host", "host", "hosts", "id", "fqdn", ("id", "fqdn", "os", "gone"), preset=True)
    return [CatalogOffer((host,), settings_text={text!r})]

def __getattr__(name):
    from pydantic import BaseModel, ConfigDict
    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        fail: bool = False
    class Quiet:
        def __init__(self, settings):
            if settings.fail:
                raise ValueError("no such key mysql://u:hunter22@h/d")
        async def aclose(self):
            pass
    return {{"Settings": Settings, "Quiet": Quiet}}[name]
"""
SETTINGS = """
[project]
name = "inventory"
plugins = ["quiet"]
[database]
url = "sqlite:///hosts.db"
snapshot_id = "s"
tables = ["hosts"]
[entity_resolution]
max_candidates = 2
[[entity_resolution.catalog]]
name = "own.host"
entity_type = "host"
table = "hosts"
id_column = "id"
name_column = "fqdn"
columns = ["id", "fqdn", "os"]
[llm]
provider = "offline"
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    write_distribution(folder, "casebound-quiet", PLUGIN.format(text=None))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "casebound.toml").write_text(SETTINGS)
    with sqlite3.connect(folder / "hosts.db") as database:
        database.execute("CREATE TABLE hosts (id INTEGER PRIMARY KEY, fqdn TEXT, os TEXT)")
        rows = [(1, "db1.example", "linux"), (2, "DB10.example", None), (3, "db100.example", "bsd"), (4, "a%b", "x")]
        database.executemany("INSERT INTO hosts VALUES (?, ?, ?)", rows)
    database.close()
    return folder


def test_init_writes_the_neutral_text_once(tmp_path, plugins):
    folder = tmp_path / "new" / "deep"
    done = run_casebound(["init", str(folder), "--from", "none"], plugins=plugins)
    path = folder / "casebound.toml"
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert path.read_text() == NEUTRAL_TEXT
    assert [entry.name for entry in folder.iterdir()] == ["casebound.toml"]
    path.write_text("mine")
    again = run_casebound(["init", str(folder), "--from", "none"], plugins=plugins)
    assert again.returncode == 2
    assert again.stderr.startswith("SETTINGS_FILE: ")
    assert path.read_text() == "mine"


def test_the_neutral_text_holds_and_so_does_what_it_only_suggests(tmp_path, plugins, monkeypatch):
    monkeypatch.syspath_prepend(str(plugins))
    path = tmp_path / "casebound.toml"
    host = build_host(entry_points=plugins_in(plugins))
    path.write_text(NEUTRAL_TEXT)
    assert bind(load_settings(path), host).catalogs == ()
    head, _, suggested = NEUTRAL_TEXT.partition("put your names in.\n#\n")
    path.write_text(
        head + "\n" + "\n".join(line.removeprefix("#").removeprefix(" ") for line in suggested.splitlines())
    )
    assert [catalog.name for catalog in bind(load_settings(path), host).catalogs] == ["my.host"]


def test_init_writes_a_plugins_text_and_asks_where_there_are_several(tmp_path):
    plugins = tmp_path / "plugins"
    write_distribution(plugins, "casebound-quiet", PLUGIN.format(text="# one\n"))
    other = PLUGIN.format(text="# two\n").replace("offline", "other").replace("inv.host", "other.host")
    write_distribution(plugins, "casebound-other", other)
    done = run_casebound(["init", str(tmp_path / "a")], plugins=plugins)
    assert done.returncode == 2
    assert "other" in done.stderr
    assert not (tmp_path / "a").exists()
    done = run_casebound(["init", str(tmp_path / "a"), "--from", "other"], plugins=plugins)
    assert (done.returncode, (tmp_path / "a" / "casebound.toml").read_text()) == (0, "# two\n")


def test_init_into_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    done = run_casebound(["init", str(tmp_path / "file" / "x"), "--from", "none"])
    assert done.returncode == 2
    assert done.stderr.startswith("SETTINGS_FILE: ")


def test_doctor_passes_a_sound_project(plugins, project):
    done = run_casebound(["doctor", "--format", "json"], plugins=plugins, cwd=project)
    assert done.returncode == 0, done.stdout
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["database"]["detail"] == "sqlite hosts.db, snapshot s"
    assert checks["model of plan"]["detail"] == "offline, not contacted: a call may cost money"
    assert {f"model of {stage}" for stage in ("plan", "assessment", "interpretation")} < set(checks)
    text = run_casebound(["doctor"], plugins=plugins, cwd=project)
    assert (text.returncode, "FAILED" in text.stdout) == (0, False)


def test_doctor_names_everybody_who_may_be_asked_and_builds_them(plugins, project):
    fallback = 'provider = "offline"\nfallback = ["spare"]\n[llm.profile.spare]\nmodel = "spare-1"\n'
    (project / "casebound.toml").write_text(SETTINGS.replace('provider = "offline"', fallback))
    done = run_casebound(["doctor", "--format", "json"], plugins=plugins, cwd=project)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["model of plan"]["detail"].startswith("offline, then offline spare-1, not contacted")
    broken = f"{fallback}[llm.profile.spare.offline]\nfail = true\n"
    (project / "casebound.toml").write_text(SETTINGS.replace('provider = "offline"', broken))
    done = run_casebound(["doctor", "--format", "json"], plugins=plugins, cwd=project)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, checks["model of plan"]["status"]) == (1, "failed")


@pytest.mark.parametrize(
    ("old", "new", "name", "said"),
    [
        ("sqlite:///hosts.db", "sqlite:///none.db", "database", "no such file: none.db"),
        ('"fqdn", "os"]', '"fqdn", "colour"]', "database", "SETTINGS_COLUMN"),
        ("snapshot_id", "snapshot", "settings", "SETTINGS_KEY"),
        ('tables = ["hosts"]', 'tables = ["other"]', "names in the settings", "SETTINGS_TABLE"),
        ('plugins = ["quiet"]', 'plugins = ["quit"]', "plugins together", "SETTINGS_NAME"),
        ('provider = "offline"', 'provider = "offline"\n[llm.offline]\nfail = true', "model of plan", "ValueError"),
    ],
)
def test_doctor_names_what_is_wrong(plugins, project, old, new, name, said):
    assert old in SETTINGS
    (project / "casebound.toml").write_text(SETTINGS.replace(old, new))
    done = run_casebound(["doctor", "--format", "json"], plugins=plugins, cwd=project)
    assert done.returncode == 1
    failed = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "failed"]
    assert failed[0]["name"] == name
    assert said in failed[0]["detail"]
    assert "hunter22@" not in done.stdout


def test_a_failure_of_every_stage_is_told_once(plugins, project):
    text = SETTINGS.replace('provider = "offline"', 'provider = "offline"\n[llm.offline]\nfail = true')
    (project / "casebound.toml").write_text(text)
    done = run_casebound(["doctor"], plugins=plugins, cwd=project)
    assert done.stdout.count("PLUGIN_BROKEN") == 1
    assert "FAILED  model of interpretation: the same as model of plan" in done.stdout


def test_core_alone_says_where_a_provider_comes_from(tmp_path):
    host = build_host(entry_points=[])
    (tmp_path / "casebound.toml").write_text(NEUTRAL_TEXT)
    with pytest.raises(CaseboundError) as caught:
        bind(load_settings(tmp_path / "casebound.toml"), host)
    assert caught.value.hint.startswith("no provider is installed")
    root = Path(__file__).parents[2]
    for path in re.findall(r"[\w./]+\.md|plugins/\w+", f"{caught.value.hint} {NEUTRAL_TEXT}"):
        assert (root / path).exists(), path


def test_no_cell_of_a_table_is_cut_on_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    name = "inventory.a_catalog_with_a_long_name"
    print_table(("name", "entity type", "table"), [[name, "host", "table_of_hosts_and_more"]])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert {len(line) for line in shown.splitlines() if line.startswith("│")} == {40}
    columns = zip(*(line.split("│")[1:4] for line in shown.splitlines() if line.startswith("│")), strict=True)
    assert name in ["".join(cell.strip() for cell in column) for column in columns]


def test_doctor_tells_which_tables_do_not_exist(plugins, project):
    (project / "casebound.toml").write_text(SETTINGS.replace('tables = ["hosts"]', 'tables = ["hosts", "racks"]'))
    done = run_casebound(["doctor"], plugins=plugins, cwd=project)
    assert (done.returncode, "warn    tables: the database has no table racks" in done.stdout) == (0, True)
    with sqlite3.connect(project / "hosts.db") as database:
        database.execute("DROP TABLE hosts")
    database.close()
    done = run_casebound(["doctor"], plugins=plugins, cwd=project)
    assert done.returncode == 1
    assert "FAILED  tables: the database has no table hosts, which is used" in done.stdout
    assert "warn    tables: the database has no table racks" in done.stdout


def test_protocols_are_listed_for_programs_and_people(tmp_path):
    done = run_casebound(["protocols", "--format", "json"], plugins=tmp_path)
    rows = json.loads(done.stdout)["protocols"]
    assert all(set(row) == {"stage", "version", "distribution", "draft", "default"} for row in rows)
    defaults = {row["stage"]: row["version"] for row in rows if row["default"]}
    assert defaults["plan"] == defaults["assessment"]
    assert {"plan", "assessment", "interpretation"} <= set(defaults)
    text = run_casebound(["protocols"], plugins=tmp_path).stdout
    assert any(line.split() == ["plan", "4", "casebound", "default"] for line in text.splitlines())


def test_catalogs_are_listed_with_those_in_use(plugins, project):
    done = run_casebound(["catalogs", "list", "--format", "json"], plugins=plugins, cwd=project)
    rows = {row["name"]: row for row in json.loads(done.stdout)["catalogs"]}
    assert rows["own.host"] == {
        "name": "own.host",
        "entity_type": "host",
        "table": "hosts",
        "offered_by": "settings",
        "active": True,
    }
    assert (rows["inv.host"]["active"], rows["inv.host"]["offered_by"]) == (False, "casebound-quiet 1.0")


@pytest.mark.parametrize("command", [["list"], ["search", "own.host", "db1"]])
def test_a_file_for_the_model_that_is_not_there_is_not_passed_over(plugins, project, command):
    arguments = ["catalogs", *command, "--llm-config", "missing.toml"]
    done = run_casebound(arguments, plugins=plugins, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("SETTINGS_FILE: ")
    assert "missing.toml" in done.stderr


@pytest.mark.spec("A-023", "A-053", "A-059")
def test_a_look_up_by_hand_is_the_look_up_of_a_plan(plugins, project):
    done = run_casebound(["catalogs", "search", "own.host", "dB1", "--format", "json"], plugins=plugins, cwd=project)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == [
        {"id": "1", "name": "db1.example", "os": "linux"},
        {"id": "2", "name": "DB10.example", "os": None},
    ]
    assert (found["matched"], found["truncated"]) == (3, True)
    assert "SELECT" in found["statement"]
    # A preset that the settings do not name can be looked at, as long as its table is allowed.
    done = run_casebound(["catalogs", "search", "inv.host", "%", "--format", "json"], plugins=plugins, cwd=project)
    assert json.loads(done.stdout)["rows"] == [{"id": "4", "name": "a%b", "os": "x"}]
    text = run_casebound(["catalogs", "search", "own.host", ".*"], plugins=plugins, cwd=project)
    assert (text.returncode, text.stdout.split(), text.stderr) == (0, ["id", "name", "os"], "0 matched\n")


def test_a_look_up_that_cannot_be_done_is_never_an_empty_answer(plugins, project):
    wrong = run_casebound(["catalogs", "search", "own.hots", "x"], plugins=plugins, cwd=project)
    assert (wrong.returncode, "own.host" in wrong.stderr) == (2, True)
    (project / "hosts.db").unlink()
    gone = run_casebound(["catalogs", "search", "own.host", "x", "--format", "json"], plugins=plugins, cwd=project)
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr.startswith("SETTINGS_DATABASE: ")
    assert str(project / "casebound.toml") in gone.stderr
    assert not (project / "hosts.db").exists()
