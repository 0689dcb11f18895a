"""Opt-in: look-ups and one whole case against an operator's own database, read by an account that may only SELECT.

CASEBOUND_TEST_PROJECT_CONFIG names a casebound.toml; CASEBOUND_TEST_CASE_PACKAGE a package that is built and not yet
interpreted, of a report that names something which the first catalog holds. These are integration tests: the replies
are fixtures, so they prove queries, provenance and lifecycle, and say nothing about the quality of a model.
"""

import asyncio
import json
import os
import shutil
from collections import deque
from pathlib import Path

import pytest
import sqlalchemy as sa
from casebound.api import Project, verify
from casebound.contracts.case import Case
from casebound.engine import Engine
from casebound.pipeline import Pipeline
from casebound.settings import database_url
from casebound.store import Workspace
from casebound.testing.scripted import ScriptedProvider

pytestmark = pytest.mark.services
LABEL = "integration: fixture replies, no quality score"


def variable(name):
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set")
    return Path(value)


@pytest.fixture
def project():
    return Project.open(variable("CASEBOUND_TEST_PROJECT_CONFIG"))


@pytest.fixture
def source(project):
    source = Engine(project.bound, project.clock, None).source()
    yield source
    source.close()


@pytest.mark.spec("A-114", "A-021")
def test_the_operators_account_can_read_and_nothing_else(project):
    engine = sa.create_engine(database_url(project.settings).reveal())
    table = project.bound.catalogs[0].table
    with engine.connect() as connection:
        assert connection.execute(sa.text(f"SELECT COUNT(*) FROM {table}")).scalar_one() > 0
        with pytest.raises(sa.exc.DBAPIError):
            connection.execute(sa.text(f"DELETE FROM {table}"))


@pytest.mark.spec("A-114", "A-026", "A-027", "A-028")
def test_look_ups_on_the_operators_database_are_captured_with_binding_and_coverage(project, source):
    catalogs = [source.freeze_catalog(catalog) for catalog in project.bound.catalogs]
    first = source.look_up_all([(catalogs[0], "e")], 3)[0]
    name = first.rows[0][first.columns.index(catalogs[0].name_column)]
    captures = source.look_up_all([(catalog, name) for catalog in catalogs], 8)
    assert captures[0].matched >= 1
    for capture in captures:
        assert capture.binding.snapshot_id == project.settings.database.snapshot_id
        assert capture.limits.max_candidates == 8
        assert name not in capture.statement


@pytest.mark.spec("A-115", "A-116", "A-117", "A-147d")
def test_a_built_package_is_resolved_with_fixture_replies(project, tmp_path, capsys):
    given = variable("CASEBOUND_TEST_CASE_PACKAGE")
    folder = tmp_path / "workspace" / "cases" / given.name
    shutil.copytree(given, folder)
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    package = workspace.package(given.name)
    case = package.load("case.json", Case)
    catalog = project.bound.catalogs[0]
    source_id, name = known_name(project, case, catalog)
    plan = {
        "searches": [
            {
                "catalog": catalog.name,
                "term": name,
                "role": "affected_subject",
                "source_ids": [source_id],
                "reason": LABEL,
            }
        ]
    }
    provider = Answering(plan)
    engine = Engine(project.bound, project.clock, None, dict.fromkeys(project.bound.stages, provider))
    progress = asyncio.run(Pipeline(engine).advance(package))
    assert progress.state == "interpreted", progress
    assert [call.stage for call in provider.calls] == ["plan", "assessment", "interpretation"]
    selected = json.loads(package.read("analysis/interpretations/0001/entity-resolution/assessment.json"))["reply"]
    entity = selected["resolutions"][0]["entity"]
    assert entity is not None
    assert entity["id"] not in json.dumps(plan), "the database supplies the id, not the fixture"
    assert verify(folder).answer == "holds"
    with capsys.disabled():
        print(f"\n{LABEL}: {entity['type']} {entity['id']}")


def known_name(project, case, catalog):
    """Return a readable source of the case and a name of the first catalog that stands in it."""
    engine = sa.create_engine(database_url(project.settings).reveal())
    query = sa.text(f"SELECT {catalog.name_column} FROM {catalog.table}")
    with engine.connect() as connection:
        names = sorted({row[0] for row in connection.execute(query) if row[0]}, key=len, reverse=True)
    texts = [(source.id, case.text_of(source)) for source in case.sources if source.kind != "markup"]
    for name in names:
        for source_id, text in texts:
            if name in text and sum(name.lower() in other.lower() for other in names) <= 4:
                return source_id, name
    pytest.fail("no name of the first catalog stands in the report")


class Answering(ScriptedProvider):
    """Gives the plan as a fixture; the other replies follow from what the request itself offers."""

    def __init__(self, plan):
        super().__init__({"plan": [plan]})

    async def send(self, request):
        if request.stage != "plan":
            self._left[request.stage] = deque([self.answer(request)])
        return await super().send(request)

    def answer(self, request):
        user = json.loads(request.user)
        if request.stage == "assessment":
            return {"resolutions": [self.resolution(table) for table in user["candidates"]]}
        said = {"text": LABEL, "source_ids": [user["sources"][0]["id"]]}
        return {
            "summary": said,
            "observed_behavior": [],
            "expected_behavior": [],
            "behavior_gap": None,
            "first_known_divergence": None,
            "described_behavior": [],
            "provisional_behavior_gap": None,
            "relevant_entities": [self.retained(entity) for entity in user["entities"] if entity["selected"]],
            "unknowns": [],
        }

    def resolution(self, table):
        return {
            "search_index": table["search_index"],
            "status": "selected",
            "entity": {"type": table["entity_type"], "id": table["rows"][0][0]},
            "role": table["role"],
            "reason": LABEL,
            "source_ids": [table["capture"], table["mentions"][0]],
        }

    def retained(self, entity):
        facts = [binding["fact"] for binding in entity["name_bindings"][:1]]
        return {
            "entity_id": entity["id"],
            "reason": LABEL,
            "source_ids": [entity["mentions"][0], entity["id"], *facts],
        }
