"""The `casebound` program. What needs no command line parser is answered before one is imported."""

from __future__ import annotations

import os
import sys

from casebound import __version__


def main() -> int:
    """Run the program with the arguments of the process; return its exit status."""
    _open_missing_streams()
    if sys.argv[1:2] == ["--version"]:
        sys.stdout.write(f"casebound {__version__}\n")
        return 0
    from casebound.cli.program import run

    return run(sys.argv[1:])


def _open_missing_streams() -> None:
    """Put nowhere in the place of a standard stream that was closed before the program began (`>&-`).

    Else the next file that is opened gets its descriptor, and whoever writes to the stream fails with an error that is
    none of the case's.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:  # 0 to 2 are those of the three streams
        pass
    os.close(nowhere)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # as long as the process


if __name__ == "__main__":
    sys.exit(main())
