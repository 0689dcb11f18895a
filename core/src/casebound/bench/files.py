"""Reading the files of a benchmark: bytes first, then strict JSON; every refusal names the file and the place."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

from casebound.errors import SettingsError
from casebound.store.write import read_given
from casebound.strict_json import JsonError, parse_json

MOST_BYTES = 64 << 20


def read_file(path: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        SettingsError: `BENCH_FILE`: there is none, it is no regular file, it cannot be read, or it is too large.
    """
    try:
        return read_given(path, most_bytes)
    except ValueError as exc:
        raise _refusal(path, "no path that a system takes") from exc
    except OSError as exc:
        raise _refusal(path, exc.strerror or "it cannot be read") from exc


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
