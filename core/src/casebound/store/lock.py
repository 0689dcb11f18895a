"""One process at a time works on a package. The lock is the kernel's: it ends with the process, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from casebound.errors import UnavailableError
from casebound.store.package import Package
from casebound.store.write import unreadable


@contextmanager
def exclusive(package: Package, *, wait: bool = False) -> Iterator[None]:
    """Hold the package for this process.

    Args:
        package: its folder must exist.
        wait: until another process lets go of it; only for what is held for a moment.

    Raises:
        UnavailableError: another process works on it (`CASE_BUSY`).
        SettingsError: a folder on the way is a link (`WORKSPACE_LINK`), or cannot be opened (`PACKAGE_UNREADABLE`).
    """
    # Opened before others are kept open: the lock is this descriptor's, and ends with it.
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(package.open())
        except OSError as exc:
            raise unreadable(package.root, exc) from exc
        opened.enter_context(package.keep_open())
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as exc:
            raise UnavailableError("CASE_BUSY", path=str(package.root), found="another process that holds it") from exc
        opened.enter_context(package.alone())
        yield


def is_held(package: Package) -> bool:
    """Tell whether another process holds the package at this moment; nothing is written. Raises as `exclusive`."""
    try:
        with package.open() as folder:
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as exc:
        raise unreadable(package.root, exc) from exc
    return False
