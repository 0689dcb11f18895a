"""The words of this game's issue trackers: roles that an entity may play, and headings of their templates."""

from __future__ import annotations

from types import MappingProxyType

ROLES = ("quest_giver", "quest", "item")

HEADINGS = MappingProxyType(
    {
        "AC rev. hash/commit": "environment",
        "Core revision": "environment",
        "Custom changes or Modules": "environment",
        "TC rev. hash/commit": "environment",
        "TDB version": "environment",
        "Blizzlike behavior": "expectation",
        "Blizzlike behaviour": "expectation",
        "Expected Blizzlike Behavior": "expectation",
        "Expected Blizzlike Behaviour": "expectation",
        "In-game command(s) to reproduce": "reproduction",
        "Wowhead link": "reference",
        "Links, screenshots, videos": "reference",
    }
)
"""Heading text → source kind, beside the built-in table, which has the general words."""
