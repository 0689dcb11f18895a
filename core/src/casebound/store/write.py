"""Creating files once: whole, flushed, under their final names, or not at all.

The bytes of files that belong together go to a temporary folder, are flushed to the disk, and get their final names by
exclusive links: a reader never sees half a file, two writers never share one, and an existing file is never replaced.
Every folder on the way is opened without following links, and the check is made on what was opened, not on the string.

A temporary folder is locked as long as its writer lives. One that nobody holds was left by a process that was killed;
`sweep` removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from casebound.errors import IntegrityError, SettingsError, UnavailableError
from casebound.store.disk import Place
from casebound.store.folders import Folders

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not keep a reader waiting
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_GIVEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO)
MOST_BYTES = 1 << 30  # of one file in a workspace; a hole of a terabyte costs its author nothing
_TEMPORARY = re.compile(r"[0-9a-f]{32}")


class Growing:
    """The temporary folder of one writer: it is made with the first file, and removed by `close`.

    Args:
        folders: of the workspace; it must exist.
        tmp: the folder of the workspace for temporary folders.
    """

    def __init__(self, folders: Folders, tmp: str) -> None:
        self._folders = folders
        self._tmp = (tmp,)
        self._name = ""
        self._folder: int | None = None

    def create(self, files: Mapping[str, bytes]) -> Iterator[Collection[Place]]:
        """Create files below the workspace, each whole or not at all; where the same bytes stand, nothing is done.

        Yields what has to be flushed before it goes on: the caller flushes it, and takes the next step.

        Args:
            files: the whole content by path, relative, with `/`; folders on the way are made.

        Raises:
            IntegrityError: a path holds other bytes (`STORE_CONFLICT`); those before it stand.
            SettingsError: a component is a link (`WORKSPACE_LINK`).
            OSError: the disk is full, read only, or not permitted.
        """
        below = self._open()
        grown = {str(number): path for number, path in enumerate(files)}
        try:
            for name, path in grown.items():
                _fill(path, files[path], below, name, self._folders.file_mode)
            yield [(below, name) for name in grown]
            for name, path in grown.items():
                *way, last = path.split("/")
                with self._folders.open(way, create=True) as folder:
                    if _link(path, below, name, folder, last):
                        self._folders.changed(folder)
                    elif read_at(folder, last, f"{self._folders.root}/{path}") != files[path]:
                        raise other_content(self._folders.root / path)
        finally:
            for name in grown:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=below)

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            with suppress(OSError), self._folders.open(self._tmp) as tmp:
                os.rmdir(self._name, dir_fd=tmp)
            os.close(self._folder)
            self._folder = None

    def _open(self) -> int:
        if self._folder is None:
            with self._folders.open(self._tmp) as tmp:
                self._name, self._folder = _new_folder(tmp)
        return self._folder


def _fill(path: str, data: bytes, folder: int, name: str, mode: int) -> None:
    """Write all that is to stand at `path` to a new file in a temporary folder."""
    descriptor = os.open(name, _CREATE, mode, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _link(path: str, below: int, name: str, folder: int, last: str) -> bool:
    """Give what grew its final name, the last part of `path`; False where something has it already."""
    try:
        os.link(name, last, src_dir_fd=below, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


def create_new_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Create a file outside every workspace, whole or not at all; one that is there is never touched.

    Args:
        path: of the file.
        data: the whole content.
        mode: its permissions, less what the umask takes.

    Raises:
        FileExistsError: something stands at `path`.
        OSError: it cannot be written.
    """
    temporary = path.parent / f".casebound-{os.urandom(16).hex()}"
    descriptor = os.open(temporary, _CREATE, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.link(temporary, path)  # exclusively
    finally:
        temporary.unlink(missing_ok=True)


def other_content(path: Path) -> IntegrityError:
    """Return the error that `path` exists already, and is not what was to be created."""
    return IntegrityError("STORE_CONFLICT", path=str(path), found="other content under this name")


def unwritable(path: Path, error: OSError) -> UnavailableError:
    """Return what a failure of the file system is to us, with the system's own words."""
    return UnavailableError("WORKSPACE_WRITE", path=str(path), found=os.strerror(error.errno or 0))


def unreadable(path: Path, error: OSError) -> SettingsError:
    """Return what a failure to read is to us, with the system's own words."""
    found, hint = os.strerror(error.errno or 0), "check the permissions of the folder, and the disk"
    return SettingsError("PACKAGE_UNREADABLE", path=str(path), found=found, hint=hint)


def read_at(folder: int, name: str, shown: str) -> bytes:
    """Return the bytes of file `name` in the open `folder`.

    Raises:
        SettingsError: it is a link, or something else that is no file (`WORKSPACE_LINK`), or larger than any that is
            written (`PACKAGE_UNREADABLE`).
        OSError: it cannot be read.
    """
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in _NOT_A_FILE:
            raise
        raise SettingsError("WORKSPACE_LINK", path=shown, found="a link, where a file must stand") from exc
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SettingsError("WORKSPACE_LINK", path=shown, found="something that is no file")
        if status.st_size > MOST_BYTES:
            raise SettingsError(
                "PACKAGE_UNREADABLE", path=shown, found=f"{status.st_size} bytes", hint=f"no file has over {MOST_BYTES}"
            )
        data = os.read(descriptor, status.st_size + 1)
        while len(data) < status.st_size and (part := os.read(descriptor, status.st_size)):
            data += part
        return data
    finally:
        os.close(descriptor)


def read_given(path: Path, most_bytes: int) -> bytes:
    """Return the bytes of a regular file that somebody named; links are followed, and nothing waits for a pipe.

    Raises:
        OSError: it cannot be read; with words of ours where it is no regular file, too large, or still growing.
        ValueError: no system takes such a path.
    """
    descriptor = os.open(path, _READ_GIVEN)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        if status.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"more than {most_bytes} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(status.st_size + 1)
    finally:
        os.close(descriptor)
    if len(data) > status.st_size:
        raise OSError(errno.EBUSY, "a file that is still being written")
    return data


# --- temporary folders ----------------------------------------------------------------------------------------------


def _new_folder(tmp: int) -> tuple[str, int]:
    """Return name and descriptor of a new, locked folder in the open `tmp`."""
    while True:
        name = os.urandom(16).hex()
        os.mkdir(name, 0o700, dir_fd=tmp)
        try:
            folder = os.open(name, _FOLDER, dir_fd=tmp)
        except FileNotFoundError:
            continue  # a sweep took it between the two calls
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.fstat(folder).st_nlink:
            return name, folder
        os.close(folder)  # a sweep took it before it was locked


def sweep(tmp: int) -> None:
    """Remove what dead writers left in the open folder `tmp`; what a living one holds stays."""
    for name in os.listdir(tmp):
        if _TEMPORARY.fullmatch(name):
            with suppress(OSError):  # another sweep was faster, or it is not ours to open
                _remove_if_dead(tmp, name)


def _remove_if_dead(tmp: int, name: str) -> None:
    """Remove a temporary folder, or a file as earlier releases made them, that nobody holds."""
    left = os.open(name, _READ, dir_fd=tmp)
    try:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not stat.S_ISDIR(os.fstat(left).st_mode):
            os.unlink(name, dir_fd=tmp)
            return
        for grown in os.listdir(left):
            os.unlink(grown, dir_fd=left)
        os.rmdir(name, dir_fd=tmp)
    finally:
        os.close(left)
