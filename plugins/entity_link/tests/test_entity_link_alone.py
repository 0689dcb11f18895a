"""Production knows no benchmark: the journal owns calls, decisions and recovery, and works where none is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, pkgutil, sys
import casebound_entity_link
for module in pkgutil.iter_modules(casebound_entity_link.__path__):
    importlib.import_module(f"casebound_entity_link.{module.name}")
print([name for name in sys.modules if "bench" in name and name.startswith("casebound")])
"""


@pytest.mark.spec("B-007b")
def test_no_module_of_the_plugin_imports_a_benchmark():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.spec("B-007b")
def test_the_journal_works_where_no_benchmark_is_installed(pair):
    link = pair.propose()
    pair.journal().decide(link.name, "accepted", rationale="looked at it", by="Kim")
    assert pair.project().host.benchmarks == {}
    assert pair.verify(link).answer == "holds"
