"""Parts: the citation markers of captures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MARKERS = ("capture", "capture_digest", "fact")


def marker_free_v1(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return `items` without what names a capture or the look-up fact of a row, lists of objects in them likewise."""
    return [
        {
            key: marker_free_v1(value) if isinstance(value, list) and value and isinstance(value[0], dict) else value
            for key, value in item.items()
            if key not in _MARKERS
        }
        for item in items
    ]
