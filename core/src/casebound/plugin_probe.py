"""Load one plugin in this process and write what it offers: `doctor` runs it apart, because a plugin may hang or crash.

Run as `python -P -m casebound.plugin_probe ANSWER NAME VALUE DISTRIBUTION VERSION`; ANSWER is the file that is written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from casebound.canonical import canonical_bytes
from casebound.errors import PluginError
from casebound.host import build_host
from casebound.installed import Installed


def probe(answer: Path, point: Installed) -> None:
    """Load the plugin of `point` and write names, error and traceback to `answer`, as one JSON object."""
    host = build_host(entry_points=[point])
    error = None
    try:
        host.references  # noqa: B018  # compiles every pattern, which listing plugins does not
        host.index("protocols")  # nor does it ask for these two
        host.index("validators")
    except PluginError as exc:
        error = str(exc)
    info = next(plugin for plugin in host.plugins if plugin.name == point.name)
    offers = {kind: list(names) for kind, names in info.offers.items()}
    answer.write_bytes(canonical_bytes({"offers": offers, "error": info.error or error, "traceback": info.traceback}))


if __name__ == "__main__":
    probe(Path(sys.argv[1]), Installed(*sys.argv[2:6]))
