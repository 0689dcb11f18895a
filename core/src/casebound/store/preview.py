"""A package before a step is taken: as it stands, and with a file more that the step would begin with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from casebound.canonical import digest_of
from casebound.store.package import Package
from casebound.store.write import other_content


class WouldWrite(Exception):
    """The step came to the first thing that it would write."""


class Preview(Package):
    """A package in which a step is tried out: whatever refuses does so, and nothing is written.

    Args:
        root: the folder.
        ahead: by path, the bytes of files that are taken to be there.
    """

    def __init__(self, root: Path, ahead: Mapping[str, bytes]) -> None:
        super().__init__(root)
        self._ahead.update(ahead)

    async def flush(self) -> None:
        """Do nothing: what is ahead stays so."""

    def flush_now(self) -> None:
        """Do nothing."""

    def create(self, path: str, data: bytes) -> str:
        """Return the digest of a file that is there already.

        Raises:
            WouldWrite: it is not there.
            IntegrityError: it is there with other bytes (`STORE_CONFLICT`).
        """
        found = self.read(path)
        if found is None:
            raise WouldWrite(path)
        if found != data:
            raise other_content(self.root / path)
        return digest_of(data)


class Trial(Preview):
    """A package in which many steps are tried out: what each would write is taken to be there, and nothing is written.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root, {})

    def create(self, path: str, data: bytes) -> str:
        """Return the digest of a file that is there, or from now on is taken to be. Raises as `Preview.create`."""
        try:
            return super().create(path, data)
        except WouldWrite:
            self._ahead[path] = data
            return digest_of(data)
