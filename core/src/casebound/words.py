"""Words of our own sentences that depend on a number."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """Return a number with what it counts: `1 case`, `2 cases`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
