"""Comparing two states of a database, as bindings describe them."""

from __future__ import annotations

from casebound.contracts.capture import Binding


def changed(old: Binding, new: Binding) -> list[str]:
    """Return one phrase a field that differs (`snapshot_id: world-1 became world-2`), empty where both are the same."""
    before, after = old.to_json(), new.to_json()
    return [f"{field}: {before[field]} became {after[field]}" for field in before if before[field] != after[field]]
