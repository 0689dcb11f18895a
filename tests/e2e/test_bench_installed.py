"""The identity of a whole installation: a copy elsewhere is the same measurement, one changed byte of it is another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
from casebound.bench.identity import measurement_id
from casebound.bench.instrument import open_instrument
from casebound.bench.measurement import Sources, freeze_measurement
from casebound.bench.trees import find_distribution
from casebound.canonical import canonical_bytes, digest_of
from casebound.host import build_host

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = {
    "casebound": "casebound",
    "casebound-entity-link": "casebound_entity_link",
    "casebound-bench-entity-link": "casebound_bench_entity_link",
    "jsonschema": "jsonschema",
    "pydantic": "pydantic",
    "pydantic-core": "pydantic_core",
}
# Measures what is installed, then again for each file that is one byte longer, then as it was.
DRIVER = """
import json, os, sys
from datetime import UTC, datetime
from pathlib import Path
from casebound.bench.identity import differing_parts
from casebound.bench.instrument import open_instrument
from casebound.bench.measurement import Sources, freeze_measurement
from casebound.host import build_host

def measure():
    instrument = open_instrument(build_host(), "entity-link")
    return freeze_measurement(instrument, Sources(repository=Path(sys.argv[1])), datetime.now(UTC)).identity

def replace(path, data):
    Path("new").write_bytes(data)  # a loaded library keeps its old file
    os.replace("new", path)

first, found = measure(), {}
for path in sys.argv[2:]:
    data = Path(path).read_bytes()
    replace(path, data + b"\\n")
    found[path] = differing_parts(first, measure())
    replace(path, data)
assert measure() == first
print(json.dumps({"first": first.to_json(), "found": found}))
"""
CHANGED = {
    "casebound_bench_entity_link/corpora/entity-link-review-v1.json": ["corpus"],
    "casebound_bench_entity_link/guides/entity-link.en.md": ["guides"],
    "casebound_bench_entity_link/guides/entity-link.zh.md": ["guides"],
    "casebound_bench_entity_link/checker.py": ["checker"],
    "casebound_bench_entity_link/corpus.py": ["checker"],
    "casebound/bench/checks.py": ["checker", "production"],
    "casebound/bench/receipts.py": ["checker", "production"],
    "casebound/canonical.py": ["checker", "production"],
    "casebound/host.py": ["production"],
    "casebound/py.typed": ["production"],
    "casebound_entity_link/rules.py": ["production"],
    "casebound_entity_link/protocol_v1.py": ["production"],
    "jsonschema/validators.py": ["validators"],
    "pydantic/main.py": ["validators"],
    "pydantic_core/core_schema.py": ["validators"],
    "casebound METADATA": ["declarations", "production"],
    "casebound-bench-entity-link METADATA": ["declarations"],
    "repository/constraints.txt": ["declarations"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A copy of what takes part, laid out as wheels are, with other times and with caches."""
    folder = tmp_path_factory.mktemp("a place of its own")
    for distribution, package in BUNDLED.items():
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, folder / package, copy_function=shutil.copyfile)
        found = find_distribution(distribution)
        info = f"{distribution.replace('-', '_')}-{found.version}.dist-info"
        shutil.copytree(str(found.locate_file(info)), folder / info)
        (folder / info / "RECORD").write_text(f"{package}/__init__.py,,\n{info}/METADATA,,\n")
        (folder / info / "INSTALLER").write_text("another")
    (folder / "pydantic" / "__pycache__").mkdir(exist_ok=True)
    (folder / "pydantic" / "__pycache__" / "left.pyc").write_bytes(b"\0")
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (folder / "repository").mkdir()
    shutil.copyfile(ROOT / "constraints.txt", folder / "repository" / "constraints.txt")
    return folder


def path_of(site: Path, name: str) -> str:
    distribution, _, file = name.partition(" ")
    return str(next(site.glob(f"{distribution.replace('-', '_')}-*.dist-info")) / file) if file else str(site / name)


@pytest.mark.spec("B-084", "B-085", "B-086", "B-087", "B-088", "B-089", "B-092")
def test_a_copied_installation_is_the_same_measurement_until_one_byte_of_any_part_changes(site):
    paths = {path_of(site, name): parts for name, parts in CHANGED.items()}
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, "repository", *paths],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    instrument = open_instrument(build_host(), "entity-link")
    here = freeze_measurement(instrument, Sources(repository=ROOT), datetime.now(UTC)).identity
    assert answer["first"] == here.to_json()
    assert digest_of(canonical_bytes(answer["first"])) == measurement_id(here)
    assert answer["found"] == paths
