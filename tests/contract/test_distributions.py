"""Every distribution of the workspace is named, laid out and found by one rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomli
from casebound.binding import bind_catalogs, bind_enrichments
from casebound.host import build_host
from casebound.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_folder_distribution_module_and_plugin_have_one_name(folder):
    project = tomli.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = folder.name.replace("_", "-")
    assert project["name"] == f"casebound-{name}"
    assert project["entry-points"]["casebound"] == {name: f"casebound_{folder.name}"}
    package = folder / "src" / f"casebound_{folder.name}"
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()
    assert (folder / "README.md").is_file()
    assert list((folder / "tests").glob("test_*.py"))


def test_every_plugin_of_the_workspace_loads_without_an_error():
    found = {info.name: info for info in build_host().plugins}
    for folder in PLUGINS:
        info = found[folder.name.replace("_", "-")]
        assert info.error is None
        assert info.offers


def test_test_files_have_names_of_their_own():
    folders = [folder for place in ("core/tests", "plugins/*/tests", "tests") for folder in ROOT.glob(place)]
    names = sorted(path.name for folder in folders for path in folder.rglob("test_*.py"))
    assert names == sorted(set(names))
    assert not [path for folder in folders for path in folder.rglob("__init__.py")]


def test_constraints_pin_exactly_and_name_no_index():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split("\n")
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+-]+", line) for line in lines if line)


# --- the example ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("A-047", "A-049", "A-055")
def test_the_example_holds_and_enables_two_catalogs_and_two_bindings():
    settings = load_settings(ROOT / "config" / "project.example.toml")
    host = build_host()
    assert settings.entity_resolution is not None
    catalogs = bind_catalogs(settings, host)
    assert [catalog.name for catalog in catalogs] == ["vcore.creature", "vcore.creature_locale"]
    rules = bind_enrichments(settings, host)
    assert [rule.name for rule in rules] == ["vcore.creature", "vcore.quest"]
    assert all(rule.name_column for rule in rules)


def test_the_example_is_the_text_that_init_writes():
    example = (ROOT / "config" / "project.example.toml").read_text(encoding="utf-8")
    assert build_host().settings_texts["catalog-vcore"] == example
