"""Real names, real reports: the offline rules on the whole data, the same on SQLite and MariaDB, scored.

The rules are generic; no report's name stands in them. The bounds are those that the project promises.
"""

import json
import os
import runpy
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from casebound.api import Project
from casebound_catalog_vcore.testing import find_test_data, load_csv_world, reports_as_files

pytestmark = [pytest.mark.realdata, pytest.mark.services]

ROOT = Path(__file__).resolve().parents[2]
MARIADB = os.environ.get("CASEBOUND_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/?charset=utf8mb4")
TYPES = ("creature", "quest", "gameobject", "item")


@pytest.fixture(scope="module")
def data():
    found = find_test_data(os.environ, ROOT)
    if found is None:
        pytest.skip("no real data: set CASEBOUND_TEST_DATA")
    return found


@pytest.fixture(scope="module")
def mariadb_url(data):
    """A database of its own, loaded by an administrator, read by an account that may only SELECT."""
    name = f"casebound_{uuid.uuid4().hex[:12]}"
    admin = sa.create_engine(MARIADB)
    try:
        connection = admin.connect()
    except sa.exc.OperationalError:
        pytest.skip("no MariaDB: set CASEBOUND_TEST_MARIADB_URL")
    url = sa.make_url(MARIADB)
    with connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
        connection.execute(sa.text(f"CREATE USER {name}@'%' IDENTIFIED BY '{name}'"))
        connection.execute(sa.text(f"GRANT SELECT ON {name}.* TO {name}@'%'"))
        try:
            load_csv_world(data / "vcore", url.set(database=name).render_as_string(hide_password=False))
            yield url.set(database=name, username=name, password=name).render_as_string(hide_password=False)
        finally:
            connection.execute(sa.text(f"DROP DATABASE {name}"))
            connection.execute(sa.text(f"DROP USER {name}@'%'"))


@pytest.fixture(scope="module")
def sqlite_url(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("world") / "world.db"
    load_csv_world(data / "vcore", f"sqlite:///{path}")
    return f"sqlite:///{path}"


def resolve_all(url, folder, data, monkeypatch, more=""):
    """Resolve every development report against `url` with all catalogs, and return the results in order."""
    monkeypatch.setenv("CASEBOUND_TEST_WORLD_URL", url)
    tables = [f"{kind}_template{suffix}" for kind in TYPES for suffix in ("", "_locale")]
    catalogs = [f"vcore.{kind}{suffix}" for kind in TYPES for suffix in ("", "_locale")]
    (folder / "casebound.toml").write_text(
        "\n".join(
            [
                '[project]\nname = "real-names"',
                '[database]\nurl_env = "CASEBOUND_TEST_WORLD_URL"\nsnapshot_id = "vcore-tbc"',
                f"tables = {json.dumps(tables)}",
                f"[entity_resolution]\nmax_searches = 40\ncatalogs = {json.dumps(catalogs)}",
                '[enrichment]\nrules = ["vcore.creature", "vcore.quest"]',
                '[llm]\nprovider = "offline"',
                more,
            ]
        )
    )
    project = Project.open(folder / "casebound.toml", workspace=folder / "workspace")
    reports = reports_as_files(data / "reports-dev.jsonl", folder / "reports")
    return [replace(result, report=Path(result.report).name) for result in project.resolve(reports)]


@pytest.fixture(scope="module")
def results(data, sqlite_url, mariadb_url, tmp_path_factory):
    monkeypatch = pytest.MonkeyPatch()
    try:
        yield {
            name: resolve_all(url, tmp_path_factory.mktemp(name), data, monkeypatch)
            for name, url in (("sqlite", sqlite_url), ("mariadb", mariadb_url))
        }
    finally:
        monkeypatch.undo()


@pytest.mark.spec("A-007", "A-065")
def test_every_real_report_is_interpreted(results):
    for name, found in results.items():
        assert {result.state for result in found} == {"interpreted"}, name


def answers(found, *keys):
    return [{key: result.to_json()[key] for key in ("report", "entities", *keys)} for result in found]


def test_both_databases_give_the_same_entities_and_the_same_open_identities(results):
    assert answers(results["sqlite"], "unresolved") == answers(results["mariadb"], "unresolved")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_resolution_protocol_finds_the_same_entities(results, version, data, sqlite_url, tmp_path, monkeypatch):
    """The rules are told less before protocol 4; nothing is lost by it on these reports."""
    found = resolve_all(sqlite_url, tmp_path, data, monkeypatch, f"[protocols]\nresolution = {version}")
    assert answers(found) == answers(results["sqlite"])


@pytest.mark.spec("A-036")
def test_precision_and_recall_hold_without_a_wrong_certainty(results, data, capsys):
    scorer = runpy.run_path(str(data.parent / "tools" / "score.py"))
    gold = scorer["load"](data / "reports-dev.jsonl")
    total, categories, _ = scorer["score"](gold, [result.to_json() for result in results["sqlite"]])
    figures = scorer["figures"](total)
    with capsys.disabled():
        print("\ntotal", figures)
        for name, category in sorted(categories.items()):
            print(f"  {name:22}", scorer["figures"](category))
    assert figures["precision"] >= 0.80
    assert figures["recall_main"] >= 0.50
    assert figures["wrong_certainty"] == 0


@pytest.mark.spec("A-118", "A-151c", "A-157i")
def test_no_name_or_id_of_a_report_stands_in_the_code(data):
    """The embedded sample and the tests may name what they show; the program may not."""
    words = set()
    for line in (data / "reports-dev.jsonl").read_text("utf-8").splitlines():
        for entity in json.loads(line)["gold"]:
            words |= {str(entity["id"])} if len(str(entity["id"])) >= 5 else set()  # 4096 is a number like any other
            words |= {text for text in (entity["name"], entity["mention"]) if " " in text}
    folders = [ROOT / "core" / "src", *(ROOT / "plugins").glob("*/src")]
    allowed = ("sample", "demo.py", "settings_text.py")  # the embedded sample, and the comments that point at it
    found = [
        (str(path.relative_to(ROOT)), word)
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if not any(part in allowed for part in (*path.parts, path.name))
        for word in words
        if word in path.read_text("utf-8")
    ]
    assert found == []
