"""Aliases: a letter that says what a thing is, and its number. Assigned in order, never reused, never renumbered."""

from __future__ import annotations

import re

ALIAS = re.compile(r"^([SEPFVNDQ])([0-9]{4,})$")
READABLE = ("S", "P")


def alias(letter: str, number: int) -> str:
    """Return the alias of the thing `number` (from 1) of its kind: `S0001`."""
    return f"{letter}{number:04d}"


def letter_of(name: str) -> str | None:
    """Return the letter of an alias, None for anything that is no alias."""
    match = ALIAS.match(name)
    return match[1] if match else None
