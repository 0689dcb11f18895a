"""How long `verify` takes, beside reading and writing the same JSON once; prints one JSON object a package.

    python bench/verify.py [PACKAGE...]

`verify` replays a completed case: each step is derived again, and bytes are compared. Without packages the demo's is
made in a temporary folder, and the golden ones of every pair of protocol versions follow. Both sides run in this
process, warm, in turn; the least of all rounds counts, in CPU seconds and in seconds of the wall.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from casebound.host import Host, build_host
from casebound.verification import verify_package
from turns import least

ROUNDS = 60
GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "packages"


def measure(root: Path, host: Host, *, rounds: int = ROUNDS) -> dict[str, object]:
    """Return the least time of `verify_package`, that of parsing and dumping every JSON file, and their ratio."""
    documents = [path.read_bytes() for path in sorted(root.rglob("*.json"))]

    def read_and_write() -> None:
        for document in documents:
            json.dumps(json.loads(document), sort_keys=True)

    answer = verify_package(root, host).answer
    read_and_write()
    verify, json_only = least({"verify": lambda: verify_package(root, host), "json": read_and_write}, rounds)
    return {
        "answer": answer,
        "files": len(documents),
        "bytes": sum(map(len, documents)),
        "rounds": rounds,
        "verify_ms": [round(1000 * seconds, 3) for seconds in verify],
        "json_ms": [round(1000 * seconds, 3) for seconds in json_only],
        "cases_per_s": {"verify": round(1 / verify[0]), "json": round(1 / json_only[0])},
        "ratio": [round(one / other, 2) for one, other in zip(verify, json_only, strict=True)],
        "columns": ["cpu", "wall"],
    }


def demo_package(folder: Path) -> Path:
    """Make the demo's finished package in `folder` and return where it is."""
    from casebound.api import Project
    from casebound_catalog_vcore.demo import fill

    reports = fill(folder)
    results = list(Project.open(folder / "casebound.toml").resolve(reports))
    return Path(results[0].package)


def main() -> None:
    host = build_host()
    with tempfile.TemporaryDirectory() as folder:
        given = [Path(argument) for argument in sys.argv[1:]]
        roots = given or [demo_package(Path(folder)), *sorted(GOLDEN.glob("*/*/package"))]
        for root in roots:
            name = "demo" if root.is_relative_to(folder) else root.parent.name if not given else str(root)
            print(json.dumps({"package": name, **measure(root, host)}))


if __name__ == "__main__":
    main()
