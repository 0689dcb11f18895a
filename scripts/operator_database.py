"""Prepare what CASEBOUND_TEST_PROJECT_CONFIG and CASEBOUND_TEST_CASE_PACKAGE point at, in CI: a MariaDB of real names.

usage: operator_database.py prepare FOLDER   writes FOLDER/env (KEY=VALUE lines to source) and everything it names
       operator_database.py remove FOLDER    drops the database and its account

The account that the settings use may only SELECT. The package is built and not interpreted: no model is ever asked.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import uuid
from pathlib import Path

import sqlalchemy as sa
from casebound.api import Project
from casebound_catalog_vcore.testing import find_test_data, load_csv_world

ROOT = Path(__file__).resolve().parents[1]
MARIADB = os.environ.get("CASEBOUND_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/?charset=utf8mb4")
SETTINGS = """\
[project]
name = "operator"

[database]
url_env = "CASEBOUND_TEST_OPERATOR_URL"
snapshot_id = "operator-1"
tables = ["creature_template", "creature_template_locale", "quest_template"]

[entity_resolution]
catalogs = ["vcore.creature", "vcore.creature_locale", "vcore.quest"]

[enrichment]
rules = ["vcore.quest", "vcore.creature"]

[llm]
provider = "offline"
"""
REPORT = """\
---
id: operator-report
title: A quest does not end
---

The giver of quest {quest} does nothing. I stood before {name} for an hour.
"""


def prepare(folder: Path) -> None:
    """Load the names, make the account, write settings and a report, and build its package."""
    data = find_test_data(os.environ, ROOT)
    if data is None:
        raise SystemExit("no real data: set CASEBOUND_TEST_DATA")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"casebound_{uuid.uuid4().hex[:12]}"
    url = sa.make_url(MARIADB)
    with sa.create_engine(MARIADB).connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))
        connection.execute(sa.text(f"CREATE USER {name}@'%' IDENTIFIED BY '{name}'"))
        connection.execute(sa.text(f"GRANT SELECT ON {name}.* TO {name}@'%'"))
    (folder / "name").write_text(name)
    load_csv_world(data / "vcore", url.set(database=name).render_as_string(hide_password=False))
    with sa.create_engine(url.set(database=name)).connect() as connection:
        quest = connection.execute(sa.text("SELECT MAX(ID) FROM quest_template")).scalar_one()
        creature = connection.execute(
            sa.text("SELECT name FROM creature_template WHERE CHAR_LENGTH(name) > 12 ORDER BY entry LIMIT 1")
        ).scalar_one()
    operator = url.set(database=name, username=name, password=name).render_as_string(hide_password=False)
    os.environ["CASEBOUND_TEST_OPERATOR_URL"] = operator
    config = folder / "casebound.toml"
    config.write_text(SETTINGS)
    report = folder / "report.md"
    report.write_text(REPORT.format(quest=quest, name=creature))
    project = Project.open(config, workspace=folder / "workspace")
    result = next(iter(project.resolve([report], stop_after="construction")))
    variables = {
        "CASEBOUND_TEST_OPERATOR_URL": operator,
        "CASEBOUND_TEST_PROJECT_CONFIG": str(config),
        "CASEBOUND_TEST_CASE_PACKAGE": str(result.package),
    }
    (folder / "env").write_text("".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items()))
    print(json.dumps({"state": result.state, "folder": str(folder)}))


def remove(folder: Path) -> None:
    """Drop the database and the account."""
    name = (folder / "name").read_text()
    with sa.create_engine(MARIADB).connect() as connection:
        connection.execute(sa.text(f"DROP DATABASE IF EXISTS {name}"))
        connection.execute(sa.text(f"DROP USER IF EXISTS {name}@'%'"))


if __name__ == "__main__":
    {"prepare": prepare, "remove": remove}[sys.argv[1]](Path(sys.argv[2]))
