"""Registers the runner of core, through the same hook as any plugin's."""

from __future__ import annotations

from collections.abc import Sequence

from casebound.hookspecs import hookimpl
from casebound.specs import Runner


@hookimpl
def casebound_runners() -> Sequence[Runner]:
    """Offer the runner that works in this process."""
    return [Runner("local", run="casebound.workspace.local:run")]
