"""A benchmark ready to measure: its spec, with the protocol, the corpus model and the guides behind it.

Opening one imports the modules that it names, and no provider; nothing is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from casebound.bench.files import read_file
from casebound.bench.prompt import measured_protocol
from casebound.contracts.base import SAFE_NAME
from casebound.contracts.benchmark import Corpus
from casebound.errors import PluginError
from casebound.host import Host
from casebound.specs import Benchmark, PromptProtocol


@dataclass(frozen=True, slots=True)
class GuideFile:
    """A guide as it was read: `name` is its file name in a bundle."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Instrument:
    """What one measurement needs of a benchmark.

    Attributes:
        spec: as the plugin offers it.
        host: knows who offers what.
        protocol: what is measured.
        model: of the corpus.
        corpus_path: of the published corpus.
        guides: language → guide.
    """

    spec: Benchmark
    host: Host
    protocol: PromptProtocol
    model: type[Corpus]
    corpus_path: Path
    guides: Mapping[str, GuideFile]


def open_instrument(host: Host, name: str) -> Instrument:
    """Return the benchmark `name`, opened.

    Raises:
        SettingsError: nobody offers it, or its protocol (`SETTINGS_NAME`); a guide cannot be read (`BENCH_FILE`).
        PluginError: what it names does not import, or is not what it must be.
    """
    spec: Benchmark = host.need("benchmarks", name, pointer="benchmark")
    model = host.load_named("benchmarks", name, spec.corpus)
    owner = str(host.distribution_of("benchmarks", name))
    if not (isinstance(model, type) and issubclass(model, Corpus)):
        raise PluginError("PLUGIN_OFFER", where=owner, found=spec.corpus, expected="a subclass of Corpus")
    protocol = measured_protocol(spec, host)
    guides = {}
    for guide in spec.guides:
        if not re.fullmatch(SAFE_NAME, guide.language) or guide.language in guides:
            raise PluginError("PLUGIN_OFFER", where=owner, found=f"a guide in the language {guide.language!r}")
        suffix = PurePosixPath(guide.file).suffix
        guides[guide.language] = GuideFile(
            f"guide.{guide.language}{suffix}", read_file(shipped_file(guide.file, owner))
        )
    return Instrument(spec, host, protocol, model, shipped_file(spec.corpus_file, owner), guides)


def shipped_file(named: str, owner: str) -> Path:
    """Return where the file `"package:path/in/it"` is. Raises `PluginError`, naming `owner`, without such a package."""
    package, _, inner = named.partition(":")
    try:
        spec = find_spec(package)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise PluginError("PLUGIN_OFFER", where=owner, found=f"no package {package}", expected="package:path/in/it")
    return Path(next(iter(spec.submodule_search_locations))) / inner
