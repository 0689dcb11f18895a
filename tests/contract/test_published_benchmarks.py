"""A published corpus or guide never changes by a byte: what is wrong in it stays until there is a new version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from casebound.bench.instrument import open_instrument
from casebound.canonical import digest_of
from casebound.host import build_host

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "benchmarks"
HOST = build_host()


@pytest.mark.parametrize("name", HOST.benchmarks)
def test_corpus_and_guides_are_the_published_bytes_of_their_version(name):
    instrument = open_instrument(HOST, name)
    pages = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob(f"{name}-v*.json"))]
    published = {version: files for page in pages for version, files in json.loads(page).items()}
    spec = instrument.spec
    corpus = published[spec.versions.corpus]
    assert corpus == {spec.corpus_file.partition(":")[2]: digest_of(instrument.corpus_path.read_bytes())}
    guides = {guide.file.partition(":")[2]: instrument.guides[guide.language] for guide in spec.guides}
    assert published[spec.versions.guide] == {path: digest_of(guide.data) for path, guide in guides.items()}
