"""Reading the files of a benchmark: bytes first, then strict JSON; every refusal names the file and the place."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import Any

from casebound.errors import SettingsError
from casebound.strict_json import JsonError, parse_json

MOST_BYTES = 64 << 20
# A pipe must not keep a reader waiting.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        SettingsError: `BENCH_FILE`: there is none, it is no regular file, it cannot be read, or it is too large.
    """
    try:
        descriptor = os.open(path, _READ)
    except ValueError as exc:
        raise _refusal(path, "no path that a system takes") from exc
    except OSError as exc:
        raise _refusal(path, os.strerror(exc.errno or 0)) from exc
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refusal(path, "no regular file")
        if status.st_size > most_bytes:
            raise _refusal(path, f"more than {most_bytes} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(status.st_size + 1)
    except OSError as exc:
        raise _refusal(path, os.strerror(exc.errno or 0)) from exc
    finally:
        os.close(descriptor)
    if len(data) > status.st_size:
        raise _refusal(path, "a file that is still being written")
    return data


def read_json(path: Path, data: bytes) -> Any:  # noqa: ANN401  # any JSON value
    """Return the one strict JSON value that `data`, the bytes of `path`, holds.

    Raises:
        SettingsError: `BENCH_FILE`, with the pointer or the line of what is wrong.
    """
    if data.startswith(codecs.BOM_UTF8):
        raise _refusal(path, "a byte-order mark before the JSON; save the file as UTF-8 without one")
    try:
        return parse_json(data)
    except JsonError as exc:
        found = f"{exc.reason}, {exc.where}" if exc.where else exc.reason
        raise SettingsError("BENCH_FILE", path=str(path), pointer=exc.pointer or None, found=found) from exc


def _refusal(path: Path, found: str) -> SettingsError:
    return SettingsError("BENCH_FILE", path=str(path), found=found)
