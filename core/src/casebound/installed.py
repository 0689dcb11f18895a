"""Which plugins are installed: the entry points of the group `casebound`, read from the folders of `sys.path`.

`importlib.metadata` would do the same, at half a millisecond a distribution and the price of its import; a command that
only lists plugins shall not pay for every library of the environment. Same rules: the first folder that has a
distribution wins, and an entry point's value is `package.module` or `package.module:attribute`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GROUP = "casebound"


@dataclass(frozen=True, slots=True, order=True)
class Installed:
    """One entry point, and the distribution that it came with."""

    name: str
    value: str
    distribution: str
    version: str


def installed_plugins(folders: Iterable[str] | None = None) -> tuple[Installed, ...]:
    """Return the entry points of the group, sorted by name, then distribution.

    Args:
        folders: where to look; None: `sys.path`. What is not a folder (or cannot be read) is passed over.
    """
    seen: set[str] = set()
    found: list[Installed] = []
    for folder in dict.fromkeys(sys.path if folders is None else folders):
        for metadata in _metadata_folders(folder or "."):
            points = _group(_text(os.path.join(metadata, "entry_points.txt")))
            # The folder's own name says which distribution it is, as an installer spells it.
            key = _normalized(os.path.basename(metadata).rpartition(".")[0].partition("-")[0])
            if key in seen:
                continue
            seen.add(key)
            if points:
                name, version = _identity(metadata)
                found.extend(Installed(point, value, name, version) for point, value in points)
    return tuple(sorted(found))


def _metadata_folders(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return
    for name in names:
        yield os.path.join(folder, name)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _group(text: str) -> list[tuple[str, str]]:
    """Return the names and values of our group in an `entry_points.txt`."""
    section, points = "", []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and line and line[0] not in "#;":
            name, equals, value = line.partition("=")
            if equals:
                points.append((name.strip(), value.partition("[")[0].strip()))
    return points


def _identity(metadata: str) -> tuple[str, str]:
    """Return name and version from the head of `METADATA` (or of an older `PKG-INFO`)."""
    head = (_text(os.path.join(metadata, "METADATA")) or _text(os.path.join(metadata, "PKG-INFO"))).partition("\n\n")[0]
    fields = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in head.splitlines())}
    return fields.get("name", os.path.basename(metadata)), fields.get("version", "unknown")


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
