"""Opening folders below a root, never through a link; the check is made on what was opened, not on the string."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from casebound.errors import SettingsError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_FOLDER = (errno.ELOOP, errno.ENOTDIR)


class Folders:
    """The folders below a root, by their parts.

    While they are kept, each is opened once and stays open: a case that is under way opens the same few folders some
    thousand times.

    Args:
        root: the uppermost folder.
        private: what is made below it is for its owner alone, whatever the umask permits.
    """

    def __init__(self, root: Path, *, private: bool = False) -> None:
        self.root = root
        self.file_mode, self._folder_mode = (0o600, 0o700) if private else (0o666, 0o777)
        self._kept: dict[tuple[str, ...], int] | None = None

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Keep every folder open that is opened in the block."""
        if self._kept is not None:
            yield
            return
        self._kept = {}
        try:
            yield
        finally:
            for descriptor in self._kept.values():
                os.close(descriptor)
            self._kept = None

    @contextmanager
    def open(self, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
        """Open the folder `parts` below the root and yield its descriptor.

        Raises:
            SettingsError: a component, or the root itself, is a link or no folder (`WORKSPACE_LINK`).
            FileNotFoundError: it does not exist and `create` is off.
            OSError: it cannot be opened or made.
        """
        if self._kept is not None:
            yield self._descriptor(self._kept, tuple(parts), create)
            return
        opened: dict[tuple[str, ...], int] = {}
        try:
            yield self._descriptor(opened, tuple(parts), create)
        finally:
            for descriptor in opened.values():
                os.close(descriptor)

    def _descriptor(self, opened: dict[tuple[str, ...], int], parts: tuple[str, ...], create: bool) -> int:
        if parts not in opened:
            if not parts:
                opened[parts] = open_below(None, os.fspath(self.root), self.root, ())
            else:
                above = self._descriptor(opened, parts[:-1], create)
                opened[parts] = (
                    _made_below(above, parts, self.root, self._folder_mode)
                    if create
                    else open_below(above, parts[-1], self.root, parts)
                )
        return opened[parts]


def _made_below(above: int, parts: Sequence[str], root: Path, mode: int) -> int:
    try:
        return open_below(above, parts[-1], root, parts)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(parts[-1], mode, dir_fd=above)
        os.fsync(above)
        return open_below(above, parts[-1], root, parts)


def open_below(folder: int | None, name: str, root: Path, way: Sequence[str]) -> int:
    """Return the descriptor of folder `name` in the open `folder`, which is `way` below `root`, never through a link.

    Raises:
        SettingsError: it is a link or no folder (`WORKSPACE_LINK`).
        OSError: it cannot be opened.
    """
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in _NOT_A_FOLDER:
            raise
        path = str(root.joinpath(*way))
        if _is_link(folder, name):
            raise SettingsError("WORKSPACE_LINK", path=path, found="a link, where a folder must stand") from exc
        found = "something that is no folder"
        raise SettingsError("WORKSPACE_LINK", path=path, found=found, hint="name a folder") from exc


def _is_link(folder: int | None, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
