"""One process at a time works on a package. The lock is the kernel's: it ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from casebound.errors import UnavailableError
from casebound.store.package import Package


@contextmanager
def exclusive(package: Package) -> Iterator[None]:
    """Hold the package for this process.

    Raises:
        UnavailableError: another process works on it (`CASE_BUSY`).
    """
    descriptor = os.open(package.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise UnavailableError("CASE_BUSY", path=str(package.root), found="another process that holds it") from exc
        yield
    finally:
        os.close(descriptor)
