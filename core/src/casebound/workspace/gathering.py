"""Which files are meant by what somebody named: files, whole folders, standard input.

Rules:
- Folders are walked in the order of their names, and no more is held than the names in the folders at hand. What counts
  in them are regular files whose ending an installed reader takes; hidden names (`.git`) and links are passed over, so
  no walk goes round in a circle, and no pipe keeps it waiting.
- The folder of the workspace itself is passed over too: what a walk makes there, it does not meet.
- What is named itself is taken whatever it is: hidden, a link, a pipe.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from casebound.errors import SettingsError

STANDARD_INPUT = "-"
_OPEN_INSIDE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_NAMED = os.O_RDONLY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import.

    Attributes:
        path: as it was named, or below the folder that was.
        is_named: whether somebody named it, and not only a folder above it.
    """

    path: str
    is_named: bool

    @contextmanager
    def open(self) -> Iterator[tuple[FileIO, bool]]:
        """Open it; yield the stream, and whether it is a regular file.

        Raises:
            OSError: it cannot be opened, or is no longer what a walk saw.
            ValueError: no system takes such a path.
        """
        if self.path == STANDARD_INPUT:
            if sys.__stdin__ is None:  # it was closed, and its number may be another file's by now
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            with open(0, "rb", buffering=0, closefd=False) as stream:
                yield stream, False
            return
        descriptor = os.open(self.path, _OPEN_NAMED if self.is_named else _OPEN_INSIDE)
        with open(descriptor, "rb", buffering=0) as file:
            yield file, stat.S_ISREG(os.fstat(descriptor).st_mode)


@dataclass(frozen=True, slots=True)
class Walk:
    """How folders are walked.

    Attributes:
        suffixes: of file names that count, lower case.
        workspace: the folder that is passed over.
        refuse: is told of each folder that cannot be read; the walk goes on.
    """

    suffixes: tuple[str, ...]
    workspace: Path
    refuse: Callable[[str, SettingsError], None]

    def sources(self, paths: Sequence[str]) -> Iterator[Source]:
        """Yield the files that `paths` (files, folders, `-`) mean, in their order."""
        for path in paths:
            if path != STANDARD_INPUT and os.path.isdir(path):
                yield from self._below(path)
            else:
                yield Source(path, is_named=True)

    def _below(self, folder: str) -> Iterator[Source]:
        waiting = [iter(self._entries(folder))]
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
            elif entry[1]:
                waiting.append(iter(self._entries(entry[0])))
            else:
                yield Source(entry[0], is_named=False)

    def _entries(self, folder: str) -> list[tuple[str, bool]]:
        """Return path and kind of what counts in a folder, sorted by name: folders (true) and files."""
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry.name, self._is_folder(entry)) for entry in entries if self._counts(entry))
        except OSError as exc:
            found = []
            self.refuse(folder, unreadable(folder, exc))
        return [(os.path.join(folder, name), is_folder) for name, is_folder in found]

    def _counts(self, entry: os.DirEntry[str]) -> bool:
        if entry.name.startswith("."):
            return False
        if self._is_folder(entry):
            return not (self.workspace.is_dir() and os.path.samefile(entry.path, self.workspace))
        return entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(self.suffixes)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        return entry.is_dir(follow_symlinks=False)


def unreadable(path: str, error: OSError | ValueError) -> SettingsError:
    """Return what a failure to read a report is to us, with the system's own words."""
    found = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return SettingsError("REPORT_UNREADABLE", path=path, found=found)


def size_of(paths: Sequence[str]) -> int | None:
    """Return how many bytes the named files hold together; None where nobody can tell, as for a folder or a pipe."""
    total = 0
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total
