"""Write the demo's golden anew: `python scripts/demo_golden.py`. Read the diff before it is committed."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

from casebound.testing.distributions import run_casebound

TEST = Path(__file__).parents[1] / "tests" / "e2e" / "test_demo.py"


def main() -> None:
    """Run the demo in a folder that goes away and keep its explanation."""
    test = runpy.run_path(str(TEST))
    with tempfile.TemporaryDirectory() as folder:
        done = run_casebound(["demo", "--workspace", folder])
        assert done.returncode == 0, done.stderr
        explained = run_casebound(["explain", "brewfest-wolpertinger", *test["options"](Path(folder))])
        assert explained.returncode == 0, explained.stderr
    test["GOLDEN"].parent.mkdir(parents=True, exist_ok=True)
    test["GOLDEN"].write_bytes(test["without_digests"](explained.stdout).encode())


if __name__ == "__main__":
    main()
