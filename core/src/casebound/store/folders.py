"""Opening folders below a root, never through a link; the check is made on what was opened, not on the string."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from casebound.errors import SettingsError
from casebound.store.disk import Place

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_FOLDER = (errno.ELOOP, errno.ENOTDIR)


class Folders:
    """The folders below a root, by their parts.

    While they are kept, each is opened once and stays open: a case that is under way opens the same few folders some
    thousand times. And a name that is new in one is then flushed by whoever keeps them; else at once.

    Args:
        root: the uppermost folder.
        private: what is made below it is for its owner alone, whatever the umask permits.
    """

    def __init__(self, root: Path, *, private: bool = False) -> None:
        self.root = root
        self.file_mode, self._folder_mode = (0o600, 0o700) if private else (0o666, 0o777)
        self._kept: dict[tuple[str, ...], int] | None = None
        self._changed: set[int] = set()

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
            self._changed.clear()

    @property
    def is_kept(self) -> bool:
        """Whether they are kept at the moment."""
        return self._kept is not None

    def take_changed(self) -> list[Place]:
        """Return what must be flushed so that every new name is on the disk; whoever takes it owes that."""
        changed: list[Place] = [(folder, None) for folder in self._changed]
        self._changed.clear()
        return changed

    def changed(self, folder: int) -> None:
        """Take note of a new name in the open `folder`. Raises `OSError`."""
        if self._kept is None:
            os.fsync(folder)
        else:
            self._changed.add(folder)

    def open(self, parts: Sequence[str], *, create: bool = False) -> AbstractContextManager[int]:
        """Open the folder `parts` below the root, for its descriptor.

        Raises:
            SettingsError: a component, or the root itself, is a link or no folder (`WORKSPACE_LINK`).
            FileNotFoundError: it does not exist and `create` is off.
            OSError: it cannot be opened or made.
        """
        if self._kept is not None:
            return nullcontext(self._descriptor(self._kept, tuple(parts), create))
        return self._opened(tuple(parts), create)

    @contextmanager
    def _opened(self, parts: tuple[str, ...], create: bool) -> Iterator[int]:
        opened: dict[tuple[str, ...], int] = {}
        try:
            yield self._descriptor(opened, parts, create)
        finally:
            for descriptor in opened.values():
                os.close(descriptor)

    def _descriptor(self, opened: dict[tuple[str, ...], int], parts: tuple[str, ...], create: bool) -> int:
        if parts not in opened:
            if not parts:
                opened[parts] = open_below(None, os.fspath(self.root), self.root, ())
            else:
                above = self._descriptor(opened, parts[:-1], create)
                opened[parts] = self._made_below(above, parts) if create else self._open_below(above, parts)
        return opened[parts]

    def _open_below(self, above: int, parts: Sequence[str]) -> int:
        return open_below(above, parts[-1], self.root, parts)

    def _made_below(self, above: int, parts: Sequence[str]) -> int:
        try:
            return self._open_below(above, parts)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(parts[-1], self._folder_mode, dir_fd=above)
            self.changed(above)
            return self._open_below(above, parts)


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
