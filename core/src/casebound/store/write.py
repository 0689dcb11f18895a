"""Creating a file once: whole, flushed, under its final name, or not at all.

The bytes go to a temporary file of their own, are flushed to the disk, and get their final name by an exclusive link:
a reader never sees half a file, two writers never share one, and an existing file is never replaced. Every folder on
the way is opened without following links, and the check is made on what was opened, not on the string. A name reaches
the disk as `Folders` says: at once, or with the next flush where folders are kept.

A temporary file is locked as long as its writer lives. One that nobody holds was left by a process that was killed;
`sweep` removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from casebound.errors import IntegrityError, SettingsError, UnavailableError
from casebound.store.folders import Folders

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not keep a reader waiting
_READ_GIVEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO)
MOST_BYTES = 1 << 30  # of one file in a workspace; a hole of a terabyte costs its author nothing
_TEMPORARY = re.compile(r"[0-9a-f]{32}")


def create_file(folders: Folders, path: str, data: bytes, *, tmp: str) -> bool:
    """Create `path` below `folders` with exactly `data`; True if it is new, False if the same bytes stand there.

    Args:
        folders: of the workspace; it must exist.
        path: relative, with `/`; folders on the way are made.
        data: the whole content.
        tmp: the folder of the workspace where the file grows.

    Raises:
        IntegrityError: the path holds other bytes (`STORE_CONFLICT`).
        SettingsError: a component is a link (`WORKSPACE_LINK`).
        UnavailableError: the disk is full, read only, or not permitted (`WORKSPACE_WRITE`); nothing stands at `path`.
    """
    root = folders.root
    *way, name = path.split("/")
    try:
        with folders.open((tmp,)) as below, _growing(below, folders.file_mode) as (temporary, descriptor):
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
            with folders.open(way, create=True) as folder:
                new = _link(temporary, below, name, folder)
                if not new and read_at(folder, name, f"{root}/{path}") != data:
                    found = "other content under this name"
                    raise IntegrityError("STORE_CONFLICT", path=str(root / path), found=found)
                folders.changed(folder)
    except OSError as exc:
        raise unwritable(root / path, exc) from exc
    return new


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


def _link(temporary: str, below: int, name: str, folder: int) -> bool:
    try:
        os.link(temporary, name, src_dir_fd=below, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    return True


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


# --- temporary files ------------------------------------------------------------------------------------------------


@contextmanager
def _growing(folder: int, mode: int) -> Iterator[tuple[str, int]]:
    """Yield name and descriptor of a new, locked file in the open `folder`; afterwards the name is gone."""
    name, descriptor = _new_file(folder, mode)
    try:
        yield name, descriptor
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        os.close(descriptor)


def _new_file(folder: int, mode: int) -> tuple[str, int]:
    while True:
        name = os.urandom(16).hex()
        descriptor = os.open(name, _CREATE, mode, dir_fd=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        os.close(descriptor)  # a sweep took it between the two calls


def sweep(folder: int) -> None:
    """Remove the temporary files in the open `folder` whose writers are dead; what a living one holds stays."""
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            with suppress(OSError):  # another sweep was faster, or it is not ours to open
                _remove_if_dead(folder, name)


def _remove_if_dead(folder: int, name: str) -> None:
    descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(descriptor)
