"""The names in a package that this process holds alone: each folder is listed once, and a new file is added.

A case that is under way asks some fifty times whether a file is there, and each answer follows from the listings. What
others put there meanwhile is not seen; where such a name is created, the file system refuses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

_Listing: TypeAlias = dict[str, bool]  # by name: whether it is a folder; a link is none


class Names:
    """What stands below an open folder.

    Args:
        open_folder: opens a folder by its path, for its descriptor; raises `FileNotFoundError` where there is none.
    """

    def __init__(self, open_folder: Callable[[str], AbstractContextManager[int]]) -> None:
        self._open = open_folder
        self._listings: dict[str, _Listing] = {}

    def within(self, folder: str) -> _Listing:
        """Return the names in a folder; none where it does not exist. Raises `OSError`, and as `open_folder`."""
        if folder not in self._listings:
            self._listings[folder] = self._listed(folder)
        return self._listings[folder]

    def __contains__(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in self.within(folder)

    def files(self, walk: Callable[[str], Iterable[str]], folder: str = "") -> Iterator[str]:
        """Yield the path of whatever stands below a folder and is none; `walk` does so for one that is not listed."""
        for name, is_folder in self.within(folder).items():
            path = f"{folder}/{name}" if folder else name
            if not is_folder:
                yield path
            elif path in self._listings:
                yield from self.files(walk, path)
            else:
                yield from walk(path)

    def add(self, path: str) -> None:
        """Add a file that was created, with the folders on the way."""
        folder, _, name = path.rpartition("/")
        self.within(folder)[name] = False
        while folder:
            folder, _, name = folder.rpartition("/")
            if self.within(folder).get(name):
                return  # then so are those above it
            self.within(folder)[name] = True

    def _listed(self, folder: str) -> _Listing:
        if folder:
            above, _, name = folder.rpartition("/")
            if name not in self.within(above):
                return {}
        try:
            with self._open(folder) as opened, os.scandir(opened) as entries:
                return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except FileNotFoundError:
            return {}
