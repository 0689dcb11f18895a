"""The `casebound` program. What needs no command line parser is answered before one is imported."""

from __future__ import annotations

import sys

from casebound import __version__


def main() -> int:
    """Run the program with the arguments of the process; return its exit status."""
    if sys.argv[1:2] == ["--version"]:
        sys.stdout.write(f"casebound {__version__}\n")
        return 0
    from casebound.cli.program import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
