"""Captures on disk: what was looked up once is never asked again, and each is what its name says."""

from __future__ import annotations

from typing import TypeVar

from casebound.canonical import digest_of, file_name_of
from casebound.contracts.base import Artifact
from casebound.contracts.capture import Capture
from casebound.contracts.plan import Candidates
from casebound.errors import IntegrityError
from casebound.store.layout import Revision
from casebound.store.package import Package, parse_artifact

A = TypeVar("A", bound=Artifact)


def load_capture(package: Package, path: str, model: type[A]) -> A:
    """Return the capture at `path`. Raises `IntegrityError` (`STORE_DIGEST`) where its name is not its digest."""
    data = package.require(path)
    if file_name_of(digest_of(data)) != path.rpartition("/")[2]:
        raise IntegrityError("STORE_DIGEST", path=path, found="a capture that is not what its name says")
    return parse_artifact(data, path, model)


def kept_captures(package: Package, folder: str, model: type[A]) -> list[A]:
    """Return every capture in `folder`, as a run that ended early may have left them. Raises `IntegrityError`."""
    return [load_capture(package, f"{folder}/{name}", model) for name in package.names(folder)]


def load_captures(package: Package, revision: Revision, candidates: Candidates) -> tuple[Capture, ...]:
    """Return the capture of each search, in order. Raises `IntegrityError`."""
    return tuple(load_capture(package, revision.capture(listed.capture), Capture) for listed in candidates.searches)
