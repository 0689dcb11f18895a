"""Captures of a file that was asked before: while the file is the same, so is what a search finds in it.

Many reports name the same few things, and each look-up reads the whole table. A binding with a digest names one state
of a file, and a capture holds for as long as that is the state; when it changes, everything is forgotten. What is kept
are the bytes of captures, up to a bound; the first ones go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TypeAlias

from casebound.contracts.capture import Binding, Capture, CatalogInput

Search: TypeAlias = tuple[CatalogInput, str]

MOST_BYTES = 2 << 20


class Remembered:
    """Captures by their searches. Threads may share one."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._begin(None)

    def of(self, binding: Binding, searches: Iterable[Search], max_candidates: int) -> dict[Search, Capture]:
        """Return the captures of those searches that were made in the state `binding`, with as many candidates."""
        with self._lock:
            if binding != self._binding:
                return {}
            kept = {search: self._captures.get((*search, max_candidates)) for search in searches}
        captures = {search: Capture.from_bytes(data) for search, data in kept.items() if data is not None}
        return {search: capture for search, capture in captures.items() if capture is not None}

    def keep(self, binding: Binding, captures: Mapping[Search, Capture], max_candidates: int) -> None:
        """Keep what was found in the state `binding`; where that has no digest, nobody could tell whether it lasts."""
        if binding.file_digest is None:
            return
        with self._lock:
            if binding != self._binding:
                self._begin(binding)
            for (catalog, term), capture in captures.items():
                catalog = self._catalogs.setdefault(catalog, catalog)
                self._keep((catalog, term, max_candidates), capture.to_bytes())

    def _begin(self, binding: Binding | None) -> None:
        self._binding = binding
        self._captures: dict[tuple[CatalogInput, str, int], bytes] = {}
        self._catalogs: dict[CatalogInput, CatalogInput] = {}  # each case has its own, equal to all others
        self._bytes = 0

    def _keep(self, key: tuple[CatalogInput, str, int], data: bytes) -> None:
        self._bytes += len(data) - len(self._captures.pop(key, b""))
        self._captures[key] = data
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._captures))
            self._bytes -= len(self._captures.pop(oldest))
