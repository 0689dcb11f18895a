"""Aliases: a letter that says what a thing is, and its number. Assigned in order, never reused, never renumbered."""

from __future__ import annotations


def alias(letter: str, number: int) -> str:
    """Return the alias of the thing `number` (from 1) of its kind: `S0001`."""
    return f"{letter}{number:04d}"
