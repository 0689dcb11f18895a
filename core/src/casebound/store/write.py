"""Creating a file once: whole, flushed, under its final name, or not at all.

The bytes go to a temporary file of their own, are flushed to the disk, and get their final name by an exclusive link:
a reader never sees half a file, two writers never share one, and an existing file is never replaced. Every folder on
the way is opened without following links, and the check is made on what was opened, not on the string.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from casebound.errors import IntegrityError, SettingsError, UnavailableError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_folder(root: Path, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Open the folder `parts` below `root` and yield its descriptor; no component below `root` may be a link.

    Raises:
        SettingsError: a component is a link or no folder (`WORKSPACE_LINK`).
        FileNotFoundError: it does not exist and `create` is off.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=descriptor)
                    os.fsync(descriptor)
                below = _open_component(descriptor, part, root, parts)
            except OSError as exc:
                raise _not_a_folder(root, parts) from exc
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _open_component(descriptor: int, part: str, root: Path, parts: Sequence[str]) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=descriptor)
    except OSError as exc:
        raise _not_a_folder(root, parts) from exc


def _not_a_folder(root: Path, parts: Sequence[str]) -> SettingsError:
    return SettingsError("WORKSPACE_LINK", path=str(root.joinpath(*parts)), found="a link, or something that is no folder")


def create_file(root: Path, path: str, data: bytes, *, tmp: Path) -> bool:
    """Create `path` below `root` with exactly `data`; True if it is new, False if the same bytes already stand there.

    Args:
        root: the package's folder; it must exist.
        path: relative, with `/`.
        data: the whole content.
        tmp: a folder of the same file system for the file while it grows.

    Raises:
        IntegrityError: the path holds other bytes (`STORE_CONFLICT`).
        SettingsError: a component is a link (`WORKSPACE_LINK`).
        UnavailableError: the disk is full, read only, or not permitted (`WORKSPACE_WRITE`); nothing stands at `path`.
    """
    *folders, name = path.split("/")
    growing = tmp / uuid.uuid4().hex
    try:
        _write_whole(growing, data)
        try:
            with open_folder(root, folders, create=True) as folder:
                try:
                    os.link(growing, name, dst_dir_fd=folder, follow_symlinks=False)
                except FileExistsError:
                    return _same_or_conflict(folder, root, path, data)
                os.fsync(folder)
        finally:
            with suppress(FileNotFoundError):
                growing.unlink()
    except OSError as exc:
        raise UnavailableError("WORKSPACE_WRITE", path=str(root / path), found=os.strerror(exc.errno or 0)) from exc
    return True


def _write_whole(path: Path, data: bytes) -> None:
    descriptor = os.open(path, _CREATE, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(descriptor)


def _same_or_conflict(folder: int, root: Path, path: str, data: bytes) -> bool:
    existing = read_at(folder, path.rsplit("/", 1)[-1])
    if existing != data:
        raise IntegrityError("STORE_CONFLICT", path=str(root / path), found="other content under this name")
    return False


def read_at(folder: int, name: str) -> bytes:
    """Return the bytes of file `name` in the open `folder`, never through a link. Raises `OSError`."""
    descriptor = os.open(name, _READ, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()
